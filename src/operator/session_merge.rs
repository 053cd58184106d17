//! Which rows and sessions become one session: intervals of one key, in order of their starts.

use super::session_index::{Group, Session};
use crate::state::Slot;

/// One row of the batch: its key's number, its session as it is by itself, and its number in the batch.
pub struct Entry {
    pub group: Group,
    pub start: i64,
    pub end: i64,
    pub row: u32,
}

/// A session that has rows of the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touched {
    pub group: Group,
    pub start: i64,
    pub end: i64,
    /// The number of one of its rows.
    pub row: u32,
}

/// What a batch makes of the sessions that it touches.
#[derive(Default)]
pub struct Merged {
    pub sessions: Vec<Touched>,
    /// For each row of the batch the number of its session.
    pub of_row: Vec<usize>,
    /// Sessions that were there before, and the numbers of those that they are part of now.
    pub old: Vec<(Session, u32)>,
}

/// Merges a batch's rows of one key, in order of their starts, with the sessions that are remembered of it.
pub fn merge_key(rows: &[Entry], sessions: &mut Vec<Session>, merged: &mut Merged) {
    let latest = rows.iter().map(|row| row.end).fold(i64::MIN, i64::max);
    let low = sessions.partition_point(|session| session.end < rows[0].start);
    let high = low + sessions[low..].partition_point(|session| session.start <= latest);
    let mut now = Vec::new();
    let mut grows = None;
    let mut old = sessions[low..high].iter().copied().peekable();
    let mut rows = rows.iter().peekable();
    loop {
        let old_first = match (old.peek(), rows.peek()) {
            (Some(session), Some(row)) => session.start <= row.start,
            (None, None) => break,
            (session, _) => session.is_some(),
        };
        if old_first {
            let Some(session) = old.next() else { break };
            reach(&mut grows, session.start, session.end, &mut now, merged).old.push(session);
        } else {
            let Some(row) = rows.next() else { break };
            let grows = reach(&mut grows, row.start, row.end, &mut now, merged);
            let number = *grows.number.get_or_insert_with(|| {
                let Entry { group, end, row, .. } = *row;
                merged.sessions.push(Touched { group, start: grows.session.start, end, row });
                (merged.sessions.len() - 1) as u32
            });
            merged.of_row[row.row as usize] = number as usize;
        }
    }
    settle(grows, &mut now, merged);
    sessions.splice(low..high, now);
}

/// A session that may still grow.
struct Growing {
    session: Session,
    /// What it was before the batch.
    old: Vec<Session>,
    /// Its number, once a row of the batch is in it.
    number: Option<u32>,
}

/// The session that what begins at `start` belongs to: the one that grows if it reaches that far (rule S1: exactly is enough).
fn reach<'a>(
    grows: &'a mut Option<Growing>,
    start: i64,
    end: i64,
    now: &mut Vec<Session>,
    merged: &mut Merged,
) -> &'a mut Growing {
    if grows.as_ref().is_some_and(|grows| start > grows.session.end) {
        settle(grows.take(), now, merged);
    }
    let new = || Growing { session: Session { start, end, slot: Slot::MAX }, old: Vec::new(), number: None };
    let grows = grows.get_or_insert_with(new);
    grows.session.end = grows.session.end.max(end);
    grows
}

/// Ends a session: nothing more reaches it.
fn settle(grows: Option<Growing>, now: &mut Vec<Session>, merged: &mut Merged) {
    let Some(Growing { session, old, number }) = grows else { return };
    match number {
        Some(number) => {
            merged.sessions[number as usize].end = session.end;
            merged.old.extend(old.into_iter().map(|old| (old, number)));
            now.push(session);
        }
        // No row of the batch has touched it.
        None => now.extend(old),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sessions that rows make, one after the other, whatever their order.
    fn all_at_once(rows: &[(i64, i64)]) -> Vec<(i64, i64)> {
        let mut sessions: Vec<(i64, i64)> = Vec::new();
        for (start, end) in rows {
            let (mut start, mut end) = (*start, *end);
            sessions.retain(|(from, to)| {
                let touches = *from <= end && start <= *to;
                if touches {
                    (start, end) = (start.min(*from), end.max(*to));
                }
                !touches
            });
            sessions.push((start, end));
        }
        sessions.sort_unstable();
        sessions
    }

    fn merge(rows: &[(i64, i64)], sessions: &mut Vec<Session>) -> Merged {
        let entry =
            |(row, (start, end)): (usize, &(i64, i64))| Entry { group: 7, start: *start, end: *end, row: row as u32 };
        let mut entries: Vec<Entry> = rows.iter().enumerate().map(entry).collect();
        entries.sort_unstable_by_key(|entry| entry.start);
        let mut merged = Merged { of_row: vec![usize::MAX; rows.len()], ..Merged::default() };
        merge_key(&entries, sessions, &mut merged);
        merged
    }

    #[test]
    fn a_row_that_reaches_two_sessions_makes_them_one() {
        let session = |start, end, slot| Session { start, end, slot };
        let before = vec![session(0, 5, 1), session(25, 35, 2), session(40, 50, 3), session(60, 70, 4)];
        let mut sessions = before.clone();
        let merged = merge(&[(30, 40), (80, 90), (30, 31)], &mut sessions);
        let touched = |start, end, row| Touched { group: 7, start, end, row };
        assert_eq!(merged.sessions, [touched(25, 50, 0), touched(80, 90, 1)]);
        assert_eq!(merged.of_row, [0, 1, 0]);
        assert_eq!(merged.old, [(before[1], 0), (before[2], 0)]);
        assert_eq!(sessions.len(), 4);
        assert_eq!((sessions[0], sessions[2]), (before[0], before[3]), "what no row touches stays as it was");
    }

    #[test]
    fn batches_make_the_sessions_of_all_rows() {
        let mut seed = 1u64;
        let mut below = |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((seed >> 33) % n) as i64
        };
        for _ in 0..500 {
            let (mut sessions, mut all) = (Vec::new(), Vec::new());
            for _ in 0..1 + below(6) {
                let rows: Vec<(i64, i64)> = (0..1 + below(8)).map(|_| below(200) - 100).map(|at| (at, at)).collect();
                let rows: Vec<(i64, i64)> = rows.into_iter().map(|(at, _)| (at, at + 1 + below(12))).collect();
                let before = sessions.clone();
                let merged = merge(&rows, &mut sessions);
                all.extend(rows.iter().copied());
                let now: Vec<(i64, i64)> = sessions.iter().map(|s: &Session| (s.start, s.end)).collect();
                assert_eq!(now, all_at_once(&all), "{all:?}");
                for ((start, end), number) in rows.iter().zip(&merged.of_row) {
                    let session = merged.sessions[*number];
                    assert!(session.start <= *start && *end <= session.end, "a row is in its session");
                }
                for (old, number) in &merged.old {
                    let session = merged.sessions[*number as usize];
                    assert!(before.contains(old) && session.start <= old.start && old.end <= session.end);
                }
                let is_merged = |old: &Session| merged.old.iter().any(|(merged, _)| merged == old);
                let kept = before.iter().filter(|old| sessions.contains(old) && !is_merged(old)).count();
                assert_eq!(kept + merged.old.len(), before.len(), "each is kept or absorbed");
                let changed: Vec<_> = merged.sessions.iter().map(|s| (s.start, s.end)).collect();
                assert!(changed.iter().all(|one| now.contains(one)));
            }
        }
    }
}
