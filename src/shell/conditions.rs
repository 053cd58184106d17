//! `\if`, `\elif`, `\else`, `\endif`: which lines of a script are run.

use crate::error::{Error, Result};

/// The branches that are open, the innermost last.
#[derive(Debug, Default)]
pub(super) struct Conditions(Vec<Branch>);

#[derive(Debug)]
struct Branch {
    /// What stands here is run.
    active: bool,
    /// One of the branches so far was, or none may be, as the whole stands where nothing is run.
    taken: bool,
    otherwise: bool,
}

impl Conditions {
    /// Whether statements and commands are run.
    pub(super) fn active(&self) -> bool {
        self.0.last().is_none_or(|branch| branch.active)
    }

    /// How many are open: what a script opens it must end.
    pub(super) fn depth(&self) -> usize {
        self.0.len()
    }

    /// Whether the expression behind the next `\elif` decides anything.
    pub(super) fn elif_is_asked(&self) -> bool {
        self.0.last().is_some_and(|branch| !branch.taken)
    }

    /// `\if`; where nothing is run the expression means nothing.
    pub(super) fn begin(&mut self, holds: bool) {
        let active = self.active() && holds;
        let taken = active || !self.active();
        self.0.push(Branch { active, taken, otherwise: false });
    }

    /// `\elif`
    ///
    /// # Errors
    /// There is no `\if`, or `\else` was before.
    pub(super) fn elif(&mut self, base: usize, holds: bool) -> Result<()> {
        let branch = self.innermost(base, "\\elif")?;
        if branch.otherwise {
            return Err(Error::invalid("\\elif stands behind \\else"));
        }
        branch.active = !branch.taken && holds;
        branch.taken |= branch.active;
        Ok(())
    }

    /// `\else`
    ///
    /// # Errors
    /// There is no `\if`, or a second `\else`.
    pub(super) fn otherwise(&mut self, base: usize) -> Result<()> {
        let branch = self.innermost(base, "\\else")?;
        if std::mem::replace(&mut branch.otherwise, true) {
            return Err(Error::invalid("a second \\else"));
        }
        branch.active = !branch.taken;
        branch.taken = true;
        Ok(())
    }

    /// `\endif`
    ///
    /// # Errors
    /// There is no `\if`.
    pub(super) fn end(&mut self, base: usize) -> Result<()> {
        self.innermost(base, "\\endif")?;
        self.0.pop();
        Ok(())
    }

    /// Ends what a script has left open; answers how many.
    pub(super) fn close(&mut self, base: usize) -> usize {
        let open = self.0.len().saturating_sub(base);
        self.0.truncate(base);
        open
    }

    fn innermost(&mut self, base: usize, word: &str) -> Result<&mut Branch> {
        let open = self.0.len() > base;
        self.0.last_mut().filter(|_| open).ok_or_else(|| Error::invalid(format!("{word} without an \\if")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What of the letters runs; `i0` and `i1` are `\if`, `e0`, `e1` `\elif`, `l` `\else`, `.` `\endif`.
    fn run(script: &str) -> String {
        let mut conditions = Conditions::default();
        let mut ran = String::new();
        for word in script.split(' ') {
            match word {
                "i0" | "i1" => conditions.begin(word == "i1"),
                "e0" | "e1" => conditions.elif(0, word == "e1").unwrap(),
                "l" => conditions.otherwise(0).unwrap(),
                "." => conditions.end(0).unwrap(),
                word if conditions.active() => ran.push_str(word),
                _ => {}
            }
        }
        ran
    }

    #[test]
    fn one_branch_is_run() {
        assert_eq!(run("A i1 B e1 C l D . E"), "ABE");
        assert_eq!(run("A i0 B e1 C e1 D l E . F"), "ACF");
        assert_eq!(run("A i0 B e0 C l D . E"), "ADE");
    }

    #[test]
    fn nothing_inside_a_branch_that_is_not_run_is_run() {
        assert_eq!(run("i0 i1 A e1 B l C . D l E . F"), "EF");
        assert_eq!(run("i1 i0 A l B . C ."), "BC");
    }

    #[test]
    fn what_is_out_of_place_is_refused() {
        let mut conditions = Conditions::default();
        assert_eq!(conditions.end(0).unwrap_err().to_string(), "\\endif without an \\if");
        conditions.begin(true);
        // An included script can't end what it did not begin.
        assert_eq!(conditions.otherwise(1).unwrap_err().to_string(), "\\else without an \\if");
        conditions.otherwise(0).unwrap();
        assert_eq!(conditions.otherwise(0).unwrap_err().to_string(), "a second \\else");
        assert_eq!(conditions.elif(0, true).unwrap_err().to_string(), "\\elif stands behind \\else");
        assert_eq!((conditions.close(0), conditions.active()), (1, true));
    }
}
