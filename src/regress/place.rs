//! Places in test files, and what is wrong there.

use std::fmt;
use std::sync::Arc;

/// A line of a test file, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub file: Arc<str>,
    pub line: usize,
    /// Where the file is included from.
    pub upper: Option<Arc<Place>>,
}

impl Place {
    /// The first line of a file.
    pub fn top(file: &str, upper: Option<Arc<Place>>) -> Self {
        Place { file: file.into(), line: 1, upper }
    }

    /// Another line of the same file.
    pub fn at(&self, line: usize) -> Self {
        Place { line, ..self.clone() }
    }
}

impl Place {
    /// Where the file that is run has it, or includes what has it.
    pub fn root(&self) -> &Place {
        let mut place = self;
        while let Some(upper) = &place.upper {
            place = upper;
        }
        place
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        match &self.upper {
            Some(upper) => write!(f, " (included at {upper})"),
            None => Ok(()),
        }
    }
}

/// A file that can't be read as a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub place: Place,
    /// Counted from 1, where one is known.
    pub column: Option<usize>,
    pub message: String,
    pub help: Option<String>,
}

impl Broken {
    /// Something is wrong in a line.
    pub fn new(place: &Place, column: Option<usize>, message: impl Into<String>) -> Self {
        Broken { place: place.clone(), column, message: message.into(), help: None }
    }

    /// Adds what would be right.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.place.file, self.place.line)?;
        if let Some(column) = self.column {
            write!(f, ":{column}")?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(upper) = &self.place.upper {
            write!(f, " (included at {upper})")?;
        }
        match &self.help {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}
