//! The law over queries that nobody thought of.
//!
//! `LEVADA_LAW_QUERIES=2000 cargo test law` runs more of them, `LEVADA_LAW_SEED=17` begins with another: a failure says
//! which one it was.

use super::queries::{Dice, Query, many_rows, query, row};
use super::{POINTS, run, session, settle, start, verify};
use levada::session::Session;

/// As many as an ordinary run of the tests has time for.
const QUERIES: u64 = 60;

#[test]
fn random_queries_equal_batch() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("LEVADA_LAW_SEED").unwrap_or(0);
    let count = number("LEVADA_LAW_QUERIES").unwrap_or(QUERIES);
    let wrong: Vec<String> = (first..first + count).filter_map(|seed| Trial::new(seed).run().err()).collect();
    assert!(wrong.is_empty(), "{} of {count} queries are wrong\n\n{}", wrong.len(), wrong.join("\n"));
}

/// One query over one random course of batches.
struct Trial {
    seed: u64,
    dice: Dice,
    query: Query,
    mode: &'static str,
    /// `s` and `u` have watermarks, and no row is older than they wait.
    ordered: bool,
    /// The newest time of each stream.
    now: [i64; 2],
    /// What has happened, for the report.
    course: Vec<String>,
}

impl Trial {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let mut query = query(&mut dice);
        let ordered = dice.chance(50);
        let mode = match (query.aggregates, query.windowed && ordered) {
            (false, _) => dice.pick(&["APPEND", "UPDATE"]),
            (true, false) => dice.pick(&["UPDATE", "UPDATE", "COMPLETE"]),
            (true, true) => dice.pick(&["UPDATE", "COMPLETE", "APPEND", "APPEND"]),
        };
        if mode == "COMPLETE" && query.sortable > 0 && dice.chance(30) {
            let columns: Vec<String> = (1..=query.sortable).map(|n| n.to_string()).collect();
            query.sql += &format!(" ORDER BY {} LIMIT {}", columns.join(", "), dice.between(1, 4));
        }
        Trial { seed, dice, query, mode, ordered, now: [-20_000_000; 2], course: Vec::new() }
    }

    /// Runs it; an error is a report.
    fn run(mut self) -> Result<(), String> {
        let folder = tempfile::tempdir().expect("a folder");
        let session = session();
        let ended = self.steps(&session, &folder.path().join("cp").display().to_string());
        session.stop_all(true);
        ended.map_err(|what| {
            let (seed, mode, sql) = (self.seed, self.mode, &self.query.sql);
            format!(
                "LEVADA_LAW_SEED={seed} LEVADA_LAW_QUERIES=1\n{sql}\nOUTPUT MODE {mode}\n  {}\n{what}\n",
                self.course.join("\n  ")
            )
        })
    }

    fn steps(&mut self, session: &Session, checkpoint: &str) -> Result<(), String> {
        let ask = |sql: &str| run(session, sql).map_err(|e| format!("{sql}: {e}"));
        let (sql, mode) = (self.query.sql.clone(), self.mode);
        ask("SET clock = 'manual'")?;
        let watermark = if self.ordered { ", WATERMARK FOR ts AS ts - INTERVAL '5 seconds'" } else { "" };
        for name in ["s", "u"] {
            ask(&format!(
                "CREATE STREAM {name} (ts TIMESTAMP, d DATE, k STRING, v BIGINT, f DOUBLE, g DOUBLE, p DECIMAL(10, 2), b BOOLEAN{watermark})"
            ))?;
        }
        ask(
            "CREATE TABLE t AS SELECT * FROM (VALUES ('a', 'first', -50), ('a', 'again', 10), ('日本', 'Japan', 20), \
             ('zz', 'none', 0), (NULL, 'nobody', NULL)) AS x (k, name, limit_v)",
        )?;
        let mut partitions = self.dice.between(1, 4) as u8;
        let begin = |partitions| start(session, &sql, mode, checkpoint, partitions).map_err(|e| format!("START: {e}"));
        begin(partitions)?;
        let mut begun = false;
        for _ in 0..1 + self.dice.below(4) {
            match self.dice.below(5) {
                0 => {
                    partitions = self.dice.between(1, 4) as u8;
                    self.course.push(format!("restart with {partitions} partitions"));
                    ask("STOP QUERY q")?;
                    begin(partitions)?;
                }
                1 | 2 => {
                    let point = self.dice.pick(POINTS);
                    self.course.push(format!("crash at {point}"));
                    ask(&format!("CRASH QUERY q AT '{point}'"))?;
                }
                _ => {}
            }
            begun |= self.feed(session)?;
            settle(session, &|| start(session, &sql, mode, checkpoint, partitions))
                .map_err(|e| format!("STEP: {e}"))?;
            // Before the first row no batch has run, and a result table without a batch is empty.
            if begun && !self.closes_only() {
                agree(&ask("SELECT * FROM r")?, &ask(&sql)?)?;
            }
        }
        if !self.closes_only() {
            return verify(session).map_err(|e| format!("VERIFY: {e}"));
        }
        // Rows a year on close every window with rows; their own windows stay open.
        let wanted = ask(&sql)?;
        let far = self.now[0].max(self.now[1]) + 35_000_000_000_000;
        for name in if self.query.two { &["s", "u"][..] } else { &["s"] } {
            let row = row(&mut self.dice, Some(far));
            self.course.push(format!("INSERT INTO {name} VALUES {row}"));
            ask(&format!("INSERT INTO {name} VALUES {row}"))?;
        }
        settle(session, &|| start(session, &sql, mode, checkpoint, partitions)).map_err(|e| format!("STEP: {e}"))?;
        agree(&ask("SELECT * FROM r")?, &wanted)?;
        verify(session).map_err(|e| format!("VERIFY: {e}"))
    }

    /// Rows are handed out when their window closes, and not before.
    fn closes_only(&self) -> bool {
        self.query.aggregates && self.mode == "APPEND"
    }

    /// Inserts some rows; whether there were any.
    fn feed(&mut self, session: &Session) -> Result<bool, String> {
        let mut any = false;
        for n in 0..if self.query.two { 2 } else { 1 } {
            let rows: Vec<String> = (0..self.dice.below(12)).map(|_| self.row(n)).collect();
            if rows.is_empty() {
                continue;
            }
            any = true;
            let insert = format!("INSERT INTO {} VALUES {}", ["s", "u"][n], rows.join(", "));
            run(session, &insert).map_err(|e| format!("{insert}: {e}"))?;
            self.course.push(insert);
        }
        if self.dice.chance(3) {
            any = true;
            let insert = format!("INSERT INTO s {}", many_rows(self.now[0]));
            self.now[0] += 3_000_000;
            run(session, &insert).map_err(|e| format!("{insert}: {e}"))?;
            self.course.push(insert);
        }
        Ok(any)
    }

    fn row(&mut self, stream: usize) -> String {
        let dice = &mut self.dice;
        let ts = match self.ordered {
            true => {
                self.now[stream] += dice.between(0, 3_000_000);
                self.now[stream] - dice.between(0, 4_900_000)
            }
            false => dice.between(-40_000_000, 40_000_000),
        };
        let ts = (!dice.chance(10)).then_some(ts);
        row(dice, ts)
    }
}

/// Rows as the law compares them: floats to 1e-9 of their size.
fn agree(got: &[Vec<String>], wanted: &[Vec<String>]) -> Result<(), String> {
    let same = |(a, b): (&String, &String)| {
        let close = |a: f64, b: f64| (a - b).abs() <= 2e-9 * a.abs().max(b.abs()).max(1.0);
        a == b || matches!((a.parse::<f64>(), b.parse::<f64>()), (Ok(a), Ok(b)) if close(a, b))
    };
    if got == wanted {
        return Ok(());
    }
    let rows_agree = |a: &Vec<String>, b: &Vec<String>| a.len() == b.len() && a.iter().zip(b).all(same);
    let mut missing: Vec<&Vec<String>> = wanted.iter().collect();
    let mut surplus: Vec<&Vec<String>> = Vec::new();
    for row in got {
        match missing.iter().position(|other| rows_agree(row, other)) {
            Some(at) => drop(missing.remove(at)),
            None => surplus.push(row),
        }
    }
    if missing.is_empty() && surplus.is_empty() {
        return Ok(());
    }
    let list = |rows: &[&Vec<String>]| rows.iter().map(|row| format!("    {}\n", row.join(" | "))).collect::<String>();
    Err(format!("  in the batch result only:\n{}  in the result table only:\n{}", list(&missing), list(&surplus)))
}
