//! The tables of `statements` as one automaton: the tokens before the cursor → the words and slots that may come next.

use std::collections::HashSet;
use std::sync::OnceLock;

use super::around::Tok;
use super::parts::{Slot, Takes};
use super::statements::{COLUMNS, ELEMENTS, PARTS, STATEMENTS};
use crate::parser::TokenKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edge {
    Word(&'static str),
    Sign(&'static str),
    Slot(Slot),
}

#[derive(Debug, Default)]
struct Node {
    edges: Vec<(Edge, usize)>,
    /// Nodes that are reached without a token.
    free: Vec<usize>,
}

/// The automaton of some statements.
#[derive(Debug)]
pub(super) struct Grammar {
    nodes: Vec<Node>,
}

/// Where a reading of the tokens stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct State {
    node: usize,
    inside: Option<Inside>,
}

/// Within a slot of several tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Inside {
    slot: Slot,
    /// Open brackets.
    depth: usize,
    /// The first token of the slot.
    since: usize,
}

/// What may come next.
#[derive(Debug, Default)]
pub(super) struct Expected {
    pub(super) words: Vec<&'static str>,
    pub(super) signs: Vec<&'static str>,
    pub(super) slots: Vec<Slot>,
    /// Slots that the cursor stands in, with their first token.
    pub(super) inside: Vec<(Slot, usize)>,
}

/// Of all statements.
pub(super) fn statements() -> &'static Grammar {
    static GRAMMAR: OnceLock<Grammar> = OnceLock::new();
    GRAMMAR.get_or_init(|| Grammar::new(STATEMENTS))
}

/// Of one element of CREATE STREAM's list.
pub(super) fn elements() -> &'static Grammar {
    static GRAMMAR: OnceLock<Grammar> = OnceLock::new();
    GRAMMAR.get_or_init(|| Grammar::new(ELEMENTS))
}

/// Of one element of CREATE TABLE's list.
pub(super) fn columns() -> &'static Grammar {
    static GRAMMAR: OnceLock<Grammar> = OnceLock::new();
    GRAMMAR.get_or_init(|| Grammar::new(COLUMNS))
}

/// Every keyword of the statements around queries.
pub(in crate::shell) fn statement_words() -> &'static HashSet<&'static str> {
    static WORDS: OnceLock<HashSet<&'static str>> = OnceLock::new();
    WORDS.get_or_init(|| {
        let edges = [statements(), elements(), columns()].into_iter().flat_map(|grammar| &grammar.nodes);
        let words = edges.flat_map(|node| &node.edges).filter_map(|(edge, _)| match edge {
            Edge::Word(word) => Some(*word),
            _ => None,
        });
        words.collect()
    })
}

impl Grammar {
    fn new(statements: &'static [&'static str]) -> Self {
        let mut grammar = Grammar { nodes: vec![Node::default()] };
        for statement in statements {
            let mut words = statement.split_whitespace().peekable();
            grammar.sequence(0, &mut words);
        }
        grammar
    }

    fn node(&mut self) -> usize {
        self.nodes.push(Node::default());
        self.nodes.len() - 1
    }

    fn edge(&mut self, from: usize, edge: Edge) -> usize {
        let to = self.node();
        self.nodes[from].edges.push((edge, to));
        to
    }

    /// Reads to the end, or to what closes a group or begins another choice; answers where it ends.
    fn sequence(&mut self, from: usize, words: &mut std::iter::Peekable<std::str::SplitWhitespace<'static>>) -> usize {
        let mut at = from;
        while let Some(word) = words.next_if(|word| !matches!(*word, "]" | "}" | "}*" | "|")) {
            at = match word {
                "[" | "{" => self.group(at, word == "[", words),
                word if word.starts_with('$') => {
                    let part = PARTS.iter().find(|(name, _)| *name == word).map_or("", |(_, part)| *part);
                    self.sequence(at, &mut part.split_whitespace().peekable())
                }
                word if Slot::named(word).is_some() => {
                    let slot = Slot::named(word).unwrap_or(Slot::New);
                    self.edge(at, Edge::Slot(slot))
                }
                word if word.starts_with(|c: char| c.is_ascii_alphabetic()) => self.edge(at, Edge::Word(word)),
                sign => self.edge(at, Edge::Sign(sign)),
            };
        }
        at
    }

    /// `[ … ]`, `{ … | … }` or `{ … }*`, behind its first bracket.
    fn group(
        &mut self,
        from: usize,
        optional: bool,
        words: &mut std::iter::Peekable<std::str::SplitWhitespace<'static>>,
    ) -> usize {
        let (begin, end) = (self.node(), self.node());
        self.nodes[from].free.push(begin);
        loop {
            let at = self.sequence(begin, words);
            self.nodes[at].free.push(end);
            match words.next() {
                Some("|") => {}
                Some("}*") => {
                    self.nodes[end].free.push(begin);
                    self.nodes[begin].free.push(end);
                    break;
                }
                _ => break,
            }
        }
        if optional {
            self.nodes[begin].free.push(end);
        }
        end
    }

    /// What may come behind these tokens of a statement. They are read once, from the first to the last.
    pub(super) fn expected(&self, toks: &[Tok<'_>]) -> Expected {
        let mut states = self.closed(vec![State { node: 0, inside: None }]);
        for n in 0..toks.len() {
            states = self.step(&states, toks, n);
        }
        let mut expected = Expected::default();
        for State { node, inside } in states {
            if let Some(Inside { slot, since, .. }) = inside {
                if !expected.inside.contains(&(slot, since)) {
                    expected.inside.push((slot, since));
                }
                continue;
            }
            for (edge, _) in &self.nodes[node].edges {
                match edge {
                    Edge::Word(word) if !expected.words.contains(word) => expected.words.push(word),
                    Edge::Sign(sign) if !expected.signs.contains(sign) => expected.signs.push(sign),
                    Edge::Slot(slot) if !expected.slots.contains(slot) => expected.slots.push(*slot),
                    _ => {}
                }
            }
        }
        expected
    }

    fn step(&self, states: &[State], toks: &[Tok<'_>], n: usize) -> Vec<State> {
        let tok = &toks[n];
        // A query goes on behind WITH by a word: a parenthesis begins a list of options.
        let begins_options = tok.is_sign("(") && n.checked_sub(1).is_some_and(|before| toks[before].is("WITH"));
        // Where a keyword may stand, it is no name.
        let is_keyword = states.iter().filter(|state| state.inside.is_none()).any(|state| {
            self.nodes[state.node].edges.iter().any(|(edge, _)| matches!(edge, Edge::Word(word) if tok.is(word)))
        });
        let mut next = Vec::new();
        for state in states {
            match state.inside {
                Some(Inside { slot, depth: 0, .. }) if begins_options && slot.takes() == Takes::Open => {}
                Some(inside) => next.extend(self.within(state.node, inside, tok)),
                None => {
                    for (edge, to) in &self.nodes[state.node].edges {
                        next.extend(self.take(*edge, *to, n, tok, is_keyword));
                    }
                }
            }
        }
        self.closed(next)
    }

    /// Takes a token by an edge.
    fn take(&self, edge: Edge, to: usize, n: usize, tok: &Tok<'_>, is_keyword: bool) -> Option<State> {
        let state = |inside| Some(State { node: to, inside });
        match edge {
            Edge::Word(word) => state(None).filter(|_| tok.is(word)),
            Edge::Sign(sign) => state(None).filter(|_| tok.is_sign(sign)),
            Edge::Slot(slot) if !slot.begins(tok) => None,
            Edge::Slot(slot) => match slot.takes() {
                Takes::One(_) => state(None).filter(|_| !is_keyword),
                Takes::Brackets => state(Some(Inside { slot, depth: 1, since: n })),
                Takes::Open => state(Some(Inside { slot, depth: usize::from(tok.is_sign("(")), since: n })),
                Takes::Dotted | Takes::Type => {
                    state(Some(Inside { slot, depth: 0, since: n })).filter(|_| !is_keyword || slot == Slot::Type)
                }
            },
        }
    }

    /// Takes a token within a slot. `node` is where the slot ends.
    fn within(&self, node: usize, inside: Inside, tok: &Tok<'_>) -> Option<State> {
        let opens = tok.is_sign("(") || inside.slot == Slot::Type && tok.is_sign("<");
        let closes = tok.is_sign(")") || inside.slot == Slot::Type && tok.is_sign(">");
        let depth = inside.depth.checked_add_signed(isize::from(opens) - isize::from(closes))?;
        let goes_on = Some(State { node, inside: Some(Inside { depth, ..inside }) });
        match inside.slot.takes() {
            Takes::Brackets if depth == 0 => Some(State { node, inside: None }),
            Takes::Brackets => goes_on,
            Takes::Open => goes_on.filter(|_| inside.depth > 0 || !self.ends(node, tok)),
            Takes::Dotted => goes_on.filter(|_| matches!(tok.text, ".") || tok.kind == TokenKind::Word),
            Takes::Type => goes_on.filter(|_| {
                let word = tok.is_any(&["PRECISION", "UNSIGNED", "WITH", "WITHOUT", "TIME", "ZONE"]);
                inside.depth > 0 || opens || word || tok.is_sign("[") || tok.is_sign("]")
            }),
            Takes::One(_) => None,
        }
    }

    /// Whether a word ends a query: it begins a clause that can't be part of one.
    fn ends(&self, node: usize, tok: &Tok<'_>) -> bool {
        const CLAUSES: &[&str] = &["OUTPUT", "TRIGGER", "STOP", "CHECKPOINT"];
        let leads = |state: &State| {
            self.nodes[state.node].edges.iter().any(|(edge, _)| matches!(edge, Edge::Word(word) if tok.is(word)))
        };
        tok.is_any(CLAUSES) && self.closed(vec![State { node, inside: None }]).iter().any(leads)
    }

    /// The states, and those that are reached from them without a token.
    fn closed(&self, states: Vec<State>) -> Vec<State> {
        let mut closed: Vec<State> = Vec::with_capacity(states.len() * 2);
        let mut todo = states;
        todo.reverse();
        while let Some(state) = todo.pop() {
            if closed.contains(&state) {
                continue;
            }
            closed.push(state);
            let at_end = match state.inside {
                None => true,
                Some(Inside { slot, depth, .. }) => {
                    depth == 0 && matches!(slot.takes(), Takes::Open | Takes::Dotted | Takes::Type)
                }
            };
            if !at_end {
                continue;
            }
            match state.inside {
                Some(_) => todo.push(State { node: state.node, inside: None }),
                None => {
                    let free = self.nodes[state.node].free.iter().rev();
                    todo.extend(free.map(|node| State { node: *node, inside: None }));
                }
            }
        }
        closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::parse_statements;
    use crate::shell::complete::around::Around;

    #[test]
    fn every_part_that_is_named_is_there() {
        let all = STATEMENTS.iter().chain(ELEMENTS).chain(COLUMNS).chain(PARTS.iter().map(|(_, part)| part));
        for word in all.flat_map(|text| text.split_whitespace()) {
            if word.starts_with('<') {
                assert!(Slot::named(word).is_some(), "{word}");
            } else if word.starts_with('$') {
                assert!(PARTS.iter().any(|(name, _)| *name == word), "{word}");
            }
        }
    }

    /// The page that describes the language has an example of every statement: each of its words must be one that was expected.
    #[test]
    fn the_examples_of_the_language_are_read() {
        let page = include_str!("../../../docs/sql.md");
        let mut examples = 0;
        for block in page.split("```sql\n").skip(1) {
            let block = block.split("```").next().unwrap_or_default();
            for parsed in parse_statements(block) {
                let Ok(parsed) = parsed else { continue };
                let text = format!("{} ", parsed.text);
                let around = Around::new(&text, text.len()).unwrap();
                let mut states = statements().closed(vec![State { node: 0, inside: None }]);
                for (n, tok) in around.before.iter().enumerate() {
                    states = statements().step(&states, &around.before, n);
                    assert!(!states.is_empty(), "{} is not expected in {text}", tok.text);
                }
                examples += 1;
            }
        }
        assert!(examples > 80, "{examples} examples");
    }
}
