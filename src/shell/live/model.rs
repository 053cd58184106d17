//! What the live view knows of a query: its result as far as it was seen, what changed, and how fast.
//!
//! A result that is grouped is a table by key; one that takes rows back without keys is a bag of rows; what only adds
//! rows is the last thousand of them. Nothing here draws, and the time is handed in.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::row::OwnedRow;
use serde_json::Value;

use super::facts::Facts;
use super::rates::Rates;
use super::typed::Typed;
use super::value::{self, Column, WindowEnd, compare, compare_numbers};
use crate::delta::{Delta, Op};
use crate::display::row_texts;
use crate::error::Result;
use crate::parser::OutputMode;
use crate::sink::{BatchSummary, SinkContext};

/// A table holds so many keys at the most.
const MOST_KEYS: usize = 10_000;

/// Rows of a result that only grows, changes and batches that are remembered.
const MOST_ROWS: usize = 1_000;

/// Batches with input and no move of the watermark, after which an input is suspected of being idle.
const FROZEN: u32 = 10;

/// The texts of a row; `None` is NULL.
pub(super) type Cells = Vec<Option<String>>;

/// How a value changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Up,
    Down,
    Other,
}

/// A row that is shown.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// Its own as long as it lives.
    pub(super) id: u64,
    pub(super) cells: Cells,
    /// What the texts stand for, where that is known.
    pub(super) values: Option<OwnedRow>,
    /// When it came; `None`: it was there from the beginning.
    pub(super) came: Option<Duration>,
    /// When its values last changed, and which of them.
    pub(super) changed: Option<Duration>,
    pub(super) changes: Vec<(usize, Change)>,
    /// It was taken away by the last batch.
    pub(super) gone: bool,
    /// The watermark has closed its window.
    pub(super) last_word: bool,
    /// Its place in a result that has an order of its own.
    place: u64,
    window_end: Option<i64>,
    /// The batch that last spoke of it.
    touched: u64,
}

impl Row {
    /// The text of one of its values.
    pub(super) fn cell(&self, at: usize) -> Option<&str> {
        self.cells.get(at).and_then(|cell| cell.as_deref())
    }
}

/// How rows are known again.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Shape {
    /// Never: the result only grows.
    Grows,
    /// By these columns.
    Keyed(Vec<usize>),
    /// By all of their values.
    Bag,
    /// By their place.
    Placed,
}

/// Equal rows are told apart by a number.
type Key = (Cells, u32);

/// One line of the changelog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) batch: u64,
    pub(super) op: Op,
    pub(super) cells: Cells,
}

/// One line of the batch log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) number: u64,
    pub(super) at: Duration,
    pub(super) rows_in: u64,
    pub(super) rows_out: u64,
    pub(super) watermark: Option<i64>,
    pub(super) drains: bool,
    pub(super) state_rows: Option<u64>,
}

/// A query as it is seen.
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) query: String,
    pub(super) mode: OutputMode,
    pub(super) columns: Vec<Column>,
    pub(super) typed: Typed,
    pub(super) input: Rates,
    pub(super) output: Rates,
    pub(super) facts: Facts,
    pub(super) changelog: VecDeque<Changed>,
    pub(super) log: VecDeque<Batch>,
    /// Batches that were seen.
    pub(super) batches: u64,
    /// Rows that the last batch changed or added.
    pub(super) changed: usize,
    /// Rows that were let go of, as there were too many.
    pub(super) forgotten: u64,
    /// The window's end was found in the result.
    window_end: Option<WindowEnd>,
    shape: Shape,
    rows: HashMap<Key, Row>,
    grown: VecDeque<Row>,
    frozen: u32,
    ids: u64,
}

impl Model {
    pub(super) fn new(context: &SinkContext) -> Self {
        let complete = context.mode == OutputMode::Complete;
        let grows = match context.mode {
            OutputMode::Complete => false,
            OutputMode::Update => context.only_adds,
            OutputMode::Append => true,
        };
        let shape = match &context.keys {
            _ if grows && !context.retracts => Shape::Grows,
            Some(keys) => Shape::Keyed(keys.clone()),
            None if context.retracts || complete => Shape::Bag,
            None => Shape::Grows,
        };
        let mut model = Model::shaped(&context.query, context.mode, &context.schema, shape);
        model.facts = Facts::of(context.delay);
        model
    }

    /// Of a statement that is run again and again: each of its results is whole, and the rows of the first are nothing new.
    pub(super) fn of_results(schema: &SchemaRef) -> Self {
        Model::shaped("", OutputMode::Complete, schema, Shape::Placed)
    }

    fn shaped(query: &str, mode: OutputMode, schema: &SchemaRef, shape: Shape) -> Self {
        Model {
            query: query.to_string(),
            mode,
            columns: value::columns(schema),
            typed: Typed::new(schema),
            input: Rates::default(),
            output: Rates::default(),
            facts: Facts::default(),
            changelog: VecDeque::new(),
            log: VecDeque::new(),
            batches: 0,
            changed: 0,
            forgotten: 0,
            window_end: value::window_end(schema),
            shape,
            rows: HashMap::new(),
            grown: VecDeque::new(),
            frozen: 0,
            ids: 0,
        }
    }

    /// Takes the next whole result. A row is known again by its first column, where that tells all of them apart, or else by
    /// its place.
    ///
    /// # Errors
    /// A value has no text.
    pub(super) fn take_result(&mut self, run: u64, batches: &[RecordBatch], now: Duration) -> Result<()> {
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let mut seen = Vec::new();
        let mut room = MOST_KEYS;
        for batch in batches.iter().filter(|batch| batch.num_rows() > 0) {
            seen.push(Delta::insert(batch.slice(0, batch.num_rows().min(room))));
            room -= seen.last().map_or(0, Delta::len);
            if room == 0 {
                break;
            }
        }
        let shape = if self.is_told_apart(&seen)? { Shape::Keyed(vec![0]) } else { Shape::Placed };
        if shape != self.shape {
            self.know_again_by(shape);
        }
        let first = self.batches == 0;
        let summary = BatchSummary { input_rows: rows as u64, ..BatchSummary::default() };
        self.apply(run, &seen, &summary, now)?;
        self.forgotten = rows.saturating_sub(MOST_KEYS) as u64;
        if first {
            self.rows.values_mut().for_each(|row| row.came = None);
            self.changed = 0;
        }
        Ok(())
    }

    /// Whether the first of several columns tells the rows of a result apart. Of a single row it says nothing.
    fn is_told_apart(&self, result: &[Delta]) -> Result<bool> {
        if self.columns.len() < 2 || result.iter().map(Delta::len).sum::<usize>() < 2 {
            return Ok(false);
        }
        let mut keys = HashSet::new();
        for delta in result {
            for cells in row_texts(&delta.rows.project(&[0])?)? {
                if !keys.insert(cells.into_iter().next().flatten()) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Whether results of these columns are this one's.
    pub(super) fn is_of(&self, schema: &SchemaRef) -> bool {
        self.typed.is_of(schema)
    }

    fn know_again_by(&mut self, shape: Shape) {
        self.shape = shape.clone();
        for (_, row) in std::mem::take(&mut self.rows) {
            let key = self.key(&shape, &row.cells, row.place, None);
            self.rows.insert(key, row);
        }
    }

    /// Takes what a batch has changed.
    ///
    /// # Errors
    /// A value has no text.
    pub(super) fn apply(&mut self, batch: u64, changes: &[Delta], summary: &BatchSummary, now: Duration) -> Result<()> {
        self.rows.retain(|_, row| !row.gone);
        // A batch that only moves the watermark on leaves what the last one said.
        if summary.input_rows > 0 || !changes.is_empty() {
            self.changed = 0;
        }
        let rows_out: usize = changes.iter().map(Delta::len).sum();
        match self.shape.clone() {
            Shape::Grows => self.grow(batch, changes, rows_out, now)?,
            shape => self.replace(&shape, batch, changes, now)?,
        }
        self.close_windows(summary);
        self.make_room();
        let moved = self.log.back().is_none_or(|last| last.watermark != summary.watermark);
        if moved {
            self.frozen = 0;
        } else if summary.input_rows > 0 {
            self.frozen = self.frozen.saturating_add(1);
        }
        self.batches += 1;
        self.input.add(now, summary.input_rows);
        self.output.add(now, rows_out as u64);
        remember(
            &mut self.log,
            Batch {
                number: batch,
                at: now,
                rows_in: summary.input_rows,
                rows_out: rows_out as u64,
                watermark: summary.watermark,
                drains: summary.drains,
                state_rows: summary.state_rows,
            },
        );
        Ok(())
    }

    /// The last of them are all that is ever seen.
    fn grow(&mut self, batch: u64, changes: &[Delta], rows: usize, now: Duration) -> Result<()> {
        let mut skip = rows.saturating_sub(MOST_ROWS);
        self.forgotten += skip as u64;
        for delta in changes {
            if skip >= delta.len() {
                skip -= delta.len();
                continue;
            }
            let seen = delta.rows.slice(skip, delta.len() - skip);
            let values = self.typed.values(&seen)?;
            for (n, (cells, values)) in row_texts(&seen)?.into_iter().zip(values).enumerate() {
                remember(&mut self.changelog, Changed { batch, op: delta.op(skip + n), cells: cells.clone() });
                let row = self.row(cells, values, batch, 0, now);
                self.grown.push_back(row);
            }
            skip = 0;
        }
        while self.grown.len() > MOST_ROWS {
            self.grown.pop_front();
            self.forgotten += 1;
        }
        self.changed = rows;
        Ok(())
    }

    fn replace(&mut self, shape: &Shape, batch: u64, changes: &[Delta], now: Duration) -> Result<()> {
        let complete = self.mode == OutputMode::Complete;
        let mut place = 0;
        if complete {
            self.forgotten = 0;
        }
        let mut said: HashSet<Key> = HashSet::new();
        for delta in changes {
            if complete && place >= MOST_KEYS as u64 {
                // The first of them are enough to look at.
                self.forgotten = self.forgotten.saturating_add(delta.len() as u64);
                continue;
            }
            self.make_room();
            let mut before: Option<Row> = None;
            let values = self.typed.values(&delta.rows)?;
            for (n, (cells, values)) in row_texts(&delta.rows)?.into_iter().zip(values).enumerate() {
                let op = delta.op(n);
                if !complete {
                    let op = if op == Op::Insert && self.knows(shape, &cells) { Op::UpdateAfter } else { op };
                    remember(&mut self.changelog, Changed { batch, op, cells: cells.clone() });
                }
                place += 1;
                match op {
                    Op::Delete => self.take_away(shape, &cells, batch),
                    Op::UpdateBefore if *shape == Shape::Bag => before = self.take_out(&cells),
                    // The row behind it says the same, and more.
                    Op::UpdateBefore => {}
                    Op::Insert | Op::UpdateAfter => {
                        let key = self.key(shape, &cells, place, complete.then_some(&said));
                        if complete {
                            said.insert(key.clone());
                        }
                        let row = self.row(cells, values, batch, place, now);
                        self.put(key, row, before.take());
                    }
                }
            }
        }
        if complete {
            // What is not in the whole result is gone.
            let changelog = &mut self.changelog;
            for (key, row) in &mut self.rows {
                if !said.contains(key) && !row.gone {
                    row.gone = true;
                    remember(changelog, Changed { batch, op: Op::Delete, cells: row.cells.clone() });
                }
            }
        }
        Ok(())
    }

    /// Whether a row takes the place of one that is there.
    fn knows(&self, shape: &Shape, cells: &Cells) -> bool {
        matches!(shape, Shape::Keyed(_))
            && self.rows.get(&self.key(shape, cells, 0, None)).is_some_and(|known| !known.gone)
    }

    fn key(&self, shape: &Shape, cells: &Cells, place: u64, said: Option<&HashSet<Key>>) -> Key {
        match shape {
            Shape::Keyed(columns) => {
                return (columns.iter().map(|at| cells.get(*at).cloned().flatten()).collect(), 0);
            }
            // There are no more of them than rows that are kept.
            Shape::Placed => return (Cells::new(), u32::try_from(place).unwrap_or(u32::MAX)),
            Shape::Grows | Shape::Bag => {}
        }
        let mut key = (cells.clone(), 0);
        match said {
            // Of equal rows of a whole result, the next.
            Some(said) => {
                while said.contains(&key) {
                    key.1 += 1;
                }
            }
            None => {
                while self.rows.get(&key).is_some_and(|row| !row.gone) {
                    key.1 += 1;
                }
            }
        }
        key
    }

    /// Puts a row in the place of the one that it is the successor of, where there is one: `before`, or that of its key.
    fn put(&mut self, key: Key, mut row: Row, before: Option<Row>) {
        let complete = self.mode == OutputMode::Complete;
        let known = before.or_else(|| self.rows.remove(&key)).filter(|row| !row.gone);
        let (op, changed) = match known {
            None => (Op::Insert, true),
            Some(known) => {
                let changes = changes(&self.columns, &known.cells, &row.cells);
                let changed = !changes.is_empty();
                (row.changed, row.changes) = if changed { (row.came, changes) } else { (known.changed, known.changes) };
                (row.id, row.came, row.last_word) = (known.id, known.came, known.last_word);
                (Op::UpdateAfter, changed)
            }
        };
        if changed {
            if complete {
                remember(&mut self.changelog, Changed { batch: row.touched, op, cells: row.cells.clone() });
            }
            self.changed += 1;
        }
        self.rows.insert(key, row);
    }

    fn row(&mut self, cells: Cells, values: Option<OwnedRow>, batch: u64, place: u64, now: Duration) -> Row {
        self.ids += 1;
        Row {
            id: self.ids,
            window_end: self.window_end.and_then(|end| end.of(&cells)),
            cells,
            values,
            came: Some(now),
            changed: None,
            changes: Vec::new(),
            gone: false,
            last_word: false,
            place,
            touched: batch,
        }
    }

    /// Marks a row as taken away: it is shown once more.
    fn take_away(&mut self, shape: &Shape, cells: &Cells, batch: u64) {
        let key = match shape {
            Shape::Keyed(_) => self.key(shape, cells, 0, None),
            _ => self.newest_equal(cells).unwrap_or_else(|| (cells.clone(), 0)),
        };
        if let Some(row) = self.rows.get_mut(&key) {
            (row.gone, row.touched) = (true, batch);
            self.changed += 1;
        }
    }

    /// Takes a row out of a bag, so that another can stand in its place.
    fn take_out(&mut self, cells: &Cells) -> Option<Row> {
        self.newest_equal(cells).and_then(|key| self.rows.remove(&key))
    }

    fn newest_equal(&self, cells: &Cells) -> Option<Key> {
        let mut key = (cells.clone(), 0);
        let mut newest = None;
        while self.rows.contains_key(&key) {
            if !self.rows[&key].gone {
                newest = Some(key.1);
            }
            key.1 += 1;
        }
        newest.map(|n| (cells.clone(), n))
    }

    fn close_windows(&mut self, summary: &BatchSummary) {
        if self.window_end.is_none() || (summary.watermark.is_none() && !summary.drains) {
            return;
        }
        for row in self.rows.values_mut().chain(&mut self.grown) {
            row.last_word |= match (row.window_end, summary.watermark) {
                (Some(_), _) if summary.drains => true,
                (Some(end), Some(watermark)) => end <= watermark,
                _ => false,
            };
        }
    }

    /// Lets go of rows when there are too many: closed windows first, then what was not spoken of for the longest time.
    fn make_room(&mut self) {
        if self.rows.len() <= MOST_KEYS {
            return;
        }
        let mut order: Vec<_> = self.rows.iter().map(|(key, row)| (!row.last_word, row.touched, row.id, key)).collect();
        order.sort_unstable_by_key(|(open, touched, id, _)| (*open, *touched, *id));
        // Some more than needed, so that it is not done again at once.
        let over = order.len() - MOST_KEYS + MOST_KEYS / 20;
        let keys: Vec<Key> = order.into_iter().take(over).map(|(.., key)| key.clone()).collect();
        self.forgotten += keys.len() as u64;
        for key in keys {
            self.rows.remove(&key);
        }
    }

    /// See [`Facts::learn`].
    pub(super) fn learn(&mut self, document: &Value) {
        self.facts.learn(document);
    }

    /// Whether the watermark stands still though rows come.
    pub(super) fn seems_idle(&self) -> bool {
        self.frozen >= FROZEN && self.log.back().is_some_and(|batch| batch.watermark.is_some())
    }

    /// Whether new rows come at the end.
    pub(super) fn grows(&self) -> bool {
        self.shape == Shape::Grows
    }

    /// How many rows there are to see.
    pub(super) fn len(&self) -> usize {
        self.rows.len() + self.grown.len()
    }

    /// The column that the rows are ordered by where nobody asked for another, and whether downwards: the newest time
    /// first.
    pub(super) fn usual_order(&self) -> Option<(usize, bool)> {
        let Shape::Keyed(keys) = &self.shape else { return None };
        if self.mode == OutputMode::Complete {
            return None;
        }
        let time = keys.iter().find(|at| self.columns.get(**at).is_some_and(|column| column.time));
        time.map(|at| (*at, true))
    }

    /// The rows that hold `filter`, in the order of a column (`true`: downwards), or their own.
    pub(super) fn rows(&self, order: Option<(usize, bool)>, filter: &str) -> Vec<&Row> {
        let filter = filter.to_lowercase();
        let holds = |row: &&Row| {
            filter.is_empty() || row.cells.iter().flatten().any(|cell| cell.to_lowercase().contains(&filter))
        };
        let mut rows: Vec<&Row> = self.rows.values().chain(&self.grown).filter(holds).collect();
        let number = |at: usize| self.columns.get(at).is_some_and(|column| column.number);
        let by = |at: usize, a: &Row, b: &Row| compare(a.cell(at), b.cell(at), number(at));
        let in_order = |order: Option<(usize, bool)>, a: &Row, b: &Row| match order {
            Some((at, true)) => by(at, a, b).reverse(),
            Some((at, false)) => by(at, a, b),
            None => Ordering::Equal,
        };
        let (complete, usual) = (self.mode == OutputMode::Complete, self.usual_order());
        rows.sort_by(|a, b| {
            let own = || match &self.shape {
                _ if complete => a.place.cmp(&b.place),
                Shape::Keyed(keys) => {
                    keys.iter().map(|at| by(*at, a, b)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
                }
                _ => Ordering::Equal,
            };
            // Rows never jump on equal values.
            in_order(order, a, b).then_with(|| in_order(usual, a, b)).then_with(own).then(a.id.cmp(&b.id))
        });
        rows
    }
}

/// Which values changed, and how.
fn changes(columns: &[Column], before: &Cells, after: &Cells) -> Vec<(usize, Change)> {
    let pairs = before.iter().zip(after).enumerate().filter(|(_, (before, after))| before != after);
    let change = |(at, (before, after)): (usize, (&Option<String>, &Option<String>))| {
        let number = columns.get(at).is_some_and(|column| column.number);
        let change = match (before, after) {
            (Some(before), Some(after)) if number => match compare_numbers(before, after) {
                Ordering::Less => Change::Up,
                Ordering::Greater => Change::Down,
                Ordering::Equal => Change::Other,
            },
            _ => Change::Other,
        };
        (at, change)
    };
    pairs.map(change).collect()
}

fn remember<T>(last: &mut VecDeque<T>, one: T) {
    last.push_back(one);
    while last.len() > MOST_ROWS {
        last.pop_front();
    }
}
