//! EXPLAIN WHY as text: the cause in the first line, and what it follows from below it.

use std::fmt::Write;

use super::why::{Ending, Facts, Mark, Now, OperatorFacts, Work};
use super::why_words::{all, count, instant, micros, were};
use crate::incremental::Passed;
use crate::parser::{OutputMode, Trigger};

/// Why a query gives out nothing, or not yet.
pub(super) fn explain(facts: &Facts, now: &Now) -> String {
    let mut text = format!("{}\n", verdict(facts, now));
    let mut line = |what: &str, is: &str| _ = writeln!(text, "{what}: {is}");
    if let (Now::Busy(message), true) = (now, facts.batches > 0) {
        line("now", message);
    }
    line("batches", &facts.batches_text());
    if !facts.marks.is_empty() {
        line("watermark", &facts.watermark_text());
        for mark in &facts.marks {
            line(&format!("watermark of {}.{}", mark.input, mark.column), &mark.text(facts));
        }
    }
    for operator in facts.operators.iter().rev() {
        if let Some(closes) = operator.next_text(facts) {
            line(&format!("next to close in {}", operator.name), &closes);
        }
    }
    for (what, is) in facts.losses() {
        line(&what, &is);
    }
    text.trim_end().to_string()
}

fn verdict(facts: &Facts, now: &Now) -> String {
    let query = &facts.query;
    match now {
        Now::Failed(error) => {
            return format!("query {query} has failed and gives out nothing more: {error}").replace('\n', " ");
        }
        Now::Ended(ending) => return format!("query {query} has ended: {}", facts.ended(*ending)),
        Now::Paused => return format!("query {query} is paused: it runs no batch until RESUME QUERY {query}"),
        Now::Busy(message) if message.starts_with("Retrying") => {
            return format!("query {query} waits for the outside world: {message}");
        }
        Now::Busy(message) if facts.batches == 0 => {
            return format!("query {query} has not ended its first batch: {message}");
        }
        Now::Busy(_) | Now::Waits(_) => {}
    }
    if let Some(why) = facts.operators.iter().find_map(|operator| operator.spent.as_ref()) {
        return why.clone();
    }
    if let Now::Waits(Some(work)) = now
        && let Some(waits) = facts.waits_for(*work)
    {
        return waits;
    }
    if facts.tally.run.rows() == 0 {
        return facts.no_data();
    }
    let lost =
        if facts.tally.since.rows() > 0 { stuck(facts, &facts.tally.since.last, &facts.last_from, None) } else { None };
    lost.or_else(|| facts.open().map(|open| open + &facts.late_since())).unwrap_or_else(|| facts.quiet())
}

/// Where the rows since the last ones that were given out were lost. `operator`: the one that the fragment feeds.
fn stuck(facts: &Facts, passed: &Passed, from: &[usize], operator: Option<usize>) -> Option<String> {
    if passed.rows_out > 0 {
        return None;
    }
    if passed.rows_in > 0 {
        return Some(facts.lost_in(passed, from, operator));
    }
    from.iter().find_map(|n| {
        let inputs = facts.tally.since.inputs.get(*n)?;
        if inputs.iter().any(|input| input.rows_out > 0) {
            return facts.kept_in(*n);
        }
        let below = &facts.operators[*n].from;
        inputs.iter().zip(below).find_map(|(input, from)| stuck(facts, input, from, Some(*n)))
    })
}

impl Facts {
    fn ended(&self, ending: Ending) -> String {
        match (ending, self.trigger) {
            (Ending::Stopped, _) => "it was stopped".into(),
            (Ending::StopAfter(n), _) => format!("STOP AFTER {n} BATCHES is reached"),
            (Ending::Drained, _) => "it was drained: what was open is closed, and its checkpoint takes no start".into(),
            (Ending::Inputs, _) => "all its inputs have ended".into(),
            (Ending::Trigger, Trigger::Once) => "TRIGGER ONCE has run its batch".into(),
            (Ending::Trigger, _) => "TRIGGER AVAILABLE NOW has run what was there when it began".into(),
        }
    }

    /// Whether the watermark has passed the end of anything that is remembered.
    fn closes_something(&self) -> bool {
        let passed = |operator: &OperatorFacts| {
            let due = operator.next_due.filter(|due| *due != i64::MAX);
            due.is_some_and(|due| self.watermark.is_some_and(|watermark| operator.needed(due) <= watermark))
        };
        self.operators.iter().any(passed)
    }

    /// What there is to do waits for somebody.
    fn waits_for(&self, work: Work) -> Option<String> {
        let what = match work {
            Work { replay: true, .. } => "a batch that was begun before the restart is to be run again".to_string(),
            Work { data: true, .. } => "there are rows that no batch has read".to_string(),
            Work { due: true, .. } if self.closes_something() => {
                format!("a batch without data is due, which closes what ends by {}", self.at(self.watermark))
            }
            Work { .. } => return None,
        };
        if self.rests {
            return Some(format!("{what}: the query waits for STEP QUERY {}", self.query));
        }
        let at = self.next_at.filter(|at| *at > self.clock)?;
        let clock = if self.manual_clock { ", and the clock is moved by ADVANCE CLOCK alone" } else { "" };
        Some(format!(
            "{what}: the query waits for its trigger at {}; it is {}{clock}",
            instant(at),
            instant(self.clock)
        ))
    }

    fn no_data(&self) -> String {
        let inputs = self.inputs.join(", ");
        match self.resumed {
            Some(batch) => {
                format!(
                    "no data: nothing new has come of {inputs} since the checkpoint was taken up behind batch {batch}"
                )
            }
            None => format!("no data: no row of {inputs} has been read yet"),
        }
    }

    /// Nothing is lost and nothing waits.
    fn quiet(&self) -> String {
        let new = self.tally.since.rows();
        match self.tally.last_out {
            Some((batch, rows)) if new == 0 => {
                format!("no new data: batch {batch} gave out {}, and nothing has come since", count(rows, "row"))
            }
            Some((batch, _)) => {
                format!("the {} read since batch {batch} changed nothing in the result", count(new, "row"))
            }
            None => format!("the {} read so far changed nothing in the result", count(new, "row")),
        }
    }

    /// Since when it is that nothing was given out.
    fn since(&self) -> String {
        self.tally.last_out.map(|(batch, _)| format!(" since batch {batch}")).unwrap_or_default()
    }

    /// A fragment let nothing pass.
    fn lost_in(&self, passed: &Passed, from: &[usize], operator: Option<usize>) -> String {
        let (since, rows) = (self.since(), passed.rows_in);
        let givers: Vec<&str> = from.iter().map(|n| self.operators[*n].name.as_str()).collect();
        let mut causes: Vec<(u64, String)> = Vec::new();
        for gate in passed.gates.iter().filter(|gate| gate.rows_out < gate.rows_in) {
            let lost = gate.rows_in - gate.rows_out;
            let cause = match (gate.is_filter, givers.is_empty()) {
                (true, true) => format!("WHERE {} leaves out {}", gate.what, all(lost, rows)),
                (true, false) => format!(
                    "the condition {} leaves out {} that {} gave",
                    gate.what,
                    all(lost, rows),
                    givers.join(", ")
                ),
                (false, _) if lost >= rows => {
                    format!("{} finds no partner for any of {}", gate.what, count(lost, "row"))
                }
                (false, _) => format!("{} finds no partner for {}", gate.what, all(lost, rows)),
            };
            causes.push((lost, cause));
        }
        let dropped = operator.and_then(|n| Some((&self.operators[n], self.tally.since.dropped.get(n)?)));
        if let Some((operator, dropped)) = dropped {
            if dropped.late_rows > 0 {
                let watermark = self.watermark.map(|at| at.saturating_sub(operator.lag));
                let cause = format!(
                    "{} late for {}: what they belong to was closed by its watermark, {} now",
                    were(dropped.late_rows, rows),
                    operator.name,
                    self.at(watermark)
                );
                causes.push((dropped.late_rows, cause));
            }
            if dropped.null_time_rows > 0 {
                let without = if self.watermark.is_none() { ", and there is no watermark" } else { "" };
                let cause =
                    format!("{} without a time, and join no window{without}", were(dropped.null_time_rows, rows));
                causes.push((dropped.null_time_rows, cause));
            }
        }
        causes.sort_by_key(|(lost, _)| std::cmp::Reverse(*lost));
        let causes: Vec<String> = causes.into_iter().map(|(_, cause)| cause).collect();
        match causes.is_empty() {
            true => format!("no row has come through{since}: {} read", count(rows, "row")),
            false => format!("no row has come through{since}: {}", causes.join("; ")),
        }
    }

    /// An operator took rows and gave none.
    fn kept_in(&self, n: usize) -> Option<String> {
        let (operator, since) = (&self.operators[n], self.since());
        if self.mode == OutputMode::Append && operator.waits {
            return None;
        }
        let duplicates = self.tally.since.duplicates.get(n).copied().unwrap_or_default();
        if duplicates > 0 {
            return Some(format!(
                "no row has come through{since}: {} of keys that {} has seen before",
                were(duplicates, duplicates),
                operator.name
            ));
        }
        if !operator.is_join {
            return None;
        }
        let came = |counts: &super::tally::Counts, side: usize| {
            counts.inputs.get(n).and_then(|inputs| inputs.get(side)).is_some_and(|input| input.rows_out > 0)
        };
        let missing = (0..2).find(|side| !came(&self.tally.run, *side)).filter(|_| self.resumed.is_none());
        Some(match missing {
            Some(side) => {
                let name = if side == 0 { "left" } else { "right" };
                let passed = self.tally.run.inputs.get(n).and_then(|inputs| inputs.get(side));
                let lost = passed.filter(|passed| passed.rows_in > 0).map(|passed| {
                    let from = operator.from.get(side).map_or(&[][..], Vec::as_slice);
                    format!("; {}", self.lost_in(passed, from, Some(n)))
                });
                let of = operator.reads.get(side).map_or_else(String::new, |reads| format!(" ({})", reads.join(", ")));
                format!(
                    "no pair was found: no row of the {name} side{of} has come to the join{}",
                    lost.unwrap_or_default()
                )
            }
            None => format!("no pair was found{since}: no new row matches one of the other side"),
        })
    }

    /// Rows that did not join what waits, as they were late.
    fn late_since(&self) -> String {
        let late = self.operators.iter().zip(&self.tally.since.dropped).filter(|(_, dropped)| dropped.late_rows > 0);
        late.map(|(operator, dropped)| {
            format!("; {} came too late for {}", count(dropped.late_rows, "row"), operator.name)
        })
        .collect()
    }

    /// What waits for the watermark.
    fn open(&self) -> Option<String> {
        if self.mode != OutputMode::Append {
            return None;
        }
        // What is remembered of rows that were given out waits for nothing, unless rows must follow.
        let waits = |of: &&OperatorFacts| {
            of.waits && of.rows > 0 && (of.next_due.is_some() || !of.of_rows || of.rows_to_follow > 0)
        };
        let operator = self.operators.iter().rev().find(waits)?;
        if operator.rows_to_follow > 0
            && operator.next_due.is_none_or(|due| Some(operator.needed(due)) <= self.watermark)
        {
            return Some(format!(
                "the next row of {} is final when {} more row{} of its partition {} come and the watermark has passed them; \
                 STOP QUERY {} DRAIN gives it out as it is",
                operator.name,
                operator.rows_to_follow,
                if operator.rows_to_follow == 1 { "" } else { "s" },
                if operator.rows_to_follow == 1 { "has" } else { "have" },
                self.query
            ));
        }
        let Some(watermark) = self.watermark else {
            return Some(format!("there is no watermark yet, so nothing closes: {}", self.undefined()));
        };
        let Some(due) = operator.next_due else {
            return Some(format!("what {} remembers has no time, and is never final", operator.name));
        };
        let what = operator.what(due);
        let needed = operator.needed(due);
        if needed <= watermark {
            let how = match self.no_data_batches {
                true => "the next batch closes it",
                false => "no batch without data runs (no_data_batches = false), so the next rows close it",
            };
            return Some(format!("{what} is due: {how}"));
        }
        let ahead = self.marks.iter().filter(|mark| mark.standing.current.is_some_and(|at| at >= needed)).count();
        let behind: Vec<&Mark> = self.behind(needed);
        let closes = self.closing(needed);
        Some(match (ahead, behind.first()) {
            (1.., Some(holder)) if !self.largest => format!(
                "{what} is open, as input {} holds the watermark at {}: it closes when {closes} has come; {}",
                holder.input,
                self.at(holder.standing.current),
                holder.way_out()
            ),
            _ => format!("{what} is open: it closes when {closes} has come"),
        })
    }

    /// The inputs that keep the watermark below `needed`.
    fn behind(&self, needed: i64) -> Vec<&Mark> {
        let holds =
            |mark: &&Mark| (self.largest || !mark.standing.idle) && mark.standing.current.is_none_or(|at| at < needed);
        let mut behind: Vec<&Mark> = self.marks.iter().filter(holds).collect();
        if behind.is_empty() {
            // All are idle: the largest counts.
            behind = self.marks.iter().collect();
        }
        behind.sort_by_key(|mark| mark.standing.current);
        behind
    }

    /// The rows that bring the watermark to `needed`.
    pub(super) fn closing(&self, needed: i64) -> String {
        let rows = self.behind(needed).into_iter().map(|mark| {
            let time = needed.saturating_mul(1_000).saturating_add(mark.standing.delay);
            format!("a row of {} with {} at {} or later", mark.input, mark.column, micros(time))
        });
        let how = if self.largest { " or " } else { " and " };
        rows.collect::<Vec<_>>().join(how)
    }

    /// Why there is no watermark.
    fn undefined(&self) -> String {
        let missing = |mark: &&Mark| mark.standing.current.is_none() && (self.largest || !mark.standing.idle);
        let holds = |mark: &Mark| match self.marks.len() {
            2.. if !self.largest => format!("{}, and it holds the others; {}", mark.missing(self), mark.way_out()),
            _ => mark.missing(self),
        };
        self.marks.iter().filter(missing).map(holds).collect::<Vec<_>>().join("; ")
    }

    pub(super) fn read_of(&self, input: &str) -> u64 {
        let at = self.inputs.iter().position(|name| name == input);
        at.and_then(|n| self.tally.run.read.get(n)).copied().unwrap_or_default()
    }

    fn at(&self, watermark: Option<i64>) -> String {
        watermark.map_or("-".into(), instant)
    }

    fn batches_text(&self) -> String {
        let mut text = format!("{} in this run", self.batches);
        if let Some(last) = self.last_batch {
            let _ = write!(text, ", the last is batch {last}");
        }
        let _ = write!(text, "; {} read", count(self.tally.run.rows(), "row"));
        match self.tally.last_out {
            Some((batch, rows)) => _ = write!(text, "; batch {batch} was the last to give out rows: {rows}"),
            None => text.push_str("; none given out"),
        }
        text
    }

    fn watermark_text(&self) -> String {
        let Some(watermark) = self.watermark else { return "-".into() };
        let of = match self.marks.len() {
            1 => String::new(),
            _ => {
                let is = |mark: &&Mark| mark.standing.current == self.watermark;
                let holder = self.marks.iter().find(is).map(|mark| format!(", that of {}", mark.input));
                let which = if self.largest { "largest" } else { "smallest" };
                format!("{}, the {which} of {}", holder.unwrap_or_default(), self.marks.len())
            }
        };
        format!("{}{of}", instant(watermark))
    }

    /// Rows that were lost in this run, by where and why.
    fn losses(&self) -> Vec<(String, String)> {
        let run = &self.tally.run;
        let mut lines = Vec::new();
        for (operator, dropped) in self.operators.iter().zip(&run.dropped) {
            if dropped.late_contributions > 0 {
                let rows = count(dropped.late_rows, "row");
                let parts = count(dropped.late_contributions, "contribution");
                lines.push((format!("late for {}", operator.name), format!("{rows}, {parts}")));
            }
            if dropped.null_time_rows > 0 {
                let rows = count(dropped.null_time_rows, "row");
                lines.push((format!("without a time for {}", operator.name), rows));
            }
        }
        for (operator, duplicates) in self.operators.iter().zip(&run.duplicates).filter(|(_, rows)| **rows > 0) {
            lines.push((format!("keys that {} has seen before", operator.name), count(*duplicates, "row")));
        }
        for gate in run.inputs.iter().flatten().chain([&run.last]).flat_map(|passed| &passed.gates) {
            if gate.rows_out < gate.rows_in {
                let lost = gate.rows_in - gate.rows_out;
                lines.push((format!("left out by {}", gate.what), format!("{lost} of {}", count(gate.rows_in, "row"))));
            }
        }
        for (input, bad) in self.inputs.iter().zip(&run.bad).filter(|(_, bad)| **bad > 0) {
            lines.push((format!("bad records of {input}"), bad.to_string()));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::tally::{Counts, Tally};
    use crate::execution::watermark::Standing;
    use crate::parser::Interval;

    fn mark(input: &str, current: Option<i64>, delay: i64) -> Mark {
        let standing = Standing { delay, idle_after: None, current, silent: 0, idle: false };
        Mark { input: input.into(), column: "ts".into(), skew: None, standing }
    }

    /// An aggregate by windows in APPEND that remembers one, which ends 10 seconds after 1970.
    fn facts() -> Facts {
        let operator = OperatorFacts {
            name: "aggregate".into(),
            is_join: false,
            of_rows: false,
            waits: true,
            rows_to_follow: 0,
            rows: 1,
            next_due: Some(10_000_000),
            windows: true,
            lag: 0,
            spent: None,
            from: vec![Vec::new()],
            reads: vec![vec!["s".into()]],
        };
        let run = Counts { read: vec![3, 2], ..Counts::default() };
        Facts {
            query: "q".into(),
            mode: OutputMode::Append,
            clock: 5_000,
            manual_clock: true,
            trigger: Trigger::Every(Interval { months: 0, micros: 10_000_000 }),
            next_at: Some(10_000),
            rests: false,
            no_data_batches: true,
            resumed: None,
            batches: 1,
            last_batch: Some(0),
            inputs: vec!["s".into(), "t".into()],
            watermark: Some(4_000),
            largest: false,
            marks: vec![mark("s", Some(4_000), 1_000_000), mark("t", Some(6_000), 0)],
            operators: vec![operator],
            last_from: vec![0],
            tally: Tally { run, ..Tally::default() },
        }
    }

    fn first(facts: &Facts, now: &Now) -> String {
        explain(facts, now).lines().next().unwrap_or_default().to_string()
    }

    #[test]
    fn what_there_is_to_do_waits_for_its_trigger() {
        let data = Now::Waits(Some(Work { data: true, ..Work::default() }));
        let text = first(&facts(), &data);
        assert_eq!(
            text,
            "there are rows that no batch has read: the query waits for its trigger at 1970-01-01T00:00:10Z; it is \
             1970-01-01T00:00:05Z, and the clock is moved by ADVANCE CLOCK alone"
        );
        // Once it may begin it does: what is to be done says nothing.
        let due = Facts { clock: 10_000, ..facts() };
        assert!(first(&due, &data).starts_with("the next window of aggregate"), "{}", first(&due, &data));
    }

    #[test]
    fn a_window_is_closed_by_all_inputs_or_by_any() {
        let waits = Now::Waits(Some(Work::default()));
        assert_eq!(
            first(&facts(), &waits),
            "the next window of aggregate, which ends at 1970-01-01T00:00:10Z, is open: it closes when a row of s with ts at \
             1970-01-01T00:00:11Z or later and a row of t with ts at 1970-01-01T00:00:10Z or later has come"
        );
        let largest = Facts { largest: true, watermark: Some(6_000), ..facts() };
        assert!(first(&largest, &waits).contains("or later or a row of"), "{}", first(&largest, &waits));
        let ahead = Facts { marks: vec![mark("s", Some(4_000), 1_000_000), mark("t", Some(60_000), 0)], ..facts() };
        assert!(first(&ahead, &waits).contains("input s holds the watermark at 1970-01-01T00:00:04Z"));
    }

    #[test]
    fn what_runs_is_not_waited_for() {
        let busy = |message: &str| Now::Busy(message.into());
        let none = Facts { batches: 0, ..facts() };
        assert_eq!(
            first(&none, &busy("Processing new data")),
            "query q has not ended its first batch: Processing new data"
        );
        let text = explain(&facts(), &busy("Processing new data"));
        assert!(text.starts_with("the next window") && text.contains("\nnow: Processing new data\n"), "{text}");
        let retrying = first(&facts(), &busy("Retrying in 100 ms (attempt 1 of 6): it is busy"));
        assert_eq!(retrying, "query q waits for the outside world: Retrying in 100 ms (attempt 1 of 6): it is busy");
    }
}
