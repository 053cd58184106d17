//! When the next batch may begin, by the clock (rules T1 to T3).

use crate::parser::Trigger;

/// The next moment of `TRIGGER EVERY`, on a grid from 1970, after a batch that began at `began`: boundaries that were
/// missed are not made up for. The first batch begins at once.
pub fn next_at(trigger: Trigger, began: Option<i64>) -> Option<i64> {
    let (Trigger::Every(interval), Some(began)) = (trigger, began) else { return None };
    let every = interval.micros / 1_000;
    if every <= 0 {
        return None;
    }
    Some(began.div_euclid(every).saturating_mul(every).saturating_add(every))
}

/// Whether the query ends by itself.
pub fn ends(trigger: Trigger) -> bool {
    matches!(trigger, Trigger::AvailableNow | Trigger::Once)
}
