//! The stable codes of errors. `docs/errors.md` says of each what it means and what to do; `\h CODE` shows that.

/// What kind of error it is. The two digits in front say who must act; with `00` behind them stands what has no finer code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    Invalid,
    Syntax,
    UnknownOption,
    OptionValue,
    UnknownSetting,
    UnknownCommand,
    Refused,
    NotYet,
    UnknownTable,
    UnknownColumn,
    UnknownFunction,
    Ambiguous,
    Types,
    UnknownQuery,
    Clauses,
    NameTaken,
    BadRecord,
    Corrupt,
    Conflict,
    Io,
    Computation,
    DivisionByZero,
    Overflow,
    BadCast,
    OutOfResources,
    Cancelled,
    Internal,
}

impl Code {
    /// Every code.
    pub const ALL: [Code; 27] = [
        Code::Invalid,
        Code::Syntax,
        Code::UnknownOption,
        Code::OptionValue,
        Code::UnknownSetting,
        Code::UnknownCommand,
        Code::Refused,
        Code::NotYet,
        Code::UnknownTable,
        Code::UnknownColumn,
        Code::UnknownFunction,
        Code::Ambiguous,
        Code::Types,
        Code::UnknownQuery,
        Code::Clauses,
        Code::NameTaken,
        Code::BadRecord,
        Code::Corrupt,
        Code::Conflict,
        Code::Io,
        Code::Computation,
        Code::DivisionByZero,
        Code::Overflow,
        Code::BadCast,
        Code::OutOfResources,
        Code::Cancelled,
        Code::Internal,
    ];

    /// As it is shown: `E0203`.
    pub fn name(self) -> &'static str {
        match self {
            Code::Invalid => "E0100",
            Code::Syntax => "E0101",
            Code::UnknownOption => "E0102",
            Code::OptionValue => "E0103",
            Code::UnknownSetting => "E0104",
            Code::UnknownCommand => "E0105",
            Code::Refused => "E0200",
            Code::NotYet => "E0201",
            Code::UnknownTable => "E0202",
            Code::UnknownColumn => "E0203",
            Code::UnknownFunction => "E0204",
            Code::Ambiguous => "E0205",
            Code::Types => "E0206",
            Code::UnknownQuery => "E0207",
            Code::Clauses => "E0208",
            Code::NameTaken => "E0209",
            Code::BadRecord => "E0300",
            Code::Corrupt => "E0400",
            Code::Conflict => "E0500",
            Code::Io => "E0600",
            Code::Computation => "E0700",
            Code::DivisionByZero => "E0701",
            Code::Overflow => "E0702",
            Code::BadCast => "E0703",
            Code::OutOfResources => "E0704",
            Code::Cancelled => "E0800",
            Code::Internal => "E0900",
        }
    }

    /// Whether a finer code may take its place.
    pub(super) fn is_coarse(self) -> bool {
        matches!(self, Code::Invalid | Code::Refused | Code::Computation)
    }
}

const PAGE: &str = include_str!("../../docs/errors.md");

/// What the page says of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explained {
    /// `E0203`
    pub code: &'static str,
    pub means: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
}

/// Every code that the page lists, in its order.
pub fn explained() -> impl Iterator<Item = Explained> {
    PAGE.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.trim_end_matches(" |").split(" | ");
        let (code, means, remedy) = (cells.next()?, cells.next()?, cells.next()?);
        let is_code = code.strip_prefix('E').is_some_and(|digits| digits.parse::<u16>().is_ok());
        is_code.then_some(Explained { code, means, remedy })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_every_code_once_and_no_other() {
        let mut listed: Vec<&str> = explained().map(|explained| explained.code).collect();
        let mut known: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
        let in_order = listed.clone();
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(listed, known);
        assert_eq!(listed, in_order);
        let mut once = known.clone();
        once.dedup();
        assert_eq!(once.len(), Code::ALL.len());
        let named = include_str!("codes.rs").matches(concat!("=> \"", "E0")).count();
        assert_eq!(named, Code::ALL.len(), "a code is not in ALL");
        for one in explained() {
            assert!(one.means.len() > 5 && one.remedy.len() > 5, "{one:?}");
        }
    }
}
