//! Arrow's types and DataFusion's literals, as SQL writes them.

/// What commas separate, those inside brackets aside.
pub(super) fn list(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '<' | '{' => depth += 1,
            ')' | ']' | '>' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[from..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

/// Arrow's types, and what stands in their brackets, as SQL writes them; what is quoted stays.
pub fn in_sql(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        // One behind a letter is an apostrophe.
        if c == '\'' && !out.ends_with(char::is_alphanumeric) {
            let end = rest[1..].find('\'').map_or(rest.len(), |end| end + 2);
            out.push_str(&rest[..end]);
            rest = &rest[end..];
        } else if c.is_alphanumeric() || c == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let (word, behind) = rest.split_at(end);
            let inside = bracketed(behind);
            if word == "Binary" && !behind.starts_with(" operator") && !behind.starts_with(" expression") {
                out.push_str("BYTEA");
                rest = behind;
                continue;
            }
            match sql_type(word, inside) {
                Some((name, with_brackets)) => {
                    out.push_str(&name);
                    rest = match (with_brackets, inside) {
                        (true, Some(inside)) => &behind[inside.len() + 2..],
                        _ => behind,
                    };
                }
                None => {
                    out.push_str(word);
                    rest = behind;
                }
            }
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out.replace("count(1)", "count(*)").replace(" AS count(*)", "")
}

/// What stands in the brackets that a text begins with.
fn bracketed(text: &str) -> Option<&str> {
    let mut depth = 0;
    text.strip_prefix('(')?;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(&text[1..at]),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The name of one of arrow's types, or the literal in its brackets; and whether its brackets are part of it.
fn sql_type(word: &str, inside: Option<&str>) -> Option<(String, bool)> {
    let plain = match word {
        "Int8" => "TINYINT",
        "Int16" => "SMALLINT",
        "Int32" => "INT",
        "Int64" => "BIGINT",
        "UInt8" => "TINYINT UNSIGNED",
        "UInt16" => "SMALLINT UNSIGNED",
        "UInt32" => "INT UNSIGNED",
        "UInt64" => "BIGINT UNSIGNED",
        "Float16" | "Float32" => "FLOAT",
        "Float64" => "DOUBLE",
        "Utf8" | "LargeUtf8" | "Utf8View" => "STRING",
        "Boolean" => "BOOLEAN",
        "LargeBinary" | "BinaryView" => "BYTEA",
        "Date32" | "Date64" => "DATE",
        _ => "",
    };
    if !plain.is_empty() {
        return Some(match inside {
            // `Int64(1)`, `Utf8("a")`: a literal.
            Some("NULL") => ("NULL".into(), true),
            Some(text) => match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
                Some(text) => (format!("'{text}'"), true),
                None => (text.to_string(), true),
            },
            None => (plain.into(), false),
        });
    }
    let inside = inside?;
    let name = match word {
        "Decimal128" | "Decimal256" | "Decimal64" | "Decimal32" => match list(inside).as_slice() {
            [precision, scale] => format!("DECIMAL({precision}, {scale})"),
            // A literal: its digits, and how many of them are behind the point.
            [digits, _, scale] => decimal(digits, scale)?,
            _ => return None,
        },
        "Timestamp" => {
            let precision = match list(inside).first()? {
                &"s" | &"Second" => "(0)",
                &"ms" | &"Millisecond" => "(3)",
                &"ns" | &"Nanosecond" => "(9)",
                _ => "",
            };
            let zone = list(inside).get(1).is_some_and(|zone| *zone != "None");
            format!("TIMESTAMP{precision}{}", if zone { " WITH TIME ZONE" } else { "" })
        }
        "Time32" | "Time64" => "TIME".into(),
        "Interval" | "Duration" => "INTERVAL".into(),
        "IntervalMonthDayNano" => format!("INTERVAL '{}'", inside.trim_matches('"')),
        "List" | "LargeList" | "FixedSizeList" => format!("ARRAY<{}>", in_sql(nested(list(inside).first()?))),
        "Struct" => {
            let fields: Option<Vec<String>> =
                fields(inside).map(|(name, of)| Some(format!("{name} {}", of?))).collect();
            format!("STRUCT<{}>", fields?.join(", "))
        }
        "Map" => {
            let (_, entries) = field(list(inside).first()?)?;
            let types = fields(entries.strip_prefix("Struct(")?.strip_suffix(')')?).map(|(_, of)| of);
            format!("MAP({})", types.collect::<Option<Vec<String>>>()?.join(", "))
        }
        _ => return None,
    };
    Some((name, true))
}

/// `"name": non-null Int64`, of a struct.
fn field(text: &str) -> Option<(&str, &str)> {
    let (name, of) = text.strip_prefix('"')?.split_once("\": ")?;
    Some((name, nested(of)))
}

/// The fields of a struct; those of which not all can be told have no type.
fn fields(text: &str) -> impl Iterator<Item = (&str, Option<String>)> {
    list(text).into_iter().map(|text| field(text).map_or((text, None), |(name, of)| (name, Some(in_sql(of)))))
}

/// A type inside another, whether or not it may be NULL.
fn nested(text: &str) -> &str {
    text.trim_start_matches("nullable ").trim_start_matches("non-null ")
}

/// `Some(15)` with one digit behind the point is 1.5.
fn decimal(digits: &str, scale: &str) -> Option<String> {
    let digits = digits.strip_prefix("Some(")?.strip_suffix(')')?;
    let scale: usize = scale.parse().ok()?;
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, part) = digits.split_at(digits.len() - scale);
    Some(if part.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_literals_are_as_sql_writes_them() {
        for (theirs, ours) in [
            ("Int32 + Utf8View", "INT + STRING"),
            ("Timestamp(µs) > Timestamp(ns, \"UTC\")", "TIMESTAMP > TIMESTAMP(9) WITH TIME ZONE"),
            ("List(Utf8View)", "ARRAY<STRING>"),
            ("Decimal128(10, 2)", "DECIMAL(10, 2)"),
            ("a = Decimal128(Some(-5),3,2)", "a = -0.05"),
            ("x = Utf8(\"a\") AND y = Int64(7)", "x = 'a' AND y = 7"),
            ("sum(count(Int64(1)) AS count(*))", "sum(count(*))"),
            ("'Int64' is the user's", "'Int64' is the user's"),
            ("Interval(MonthDayNano)", "INTERVAL"),
            ("median can't take (Binary)", "median can't take (BYTEA)"),
            ("Binary operator, Binary", "Binary operator, BYTEA"),
            ("List(non-null Binary, field: 'element')", "ARRAY<BYTEA>"),
            ("Struct(\"a\": Int32, \"b\": non-null List(Decimal128(2, 1)))", "STRUCT<a INT, b ARRAY<DECIMAL(2, 1)>>"),
            (
                "Map(\"entries\": non-null Struct(\"key\": non-null Utf8View, \"value\": Int64), unsorted)",
                "MAP(STRING, BIGINT)",
            ),
        ] {
            assert_eq!(in_sql(theirs), ours);
        }
    }
}
