//! What queries have to say while a view has the terminal: the last of it is shown for a while, and all of it when the view is
//! left.

use std::time::Duration;

use crate::shell::output::say;
use crate::shell::turns::Turns;

/// A notice is shown for so long.
const SHOWN: Duration = Duration::from_secs(6);

/// So many are kept for the end.
const MOST: usize = 200;

/// Notices that came since the view was opened.
#[derive(Default)]
pub(super) struct Heard {
    notices: Vec<String>,
    last: Option<(Duration, String)>,
    unheard: usize,
}

impl Heard {
    /// Takes what is new; answers whether something else is to be shown.
    pub(super) fn hear(&mut self, turns: &Turns, now: Duration) -> bool {
        let mut heard = false;
        for notice in turns.take_notices() {
            self.last = Some((now, notice.clone()));
            match self.notices.len() < MOST {
                true => self.notices.push(notice),
                false => self.unheard += 1,
            }
            heard = true;
        }
        if self.last.as_ref().is_some_and(|(at, _)| now.saturating_sub(*at) > SHOWN) {
            self.last = None;
            heard = true;
        }
        heard
    }

    /// The one that is shown.
    pub(super) fn notice(&self) -> Option<&str> {
        self.last.as_ref().map(|(_, notice)| notice.as_str())
    }

    /// Says them all, on the terminal that is everybody's again.
    pub(super) fn say_all(&mut self) {
        self.notices.drain(..).for_each(|notice| say(&notice));
        if self.unheard > 0 {
            say(&format!("({} more notices are not kept)", self.unheard));
        }
    }
}
