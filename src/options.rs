//! What a `WITH (…)` list may hold: the options of a connector by name, their kinds, and good errors.
//!
//! A connector declares its options as a table of [`OptionSpec`]; [`Options::check`] holds a written list
//! against it. Names are snake_case; camelCase is taken for the same option (`maxFilesPerTrigger`). An
//! unknown option, or a value of the wrong kind, is an error with the place in the SQL; nothing is ignored.

use crate::error::{Code, Error, Result, Span, closest};

/// What an option's value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    Text,
    /// A whole number ≥ 0.
    Count,
    /// A whole number ≥ 1.
    Positive,
    Bool,
    /// A count of bytes, with an optional unit: `1048576`, `'64 MiB'`, `'10mb'`.
    Bytes,
    /// An interval: `'10 seconds'`. Handed out in microseconds.
    Interval,
    /// A timestamp as text, or milliseconds since 1970. Handed out in milliseconds.
    Timestamp,
    /// One character, or an escape such as `'\t'`.
    Char,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Names separated by commas.
    Names,
}

/// One option of a connector.
#[derive(Debug, Clone, Copy)]
pub struct OptionSpec {
    /// In snake_case.
    pub name: &'static str,
    pub kind: OptionKind,
    /// One line for help and the SQL reference.
    pub help: &'static str,
}

/// A value as it was written.
#[derive(Debug, Clone, PartialEq)]
pub enum OptionValue {
    Text(String),
    /// As written, sign included.
    Number(String),
    Bool(bool),
}

/// One `name = value` of a WITH list.
#[derive(Debug, Clone, PartialEq)]
pub struct OptionEntry {
    /// In snake_case, lower case, whatever the spelling was.
    pub name: String,
    pub value: OptionValue,
    pub span: Span,
}

/// A WITH list, in the order written.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Options {
    pub entries: Vec<OptionEntry>,
}

impl Options {
    /// Takes an entry out by name; `connector` and `format` are taken before the rest is checked.
    pub fn take(&mut self, name: &str) -> Option<OptionEntry> {
        let at = self.entries.iter().position(|e| e.name == name)?;
        Some(self.entries.remove(at))
    }

    /// The entry of that name.
    pub fn get(&self, name: &str) -> Option<&OptionEntry> {
        self.entries.iter().find(|e| e.name == name)
    }

    /// Holds the list against a connector's table. `owner` says whose options they are, as in
    /// `connector 'file'`.
    ///
    /// # Errors
    /// An unknown name (with the closest known one), a name given twice, a value of the wrong kind.
    pub fn check(&self, owner: &str, specs: &[OptionSpec]) -> Result<()> {
        for (at, entry) in self.entries.iter().enumerate() {
            if self.entries[..at].iter().any(|e| e.name == entry.name) {
                return Err(Error::invalid_at(entry.span, format!("option {} is given twice", entry.name)));
            }
            let Some(spec) = specs.iter().find(|s| s.name == entry.name) else {
                return Err(unknown(entry, owner, specs));
            };
            check_kind(entry, spec.kind)?;
        }
        Ok(())
    }

    /// The text of an option.
    pub fn text(&self, name: &str) -> Option<&str> {
        match &self.get(name)?.value {
            OptionValue::Text(text) | OptionValue::Number(text) => Some(text),
            OptionValue::Bool(true) => Some("true"),
            OptionValue::Bool(false) => Some("false"),
        }
    }

    /// A whole number ≥ 0.
    pub fn count(&self, name: &str) -> Result<Option<u64>> {
        self.parse(name, "a whole number", |text| text.parse().ok())
    }

    /// true or false.
    pub fn bool(&self, name: &str) -> Result<Option<bool>> {
        self.parse(name, "true or false", |text| match text.to_ascii_lowercase().as_str() {
            "true" | "on" => Some(true),
            "false" | "off" => Some(false),
            _ => None,
        })
    }

    /// A number of bytes.
    pub fn bytes(&self, name: &str) -> Result<Option<u64>> {
        self.parse(name, "a number of bytes such as 1048576 or '64 MiB'", parse_bytes)
    }

    /// One character.
    pub fn char(&self, name: &str) -> Result<Option<u8>> {
        self.parse(name, "one ASCII character, or '\\t'", parse_char)
    }

    /// Names separated by commas.
    pub fn names(&self, name: &str) -> Vec<String> {
        let text = self.text(name).unwrap_or_default();
        text.split(',').map(|n| n.trim().to_string()).filter(|n| !n.is_empty()).collect()
    }

    /// Parses an option's text; `wants` says what is allowed.
    ///
    /// # Errors
    /// Names the option, the value and what is allowed, at the option's place.
    pub fn parse<T>(&self, name: &str, wants: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>> {
        let (Some(entry), Some(text)) = (self.get(name), self.text(name)) else { return Ok(None) };
        match parse(text) {
            Some(value) => Ok(Some(value)),
            None => Err(wrong_kind(entry, text, wants)),
        }
    }
}

/// `maxFilesPerTrigger` → `max_files_per_trigger`.
pub fn snake_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    let mut before_lower = false;
    for c in name.chars() {
        if c.is_uppercase() && before_lower {
            out.push('_');
        }
        before_lower = c.is_lowercase() || c.is_ascii_digit();
        out.extend(c.to_lowercase());
    }
    out
}

fn unknown(entry: &OptionEntry, owner: &str, specs: &[OptionSpec]) -> Error {
    let error =
        Error::invalid_at(entry.span, format!("unknown option {} of {owner}", entry.name)).coded(Code::UnknownOption);
    let known: Vec<&str> = specs.iter().map(|s| s.name).collect();
    match closest(&entry.name, known.iter().copied()) {
        Some(name) => error.help(format!("did you mean {name}?")),
        None if known.is_empty() => error.help("it takes no options"),
        None => error.help(format!("known options: {}", known.join(", "))),
    }
}

fn check_kind(entry: &OptionEntry, kind: OptionKind) -> Result<()> {
    let text = match &entry.value {
        OptionValue::Text(text) | OptionValue::Number(text) => text.as_str(),
        OptionValue::Bool(true) => "true",
        OptionValue::Bool(false) => "false",
    };
    let ok = match kind {
        OptionKind::Text | OptionKind::Names => true,
        OptionKind::Count => text.parse::<u64>().is_ok(),
        OptionKind::Positive => text.parse::<u64>().is_ok_and(|n| n > 0),
        OptionKind::Bool => matches!(text.to_ascii_lowercase().as_str(), "true" | "false" | "on" | "off"),
        OptionKind::Bytes => parse_bytes(text).is_some_and(|n| n > 0),
        OptionKind::Interval => parse_interval(text).is_some(),
        OptionKind::Timestamp => parse_timestamp(text).is_some(),
        OptionKind::Char => parse_char(text).is_some(),
        OptionKind::OneOf(words) => words.contains(&text.to_ascii_lowercase().as_str()),
    };
    if ok {
        return Ok(());
    }
    let error = wrong_kind(entry, text, &wants(kind));
    Err(match kind {
        OptionKind::OneOf(words) => match closest(text, words.iter().copied()) {
            Some(word) => error.help(format!("did you mean '{word}'?")),
            None => error,
        },
        _ => error,
    })
}

fn wants(kind: OptionKind) -> String {
    match kind {
        OptionKind::Text => "text".into(),
        OptionKind::Names => "names separated by commas".into(),
        OptionKind::Count => "a whole number".into(),
        OptionKind::Positive => "a whole number of at least 1".into(),
        OptionKind::Bool => "true or false".into(),
        OptionKind::Bytes => "a number of bytes such as 1048576 or '64 MiB'".into(),
        OptionKind::Interval => "an interval such as '10 seconds'".into(),
        OptionKind::Timestamp => "a timestamp such as '2024-01-01 00:00:00', or milliseconds since 1970".into(),
        OptionKind::Char => "one ASCII character, or '\\t'".into(),
        OptionKind::OneOf(words) => format!("one of {}", words.join(", ")),
    }
}

fn wrong_kind(entry: &OptionEntry, text: &str, wants: &str) -> Error {
    Error::invalid_at(entry.span, format!("option {} is '{text}'; it takes {wants}", entry.name))
        .coded(Code::OptionValue)
}

fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number: u64 = text[..digits].parse().ok()?;
    let unit: u64 = match text[digits..].trim() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit)
}

fn parse_char(text: &str) -> Option<u8> {
    match text.as_bytes() {
        [one] if one.is_ascii() => Some(*one),
        b"\\t" => Some(b'\t'),
        _ => None,
    }
}

/// Microseconds of an interval without months: `10 seconds`, `1 hour 30 minutes`, `1.5 s`, `01:30:00`.
pub fn parse_interval(text: &str) -> Option<i64> {
    if text.contains(':') {
        return parse_clock(text.trim());
    }
    use arrow::compute::kernels::cast_utils::parse_interval_month_day_nano;
    let value = parse_interval_month_day_nano(text).ok()?;
    if value.months != 0 || value.nanoseconds % 1_000 != 0 {
        return None;
    }
    i64::from(value.days).checked_mul(86_400_000_000)?.checked_add(value.nanoseconds / 1_000)
}

/// `h:mm`, `h:mm:ss` or `h:mm:ss.ffffff`, with a sign or without.
fn parse_clock(text: &str) -> Option<i64> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(text) => (-1, text),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits =
        |text: &str| (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?;
    let sixty = |text: &str| (text.len() == 2).then(|| digits(text)).flatten().filter(|n: &i64| *n < 60);
    let mut parts = text.splitn(3, ':');
    let (hours, minutes) = (digits(parts.next()?)?, sixty(parts.next()?)?);
    let (seconds, part) = match parts.next() {
        None => (0, 0),
        Some(seconds) => match seconds.split_once('.') {
            None => (sixty(seconds)?, 0),
            Some((seconds, part)) if part.len() <= 6 => (sixty(seconds)?, digits(&format!("{part:0<6}"))?),
            Some(_) => return None,
        },
    };
    let seconds = hours.checked_mul(3_600)?.checked_add(minutes * 60 + seconds)?;
    Some(sign * seconds.checked_mul(1_000_000)?.checked_add(part)?)
}

/// Milliseconds since 1970 of a timestamp or a whole number.
pub fn parse_timestamp(text: &str) -> Option<i64> {
    if let Ok(millis) = text.parse() {
        return Some(millis);
    }
    arrow::compute::kernels::cast_utils::string_to_datetime(&chrono::Utc, text).ok().map(|t| t.timestamp_millis())
}
