//! What DataFusion's functions say of themselves.

use std::fmt::Write;

use datafusion::logical_expr::Documentation;

use super::Session;

impl Session {
    /// The documentation of a function as text; `None` where there is no such function.
    pub fn function_documentation(&self, name: &str) -> Option<String> {
        let state = self.context.state();
        let name = name.to_lowercase();
        let functions = [
            state.scalar_functions().get(&name).map(|f| ("scalar function", f.documentation().cloned())),
            state.aggregate_functions().get(&name).map(|f| ("aggregate function", f.documentation().cloned())),
            state.window_functions().get(&name).map(|f| ("window function", f.documentation().cloned())),
            state.table_functions().get(&name).map(|_| ("table function", None)),
        ];
        let texts: Vec<String> = functions.into_iter().flatten().map(|(kind, doc)| text(&name, kind, doc)).collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    }

    /// The names of all functions, sorted.
    pub fn function_names(&self) -> Vec<String> {
        let state = self.context.state();
        let mut names: Vec<String> = state.scalar_functions().keys().cloned().collect();
        names.extend(state.aggregate_functions().keys().cloned());
        names.extend(state.window_functions().keys().cloned());
        names.extend(state.table_functions().keys().cloned());
        names.sort();
        names.dedup();
        names
    }
}

/// What stands at the end of the text of a function that nobody has described.
pub const UNDOCUMENTED: &str = "it has no documentation\n";

fn text(name: &str, kind: &str, documentation: Option<Documentation>) -> String {
    let Some(doc) = documentation else { return format!("{name}: {kind}; {UNDOCUMENTED}") };
    let mut out = format!("{}  ({kind})\n", doc.syntax_example);
    for other in doc.alternative_syntax.iter().flatten() {
        _ = writeln!(out, "{other}");
    }
    _ = writeln!(out, "\n{}", doc.description.trim());
    let arguments = doc.arguments.unwrap_or_default();
    if !arguments.is_empty() {
        out.push('\n');
    }
    for (argument, meaning) in arguments {
        _ = writeln!(out, "  {argument}: {}", meaning.trim());
    }
    if let Some(example) = doc.sql_example {
        // It is written for a web page.
        let lines = example.lines().filter(|line| !line.trim_start().starts_with("```"));
        _ = writeln!(out, "\n{}", lines.collect::<Vec<_>>().join("\n").trim());
    }
    if let Some(related) = doc.related_udfs.filter(|related| !related.is_empty()) {
        _ = writeln!(out, "\nsee also {}", related.join(", "));
    }
    out
}
