//! Globs: `*`, `?` and `[a-z]` within a name, `**` for any directories, `{a,b}` for either.
//!
//! Knows text only; what is on the disk is the place's.

use super::place::is_hidden;
use crate::error::{Error, Result};

/// One component of a glob.
#[derive(Debug, Clone)]
pub enum Part {
    Name(String),
    Pattern(::glob::Pattern),
    /// `**`: any number of directories.
    Deep,
}

/// A hidden name matches only a pattern that begins as it does.
pub fn matches(pattern: &::glob::Pattern, name: &str) -> bool {
    let asked = name.chars().next().is_some_and(|first| pattern.as_str().starts_with(first));
    (!is_hidden(name) || asked) && pattern.matches(name)
}

/// Whether these components match a path, with `/`, or a directory above it.
pub fn covers(parts: &[Part], path: &str) -> bool {
    let Some((part, rest)) = parts.split_first() else { return true };
    let (name, below) = path.split_once('/').map_or((path, None), |(name, below)| (name, Some(below)));
    // A path that ends before the glob does is matched only by what `**` leaves out.
    let deeper = |parts: &[Part]| match below {
        Some(below) => covers(parts, below),
        None => parts.iter().all(|part| matches!(part, Part::Deep)),
    };
    match part {
        Part::Name(wanted) => wanted == name && deeper(rest),
        Part::Pattern(pattern) => matches(pattern, name) && deeper(rest),
        Part::Deep => covers(rest, path) || below.is_some_and(|below| covers(parts, below)),
    }
}

/// The name of a file or directory that may not be there yet.
#[derive(Debug, Clone)]
pub enum Name {
    Known(String),
    /// It begins and ends so.
    Like(String, String),
}

impl Name {
    fn may_be(&self, wanted: &str) -> bool {
        match self {
            Name::Known(name) => name == wanted,
            Name::Like(start, end) => wanted.starts_with(start.as_str()) && wanted.ends_with(end.as_str()),
        }
    }

    fn may_match(&self, pattern: &::glob::Pattern) -> bool {
        let (start, end) = match self {
            Name::Known(name) => return matches(pattern, name),
            Name::Like(start, end) => (start, end),
        };
        let text = pattern.as_str();
        let first = text.find(['*', '?', '[']).unwrap_or(text.len());
        let last = text.rfind(['*', '?', ']']).map_or(0, |at| at + 1);
        let (head, tail) = (&text[..first], &text[last..]);
        (head.starts_with(start.as_str()) || start.starts_with(head))
            && (tail.ends_with(end.as_str()) || end.ends_with(tail))
    }

    fn is_hidden(&self) -> bool {
        matches!(self, Name::Known(name) if is_hidden(name))
    }
}

/// Whether these components can match a path of such names, or a directory above it.
pub fn may_cover(parts: &[Part], names: &[Name]) -> bool {
    let Some((part, rest)) = parts.split_first() else { return !names.iter().any(Name::is_hidden) };
    let Some((name, below)) = names.split_first() else { return parts.iter().all(|part| matches!(part, Part::Deep)) };
    match part {
        Part::Name(wanted) => name.may_be(wanted) && may_cover(rest, below),
        Part::Pattern(pattern) => name.may_match(pattern) && may_cover(rest, below),
        Part::Deep => may_cover(rest, names) || (!name.is_hidden() && may_cover(parts, below)),
    }
}

/// Whether a path holds a pattern.
pub fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

/// The part of a path before its first pattern, and the rest.
pub fn split_root(path: &str) -> (&str, &str) {
    let first = path.find(['*', '?', '[', '{']).unwrap_or(path.len());
    match path[..first].rfind('/') {
        Some(0) => ("/", &path[1..]),
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => ("", path),
    }
}

/// `a{b,c}d` → `abd`, `acd`; nested ones too.
pub fn braces(pattern: &str) -> Vec<String> {
    let Some(open) = pattern.find('{') else { return vec![pattern.to_string()] };
    let (mut depth, mut commas, mut close) = (0, vec![open], None);
    for (at, c) in pattern.char_indices().skip_while(|(at, _)| *at < open) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => commas.push(at),
            _ => {}
        }
        if depth == 0 {
            close = Some(at);
            break;
        }
    }
    // A brace that nothing closes is an ordinary character.
    let Some(close) = close else { return vec![pattern.to_string()] };
    commas.push(close);
    let choices = commas.windows(2).map(|pair| &pattern[pair[0] + 1..pair[1]]);
    choices.flat_map(|choice| braces(&format!("{}{choice}{}", &pattern[..open], &pattern[close + 1..]))).collect()
}

/// The components of a glob, which stands in the path `written`.
///
/// # Errors
/// InvalidInput: a malformed pattern.
pub fn parts(written: &str, pattern: &str) -> Result<Vec<Part>> {
    let part = |name: &str| match name {
        "**" => Ok(Part::Deep),
        name if name.contains(['*', '?', '[']) => ::glob::Pattern::new(name)
            .map(Part::Pattern)
            .map_err(|e| Error::invalid(format!("path {written}: {} at character {} of {name}", e.msg, e.pos + 1))),
        name => Ok(Part::Name(name.to_string())),
    };
    pattern.split('/').filter(|name| !name.is_empty() && *name != ".").map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_are_every_choice() {
        assert_eq!(braces("a{b,c{d,e}}f"), ["abf", "acdf", "acef"]);
        assert_eq!(braces("{,x}y"), ["y", "xy"]);
        assert_eq!(braces("a{b"), ["a{b"]);
        assert_eq!(braces("{a,b}{c,d}"), ["ac", "ad", "bc", "bd"]);
    }

    #[test]
    fn the_root_is_what_stands_before_the_first_pattern() {
        assert_eq!(split_root("/a/b*/c"), ("/a", "b*/c"));
        assert_eq!(split_root("/*"), ("/", "*"));
        assert_eq!(split_root("x?/y"), ("", "x?/y"));
    }

    #[test]
    fn a_glob_covers_what_it_matches_and_what_is_below() {
        let covers = |glob: &str, path: &str| covers(&parts(glob, glob).unwrap_or_default(), path);
        for (glob, path) in
            [("a*", "ab"), ("a*", "ab/c/d"), ("**/d", "b/c/d"), ("**/d", "d"), ("**", "a/b"), ("k=?/*", "k=1/x")]
        {
            assert!(covers(glob, path), "{glob} {path}");
        }
        for (glob, path) in [("a*", "b"), ("a*/c", "ab"), ("**/d", "b/c"), ("*", ".hidden"), ("k=?/*", "k=1")] {
            assert!(!covers(glob, path), "{glob} {path}");
        }
    }

    #[test]
    fn a_malformed_pattern_is_named() {
        let error = parts("in/a***b", "a***b").err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.starts_with("path in/a***b: "), "{error}");
    }
}
