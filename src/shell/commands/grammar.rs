//! The grammar of each statement, from the page that describes the language: it is written once.

use crate::error::closest;

const PAGE: &str = include_str!("../../../docs/sql.md");

/// A part of the page.
pub(super) struct Section {
    pub(super) title: &'static str,
    /// The syntax, where it has one.
    pub(super) grammar: Option<&'static str>,
    /// The text below, to the next title.
    text: &'static str,
}

/// Every part of the page that speaks of a statement or has a grammar.
pub(super) fn sections() -> Vec<Section> {
    let mut sections = Vec::new();
    let mut starts: Vec<usize> = PAGE.match_indices("\n#").map(|(at, _)| at + 1).collect();
    starts.push(PAGE.len());
    for ends in starts.windows(2) {
        let (title, text) = PAGE[ends[0]..ends[1]].split_once('\n').unwrap_or_default();
        sections.push(Section { title: title.trim_start_matches('#').trim(), grammar: grammar(text), text });
    }
    sections
}

impl Section {
    /// The words in capitals of its title, which begin the statements it speaks of: `STOP, PAUSE, RESUME`.
    pub(super) fn statements(&self) -> Vec<String> {
        let is_keyword = |word: &&str| word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase());
        let phrase = |part: &str| part.split_whitespace().take_while(is_keyword).collect::<Vec<_>>().join(" ");
        let phrases = self.title.split(", ").map(phrase);
        phrases.filter(|phrase| !phrase.is_empty() && self.grammar.is_some()).collect()
    }

    /// The first paragraph below the grammar.
    fn summary(&self) -> &'static str {
        let behind = self.grammar.map_or(self.text, |grammar| {
            self.text
                .find(grammar)
                .map_or("", |at| self.text[at + grammar.len()..].trim_start().trim_start_matches("```"))
        });
        let paragraph = behind.trim_start().split("\n\n").next().unwrap_or_default();
        if paragraph.starts_with(['|', '`', '-', '#']) { "" } else { paragraph }
    }
}

impl Section {
    /// What a person is shown of it: its grammar and what that means, or all of it where it has none. Links are their words.
    pub(super) fn shown(&self) -> String {
        let summary = self.summary();
        let text = match self.grammar {
            None if summary.is_empty() => self.text.trim().to_string(),
            None => summary.to_string(),
            Some(grammar) => format!("{grammar}\n\n{summary}"),
        };
        let mut plain = String::new();
        let mut rest = text.as_str();
        while let Some((front, words, behind)) = link(rest) {
            plain.extend([front, words]);
            rest = behind;
        }
        plain + rest
    }
}

/// The text in front of the first link, its words, and what is behind it.
fn link(text: &str) -> Option<(&str, &str, &str)> {
    let middle = text.find("](")?;
    let open = text[..middle].rfind('[')?;
    let close = middle + text[middle..].find(')')?;
    Some((&text[..open], &text[open + 1..middle], &text[close + 1..]))
}

/// The first section that speaks of a function of ours, as in `session_window(`.
pub(super) fn of_function(name: &str) -> Option<Section> {
    let call = format!("{}(", name.to_lowercase());
    let is_name = name.len() > 2 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    sections().into_iter().find(|section| is_name && section.text.to_lowercase().contains(&call))
}

/// What a text asks for: the sections of a statement whose first words are these, or the one of that title.
pub(super) fn find(asked: &str) -> Vec<Section> {
    let asked = asked.trim().trim_end_matches(';').to_uppercase();
    // `create` of CREATE SINK, and `drop stream` of DROP.
    let begins = |phrase: &str| phrase.starts_with(&format!("{asked} ")) || asked.starts_with(&format!("{phrase} "));
    let (mut exact, mut wider) = (Vec::new(), Vec::new());
    for section in sections() {
        let statements = section.statements();
        if statements.contains(&asked) {
            exact.push(section);
        } else if statements.iter().any(|phrase| begins(phrase)) || section.title.eq_ignore_ascii_case(&asked) {
            wider.push(section);
        }
    }
    if exact.is_empty() { wider } else { exact }
}

/// The names of all statements.
pub fn statements() -> Vec<String> {
    let mut statements: Vec<String> = sections().iter().flat_map(Section::statements).collect();
    statements.sort();
    statements.dedup();
    statements
}

/// The statement that was meant.
pub(super) fn closest_statement(asked: &str) -> Option<String> {
    let statements = statements();
    closest(&asked.to_uppercase(), statements.iter().map(String::as_str)).map(str::to_string)
}

/// The first block of a section that is no example.
fn grammar(text: &'static str) -> Option<&'static str> {
    let (_, block) = text.split_once("```text\n")?;
    let (grammar, _) = block.split_once("\n```")?;
    (!grammar.starts_with(['>', '-'])).then_some(grammar)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_of_the_language_has_its_grammar() {
        for statement in [
            "ADVANCE CLOCK",
            "ALTER QUERY",
            "AWAIT",
            "CLOSE STREAM",
            "COPY",
            "CRASH QUERY",
            "CREATE EXTERNAL TABLE",
            "CREATE SINK",
            "CREATE STREAM",
            "CREATE TABLE",
            "CREATE VIEW",
            "DELETE",
            "DESCRIBE",
            "DROP",
            "EXPLAIN",
            "INSERT INTO",
            "PAUSE",
            "RESET",
            "RESUME",
            "SELECT",
            "SET",
            "SHOW",
            "START QUERY",
            "STEP QUERY",
            "STOP",
            "UPDATE",
            "VERIFY QUERY",
            "WATCH",
        ] {
            let found = find(statement);
            assert!(!found.is_empty(), "{statement}");
            let first = statement.split(' ').next().unwrap_or_default();
            assert!(found.iter().any(|s| s.grammar.is_some_and(|g| g.contains(first))), "{statement}");
        }
    }

    #[test]
    fn sections_are_shown_without_their_links() {
        assert_eq!(link("a [b](c.md#d) e [f](g)"), Some(("a ", "b", " e [f](g)")));
        assert!(link("a [1] (b)").is_none());
        for section in sections() {
            let shown = section.shown();
            assert!(!shown.contains("](#") && !shown.contains(".md#"), "{}: {shown}", section.title);
        }
        for title in ["file", "stdin", "OVER"] {
            assert!(find(title).iter().all(|section| !section.shown().trim().is_empty()), "{title}");
        }
        assert!(of_function("session_window").is_some() && of_function("late_rows").is_some());
        assert!(of_function("no such").is_none());
    }

    #[test]
    fn a_word_finds_all_that_begins_with_it() {
        let titles = |asked: &str| find(asked).iter().map(|section| section.title).collect::<Vec<_>>();
        assert_eq!(titles("start query;"), ["START QUERY"]);
        assert_eq!(titles("pause"), ["STOP, PAUSE, RESUME"]);
        assert!(titles("create").len() > 3, "{:?}", titles("create"));
        assert_eq!(titles("windows"), ["Windows"]);
        assert!(titles("nothing").is_empty());
        assert_eq!(closest_statement("strat query").as_deref(), Some("START QUERY"));
    }

    #[test]
    fn a_section_has_a_summary() {
        let found = find("CREATE VIEW");
        assert!(found[0].summary().starts_with("A name for a query"), "{}", found[0].summary());
    }
}
