//! `$name`, `${name}` and `${name:default}` in records: variables of `let` and of loops, the test's folder, the environment.

use std::collections::{BTreeMap, BTreeSet};

use subst::{Env, VariableMap};

use crate::clock::Clock;

/// What names stand for.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    /// `control substitution on`: names of the environment count too, and `\$` is a dollar.
    pub on: bool,
    values: BTreeMap<String, String>,
    /// Those of loops.
    rounds: BTreeSet<String>,
}

/// The time in nanoseconds, as sqllogictest has it.
const NOW: &str = "__NOW__";

fn now() -> String {
    (i128::from(Clock::system().now()) * 1_000_000).to_string()
}

impl Variables {
    /// Gives a name a value.
    pub fn set(&mut self, name: &str, value: String) {
        self.values.insert(name.to_string(), value);
    }

    /// Begins a round of a loop.
    pub fn begin_round(&mut self, name: &str, value: String) {
        self.rounds.insert(name.to_string());
        self.set(name, value);
    }

    /// A text in which only the names of loops are replaced, written `${name}`.
    pub fn rounds(&self, text: &str) -> String {
        let mut out = text.to_string();
        for name in &self.rounds {
            if let Some(value) = self.values.get(name) {
                out = out.replace(&format!("${{{name}}}"), value);
            }
        }
        out
    }

    /// A text with its names replaced. Without `control substitution on` only loops' names are, written `${name}`.
    ///
    /// # Errors
    /// What is wrong: a name that stands for nothing, a brace that is not closed, the test's folder without substitution.
    pub fn replace(&self, text: &str) -> Result<String, String> {
        if self.on {
            return subst::substitute(text, self).map_err(|e| format!("substitution: {e}"));
        }
        refuse_folder(text)?;
        Ok(self.rounds(text))
    }

    /// A shell's text, in which `$` is the shell's own.
    ///
    /// # Errors
    /// The test's folder without substitution.
    pub fn replace_in_command(&self, text: &str) -> Result<String, String> {
        let mut out = text.to_string();
        if !self.on {
            refuse_folder(text)?;
            return Ok(self.rounds(text));
        }
        // Longer names first: $ab is not $a with a b behind it.
        for (name, value) in self.values.iter().rev() {
            out = out.replace(&format!("${{{name}}}"), value).replace(&format!("${name}"), value);
        }
        if out.contains(NOW) {
            out = out.replace(&format!("${{{NOW}}}"), &now()).replace(&format!("${NOW}"), &now());
        }
        Ok(out)
    }

    /// A text that stands for itself where names are replaced.
    pub fn escape(&self, text: &str) -> String {
        text.replace('\\', "\\\\").replace('$', "\\$")
    }
}

/// Without substitution the folder's name would be the name of a folder.
fn refuse_folder(text: &str) -> Result<(), String> {
    match ["$__TEST_DIR__", "${__TEST_DIR__}"].iter().find(|name| text.contains(**name)) {
        Some(name) => Err(format!("{name} is the file's folder only behind control substitution on")),
        None => Ok(()),
    }
}

impl<'a> VariableMap<'a> for Variables {
    type Value = String;

    fn get(&'a self, name: &str) -> Option<String> {
        let own = self.values.get(name).cloned().or_else(|| (name == NOW).then(now));
        own.or_else(|| Env.get(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced() {
        let mut variables = Variables::default();
        variables.begin_round("i", "3".into());
        assert_eq!(variables.replace("$i ${i} ${j}").as_deref(), Ok("$i 3 ${j}"));
        assert_eq!(variables.replace_in_command("echo $i ${i}").as_deref(), Ok("echo $i 3"));
        variables.on = true;
        assert_eq!(variables.replace("$i ${i} ${j:4} \\$i").as_deref(), Ok("3 3 4 $i"));
        assert!(variables.replace("${no_such_name}").is_err());
        assert!(variables.replace("$__NOW__").unwrap().parse::<i128>().unwrap() > 1_700_000_000_000_000_000);
        assert_eq!(variables.replace_in_command("echo $i ${i} $HOME").as_deref(), Ok("echo 3 3 $HOME"));
        variables.on = false;
        assert!(variables.replace("'$__TEST_DIR__/out'").is_err(), "it would be a folder of that name");
        assert!(variables.replace_in_command("rm -r ${__TEST_DIR__}/out").is_err());
    }
}
