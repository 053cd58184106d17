//! The names of the output formats, and nothing of how they look.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, closest};

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A box with types under the names, numbers to the right.
    Table,
    /// An ASCII grid, numbers to the right.
    Ascii,
    /// Columns between blanks.
    Column,
    /// A header line, then RFC 4180 records; NULL is an empty field, an empty text is `""`.
    Csv,
    /// A header line, then fields between tabs; NULL is `\N`, and tab, newline and backslash are escaped.
    Tsv,
    /// One array of objects; NULL is `null`.
    Json,
    /// One object a line.
    JsonLines,
    /// A table for a markdown page.
    Markdown,
    /// A table for a web page.
    Html,
    /// One column a line, for wide rows.
    Vertical,
    /// Fields between a separator, as they are.
    List,
    /// Values as literals of SQL.
    Quote,
}

/// Every spelling that is taken; the first of each format is its name.
const SPELLINGS: [(&str, Format); 26] = [
    ("table", Format::Table),
    ("ascii", Format::Ascii),
    ("column", Format::Column),
    ("csv", Format::Csv),
    ("tsv", Format::Tsv),
    ("json", Format::Json),
    ("jsonlines", Format::JsonLines),
    ("markdown", Format::Markdown),
    ("html", Format::Html),
    ("vertical", Format::Vertical),
    ("list", Format::List),
    ("quote", Format::Quote),
    ("box", Format::Table),
    ("aligned", Format::Ascii),
    ("jsonl", Format::JsonLines),
    ("nd-json", Format::JsonLines),
    ("ndjson", Format::JsonLines),
    ("json-lines", Format::JsonLines),
    ("md", Format::Markdown),
    ("line", Format::Vertical),
    ("expanded", Format::Vertical),
    ("unaligned", Format::List),
    ("tabs", Format::Tsv),
    ("columns", Format::Column),
    ("duckbox", Format::Table),
    ("literal", Format::Quote),
];

impl Format {
    /// Every format, in the order in which help lists them.
    pub const ALL: [Format; 12] = [
        Format::Table,
        Format::Ascii,
        Format::Column,
        Format::Csv,
        Format::Tsv,
        Format::Json,
        Format::JsonLines,
        Format::Markdown,
        Format::Html,
        Format::Vertical,
        Format::List,
        Format::Quote,
    ];

    /// The name that `--format` takes.
    pub fn name(self) -> &'static str {
        match self {
            Format::Table => "table",
            Format::Ascii => "ascii",
            Format::Column => "column",
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::Json => "json",
            Format::JsonLines => "jsonlines",
            Format::Markdown => "markdown",
            Format::Html => "html",
            Format::Vertical => "vertical",
            Format::List => "list",
            Format::Quote => "quote",
        }
    }

    /// Whether people read it, and not programs: a line of another kind may stand above or below.
    pub fn is_for_people(self) -> bool {
        matches!(self, Format::Table | Format::Ascii | Format::Column | Format::Markdown | Format::Vertical)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = Error;

    /// # Errors
    /// An unknown name, with the closest known one.
    fn from_str(written: &str) -> Result<Self, Error> {
        let lower = written.to_ascii_lowercase();
        if let Some((_, format)) = SPELLINGS.iter().find(|(name, _)| *name == lower) {
            return Ok(*format);
        }
        let names = Format::ALL.map(Format::name);
        let help = match closest(&lower, SPELLINGS.iter().map(|(name, _)| *name)) {
            Some(name) => format!("did you mean {name}? The formats are {}", names.join(", ")),
            None => format!("the formats are {}", names.join(", ")),
        };
        Err(Error::invalid(format!("there is no output format {written:?}")).help(help))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_known_by_its_name() {
        for format in Format::ALL {
            assert_eq!(format.name().parse::<Format>().unwrap(), format);
        }
    }

    #[test]
    fn other_spellings_and_cases_are_taken() {
        for spelling in ["jsonl", "nd-json", "NDJSON", "JsonLines"] {
            assert_eq!(spelling.parse::<Format>().unwrap(), Format::JsonLines);
        }
    }

    #[test]
    fn an_unknown_name_gets_the_closest() {
        let error = "jsonlimes".parse::<Format>().unwrap_err();
        assert_eq!(error.to_string(), "there is no output format \"jsonlimes\"");
        assert!(error.help_text().unwrap().starts_with("did you mean jsonlines?"), "{error:?}");
        let error = "parquet".parse::<Format>().unwrap_err();
        assert!(error.help_text().unwrap().starts_with("the formats are table, ascii, "), "{error:?}");
    }
}
