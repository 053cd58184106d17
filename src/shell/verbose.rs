//! `\errverbose`: an error in full, from the outside to what it comes from.

use std::fmt::Write;

use crate::error::{BadRecord, Error};

/// Below the error: what is known of it, and each cause with its code.
pub(super) fn chain(error: &Error) -> String {
    let mut out = String::new();
    let mut depth = 0;
    let mut next = Some(error);
    while let Some(error) = next {
        let indent = "  ".repeat(depth + 1);
        _ = writeln!(out, "{indent}{} {}: {}", error.code(), kind(error), first_line(error));
        for (name, value) in facts(error) {
            _ = writeln!(out, "{indent}  {name}: {value}");
        }
        next = match error {
            Error::QueryFailed { cause, .. } => Some(cause),
            Error::Told { error, .. } | Error::Placed { error, .. } => Some(error),
            _ => None,
        };
        depth += 1;
    }
    out
}

fn first_line(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_string()
}

/// Who must act.
fn kind(error: &Error) -> &'static str {
    match error {
        Error::InvalidInput { .. } => "wrong statement, option or argument",
        Error::Unsupported { .. } => "refused",
        Error::BadRecord(_) => "bad record",
        Error::Corrupt { .. } => "damaged file",
        Error::Conflict { .. } => "conflict",
        Error::Io { .. } => "reading or writing",
        Error::QueryFailed { .. } => "failed query",
        Error::Told { .. } => "told before",
        Error::Placed { error, .. } => kind(error),
        Error::Execution { .. } => "computation",
        Error::Cancelled { .. } => "cancelled",
        Error::Internal { .. } => "defect of Levada",
    }
}

fn facts(error: &Error) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    match error {
        Error::BadRecord(record) => {
            let BadRecord { source, path, line, reason, text } = record.as_ref();
            facts.push(("stream", source.clone()));
            facts.extend(path.clone().map(|path| ("file", path)));
            facts.extend(line.map(|line| ("line", line.to_string())));
            facts.extend([("reason", reason.clone()), ("record", text.clone())]);
        }
        Error::Corrupt { path, .. } => facts.push(("file", path.clone())),
        Error::Io { kind, transient, .. } => {
            facts.push(("kind", kind.to_string()));
            facts.push(("worth another try", if *transient { "yes" } else { "no" }.to_string()));
        }
        Error::QueryFailed { query, batch, node, .. } => {
            facts.extend([("query", query.clone()), ("batch", batch.to_string())]);
            facts.extend(node.clone().map(|node| ("operator", node)));
        }
        _ => {}
    }
    if let Some(span) = error.span() {
        let (start, end) = (span.start, span.end);
        facts.push(("place", format!("{}:{} to {}:{}", start.line, start.column, end.line, end.column)));
    }
    facts.extend(error.help_text().map(|help| ("help", help.to_string())));
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_its_code_and_its_facts() {
        let record = BadRecord {
            source: "s".into(),
            path: Some("a.json".into()),
            line: Some(7),
            reason: "column n wants an integer".into(),
            text: "{}".into(),
        };
        let cause = Box::new(Error::BadRecord(Box::new(record)));
        let failed = Error::QueryFailed { query: "q".into(), batch: 3, node: Some("aggregate".into()), cause };
        let text = chain(&failed);
        assert!(text.starts_with("  E0300 failed query: query q failed in batch 3, aggregate: bad record"), "{text}");
        for line in ["    batch: 3\n", "    operator: aggregate\n", "\n    E0300 bad record: ", "      line: 7\n"] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}
