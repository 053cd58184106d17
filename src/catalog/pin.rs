//! The CREATE STREAM text that pins an inferred schema.

use std::fmt::Write;

use arrow::datatypes::Schema;

use super::types::{ident, to_sql};
use crate::parser::CreateStream;

/// The text of `create` with the columns of `schema`, one a line.
pub(super) fn text(create: &CreateStream, schema: &Schema) -> String {
    let mut lines: Vec<String> = Vec::new();
    for field in schema.fields() {
        let not_null = if field.is_nullable() { "" } else { " NOT NULL" };
        lines.push(format!("{} {}{not_null}", ident(field.name()), to_sql(field.data_type())));
    }
    lines.extend(create.watermark.iter().map(ToString::to_string));
    let mut text = format!("CREATE STREAM {} (\n    {}\n)", create.name, lines.join(",\n    "));
    if let Some(options) = create.options.as_ref().filter(|o| !o.entries.is_empty()) {
        let _ = write!(text, " WITH {options}");
    }
    text
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, TimeUnit};

    use super::*;
    use crate::error::Location;
    use crate::parser::{Statement, parse_one};

    #[test]
    fn the_text_parses_to_the_stream_it_pins() {
        let start = Location { line: 1, column: 1 };
        let written = "CREATE STREAM \"S\" (WATERMARK FOR at AS at - INTERVAL '10 seconds') WITH (connector = 'file', path = 'a''b')";
        let Ok(Statement::CreateStream(create)) = parse_one(written, start).map(|p| p.statement) else {
            panic!("not a stream");
        };
        let schema = Schema::new(vec![
            Field::new("at", DataType::Timestamp(TimeUnit::Microsecond, None), true),
            Field::new("User", DataType::Utf8View, false),
        ]);
        let text = text(&create, &schema);
        let expected = "\
CREATE STREAM \"S\" (
    at TIMESTAMP,
    \"User\" STRING NOT NULL,
    WATERMARK FOR at AS at - INTERVAL '10 seconds'
) WITH (connector = 'file', path = 'a''b')";
        assert_eq!(text, expected);
        let Ok(Statement::CreateStream(again)) = parse_one(&text, start).map(|p| p.statement) else {
            panic!("not a stream: {text}");
        };
        let values = |options: Option<crate::options::Options>| -> Vec<_> {
            options.into_iter().flat_map(|o| o.entries).map(|e| (e.name, e.value)).collect()
        };
        assert_eq!((values(again.options), again.columns.map(|c| c.len())), (values(create.options), Some(2)));
        assert_eq!(again.watermark.map(|w| w.delay), create.watermark.map(|w| w.delay));
    }
}
