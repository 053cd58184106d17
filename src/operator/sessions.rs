//! Sessions: one output row for each session of a key.
//!
//! RELATION   γ keys, sessions; f₁ … fₙ, a session being rows whose [time, time + gap) touch one another
//! REMEMBERS  (key, session's start) → the session's end, the partial states of f₁ … fₙ
//! ON CHANGE  rows and sessions that touch become one session; emit its new row, take back the rows of what it absorbed
//! FORGETS    sessions whose end is at or before the watermark; in APPEND emits them then; in COMPLETE never
//! REFUSES    input that retracts, functions that depend on the order of their input
//!
//! ```text
//! gap 10    remembered  [25 ─ 35)      [40 ─ 50)         in: a row at 30, [30 ─ 40), which reaches 40
//!           then        [25 ────────────────── 50)       old rows −[25,35) −[40,50), new row +[25,50): one number for all three
//! ```
//! Rows come as partial states of (key, start, end), a state or more for each. A batch is sorted once, by key and start; then
//! sessions are found in one pass over it and what is remembered of its keys, and all states are merged in one go.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch, UInt32Array};
use arrow::compute::{concat, take};
use arrow::datatypes::{Fields, SchemaRef};
use datafusion::logical_expr::EmitTo;

use super::aggregate::as_declared;
use super::chain::{bare, growing, sends, version};
use super::node::{OperatorPart, OperatorSpec, Role, StateSpec};
use super::session_index::SessionIndex;
use super::session_merge::{Entry, Merged, merge_key};
use super::{AggregateSpec, BatchInfo, Emit, ForgetBy, KeyedDelta, Output};
use crate::delta::keys::{KeyCodec, Keys};
use crate::delta::time::{micros_ceil, time_array, time_values, unit_of};
use crate::error::{Error, Result};
use crate::state::schema::StateSchema;
use crate::state::{Asked, Slot, Spread, StateTable};

/// What all partitions share.
pub struct SessionSpec {
    /// The functions. Its keys are those of the state: the session's key, then its start. The states of input 0 stand behind
    /// key, start and end.
    pub aggregate: AggregateSpec,
    /// Of the session's key.
    pub key: Arc<KeyCodec>,
    /// Of the state's keys.
    pub state_key: Arc<KeyCodec>,
    /// Of the result's keys.
    pub result_key: Arc<KeyCodec>,
    /// The result's keys, by their places among key, start and end.
    pub places: Vec<usize>,
    /// `session_window(ts, 10 seconds)`
    pub window: String,
}

impl SessionSpec {
    /// How many columns a session's key has; then come its start and its end.
    fn width(&self) -> usize {
        self.aggregate.keys.len() - 1
    }

    /// Rows of the result from the columns of the state.
    fn result(&self, columns: &[ArrayRef], rows: usize) -> Result<RecordBatch> {
        let keys = self.places.iter().map(|place| columns[*place].clone()).collect();
        self.aggregate.result_of_states(keys, &columns[self.width() + 2..], rows)
    }

    /// When sessions of these ends may be forgotten, in microseconds.
    fn times(&self, ends: &ArrayRef) -> Result<Option<Vec<i64>>> {
        let by = self.aggregate.forget.map(|by| ForgetBy { column: 0, ..by });
        by.map(|by| by.times(std::slice::from_ref(ends))).transpose()
    }
}

impl OperatorSpec for SessionSpec {
    fn output(&self) -> &SchemaRef {
        &self.aggregate.output
    }

    fn key(&self, _input: usize) -> (&Arc<KeyCodec>, usize) {
        (&self.key, self.width())
    }

    fn order(&self) -> (&Arc<KeyCodec>, usize) {
        (&self.result_key, self.places.len())
    }

    fn states(&self) -> Vec<StateSpec> {
        let spec = &self.aggregate;
        let values: Fields = spec.state_schema.fields()[spec.keys.len()..].iter().cloned().collect();
        let functions: BTreeMap<_, _> = spec.names.iter().cloned().zip(spec.functions.iter().map(version)).collect();
        let bound = match (spec.forget, spec.emit) {
            (Some(_), _) => format!("one row a session, until the watermark reaches {}.end", self.window),
            (None, Emit::All) => "one row a session, kept for ever (COMPLETE sends all of them)".into(),
            (None, _) => "UNBOUNDED: one row a session, kept for ever, as its time has no watermark".into(),
        };
        vec![StateSpec {
            rows: spec.state_schema.clone(),
            keys: spec.key_schema.clone(),
            codec: self.state_key.clone(),
            stored: StateSchema::new(&spec.name, spec.key_schema.fields(), &values, functions)
                .made_by(spec.casts.clone()),
            // All sessions of a key lie in one partition: any of them may touch the next row.
            spread: Some(Spread { codec: self.key.clone(), columns: self.width(), asked: Asked::Key }),
            forget: spec.forget,
            kind: "sessionWindowStateStoreSaveExec",
            bound,
            role: Role::Own,
        }]
    }

    fn is_of_its_mode(&self) -> bool {
        true
    }

    fn part(self: Arc<Self>) -> Result<Box<dyn OperatorPart>> {
        Ok(Box::new(Sessions { spec: self, index: None, pieces: Vec::new() }))
    }

    fn describe(&self) -> Vec<String> {
        let spec = &self.aggregate;
        let keys: Vec<&str> = spec.keys[..self.width()].iter().map(|f| bare(f.name())).collect();
        let what = format!(
            "keys [{}], {}, functions [{}]; sends {}",
            keys.join(", "),
            self.window,
            spec.names.join(", "),
            sends(spec.emit, "session")
        );
        std::iter::once(what).chain(growing(spec, "session")).collect()
    }
}

/// One partition's work on one batch. See the module's documentation.
pub struct Sessions {
    spec: Arc<SessionSpec>,
    /// Made of the state when the first batch comes.
    index: Option<SessionIndex>,
    /// The batch's rows, as they came.
    pieces: Vec<Piece>,
}

/// Rows of a batch that all partitions share, with their keys; `select`: those of this partition, where it is not all.
struct Piece {
    rows: RecordBatch,
    keys: Arc<Keys>,
    select: Option<UInt32Array>,
}

impl OperatorPart for Sessions {
    fn push(
        &mut self,
        _input: usize,
        rows: &KeyedDelta,
        _batch: &BatchInfo,
        _states: &mut [&mut StateTable],
    ) -> Result<()> {
        let (start, end) = (rows.rows.column(self.spec.width()), rows.rows.column(self.spec.width() + 1));
        let KeyedDelta { rows: all, keys, mut select } = rows.clone();
        // Nothing without a time comes this far, but that is another's promise.
        if start.null_count() + end.null_count() > 0 {
            let timed = |row: &u32| start.is_valid(*row as usize) && end.is_valid(*row as usize);
            let rows = select.unwrap_or_else(|| (0..all.num_rows() as u32).collect());
            select = Some(rows.into_iter().filter(timed).collect());
        }
        if select.as_ref().is_none_or(|rows| !rows.is_empty()) {
            self.pieces.push(Piece { rows: all, keys, select: select.map(UInt32Array::from) });
        }
        Ok(())
    }

    fn finish(&mut self, batch: &BatchInfo, states: &mut [&mut StateTable]) -> Result<Vec<Output>> {
        let mut out = Output::default();
        let Some(state) = states.first_mut() else { return Ok(vec![out]) };
        let mut index = match self.index.take() {
            Some(index) => index,
            None => self.remembered(state)?,
        };
        let pieces = std::mem::take(&mut self.pieces);
        if !pieces.is_empty() {
            let merged = self.merge(&pieces, &mut index)?;
            self.write(&pieces, &merged, &mut index, state, &mut out)?;
        }
        self.forget(batch, &mut index, state, &mut out)?;
        if self.spec.aggregate.emit == Emit::All {
            self.emit(&state.slots(), state, &mut out.rows)?;
        }
        self.index = Some(index);
        Ok(vec![out])
    }
}

impl Sessions {
    fn remembered(&self, state: &StateTable) -> Result<SessionIndex> {
        let (slots, width) = (state.slots(), self.spec.width());
        let mut index = SessionIndex::default();
        if !slots.is_empty() {
            let (keys, values) = (state.key_columns(&slots)?, state.values(&slots)?);
            let encoded = self.spec.key.encode(&keys[..width], slots.len())?;
            index.fill(&slots, &encoded, &time_values(&keys[width])?, &time_values(&values[0])?);
        }
        Ok(index)
    }

    /// Finds the sessions of the batch's rows and of what is remembered of their keys.
    fn merge(&self, pieces: &[Piece], index: &mut SessionIndex) -> Result<Merged> {
        let width = self.spec.width();
        let mut entries: Vec<Entry> = Vec::new();
        for piece in pieces {
            let (starts, ends) = (time_values(piece.rows.column(width))?, time_values(piece.rows.column(width + 1))?);
            let mut take = |at: usize| {
                let (group, row) = (index.group(&piece.keys, at), entries.len() as u32);
                entries.push(Entry { group, start: starts.value(at), end: ends.value(at), row });
            };
            match &piece.select {
                Some(rows) => rows.values().iter().for_each(|row| take(*row as usize)),
                None => (0..piece.rows.num_rows()).for_each(take),
            }
        }
        let mut merged = Merged { of_row: vec![0; entries.len()], ..Merged::default() };
        entries.sort_unstable_by_key(|entry| (entry.group, entry.start, entry.row));
        for of_key in entries.chunk_by(|a, b| a.group == b.group) {
            merge_key(of_key, index.sessions(of_key[0].group), &mut merged);
        }
        Ok(merged)
    }

    /// Writes the sessions that the batch has made or changed, and hands them out where that is asked for.
    fn write(
        &self,
        pieces: &[Piece],
        merged: &Merged,
        index: &mut SessionIndex,
        state: &mut StateTable,
        out: &mut Output,
    ) -> Result<()> {
        let (spec, width, total) = (&self.spec.aggregate, self.spec.width(), merged.sessions.len());
        let old_slots: Vec<Slot> = merged.old.iter().map(|(session, _)| session.slot).collect();
        let old = if old_slots.is_empty() { Vec::new() } else { state.values(&old_slots)? };
        if spec.emit == (Emit::Changed { old: true }) && !old_slots.is_empty() {
            let columns: Vec<ArrayRef> =
                state.key_columns(&old_slots)?.into_iter().chain(old.iter().cloned()).collect();
            out.old_rows.push(self.spec.result(&columns, old_slots.len())?);
            out.old_keys = merged.old.iter().map(|(_, number)| *number).collect();
        }
        // A session that keeps its start keeps its key, and is written over.
        let absorbed = merged.old.iter().filter(|(old, number)| old.start != merged.sessions[*number as usize].start);
        let absorbed: Vec<Slot> = absorbed.map(|(session, _)| session.slot).collect();
        out.forgot(state.forget(&absorbed, &spec.key_schema)?);
        let (keys, encoded) = self.keys_of(pieces, merged)?;
        let mut slots = Vec::with_capacity(total);
        state.find_or_insert_all(&encoded, None, total, &mut slots);
        for (touched, slot) in merged.sessions.iter().zip(&slots) {
            let sessions = index.sessions(touched.group);
            let at = sessions.partition_point(|session| session.start < touched.start);
            let session = sessions.get_mut(at).filter(|session| session.start == touched.start);
            session.ok_or_else(|| Error::internal("a session is not in the index"))?.slot = *slot;
        }
        let ends = merged.sessions.iter().map(|touched| touched.end);
        let ends = time_array(Int64Array::from_iter_values(ends), spec.state_schema.field(width + 1).data_type())?;
        let forget_at = self.spec.times(&ends)?;
        let mut values = vec![ends];
        values.extend(self.states(pieces, merged, &old)?);
        out.updated += total as u64;
        let rows = state.write(slots, keys, values, forget_at.as_deref())?;
        out.upserts.push(rows.clone());
        if let Emit::Changed { old } = spec.emit {
            out.rows.push(self.spec.result(rows.columns(), total)?);
            if old {
                out.new_keys = (0..total as u32).collect();
            }
        }
        Ok(())
    }

    /// The state's keys of the batch's sessions, as columns and as bytes.
    fn keys_of(&self, pieces: &[Piece], merged: &Merged) -> Result<(Vec<ArrayRef>, Keys)> {
        let (width, total) = (self.spec.width(), merged.sessions.len());
        let rows = UInt32Array::from_iter_values(merged.sessions.iter().map(|touched| touched.row));
        let key = |n: usize| take(&column(pieces, n, None)?, &rows, None).map_err(Error::from);
        let mut keys: Vec<ArrayRef> = (0..width).map(key).collect::<Result<_>>()?;
        let starts = Int64Array::from_iter_values(merged.sessions.iter().map(|touched| touched.start));
        keys.push(time_array(starts, self.spec.aggregate.keys[width].data_type())?);
        let encoded = self.spec.state_key.encode(&keys, total)?;
        if !self.spec.state_key.is_plain() {
            keys = self.spec.state_key.decode((0..total).map(|row| encoded.bytes(row)))?;
        }
        Ok((keys, encoded))
    }

    /// The states of the batch's sessions: those of its rows and of the sessions before, merged.
    fn states(&self, pieces: &[Piece], merged: &Merged, old: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        let (spec, total) = (&self.spec.aggregate, merged.sessions.len());
        let numbers: Vec<usize> =
            merged.old.iter().map(|(_, number)| *number as usize).chain(merged.of_row.iter().copied()).collect();
        let (mut at, mut states) = (0, Vec::new());
        for (function, fields) in spec.functions.iter().zip(&spec.states) {
            let columns = (at..at + fields.len())
                .map(|n| column(pieces, self.spec.width() + 2 + n, old.get(n + 1)))
                .collect::<Result<Vec<_>>>()?;
            at += fields.len();
            let mut accumulator = spec.accumulator(function).map_err(Error::from)?;
            accumulator.merge_batch(&columns, &numbers, total).map_err(Error::from)?;
            let merged = accumulator.state(EmitTo::All).map_err(Error::from)?;
            for (column, field) in merged.into_iter().zip(fields) {
                states.push(as_declared(column, field)?);
            }
        }
        Ok(states)
    }

    /// Forgets what the watermark has closed, and in APPEND hands it out.
    fn forget(
        &self,
        batch: &BatchInfo,
        index: &mut SessionIndex,
        state: &mut StateTable,
        out: &mut Output,
    ) -> Result<()> {
        let (Some(by), Some(until)) = (self.spec.aggregate.forget, ForgetBy::until(batch)) else { return Ok(()) };
        let due = state.due(until);
        if due.is_empty() {
            return Ok(());
        }
        if self.spec.aggregate.emit == Emit::Closed {
            self.emit(&due, state, &mut out.rows)?;
        }
        let (keys, width) = (state.key_columns(&due)?, self.spec.width());
        let unit = unit_of(keys[width].data_type())?;
        let encoded = self.spec.key.encode(&keys[..width], due.len())?;
        index.forget(&encoded, |session| micros_ceil(by.lasts.end(session.end, unit), unit) <= until);
        by.forget(until, &self.spec.aggregate.key_schema, state, out)
    }

    fn emit(&self, slots: &[Slot], state: &StateTable, rows: &mut Vec<RecordBatch>) -> Result<()> {
        if slots.is_empty() {
            return Ok(());
        }
        let columns: Vec<ArrayRef> = state.key_columns(slots)?.into_iter().chain(state.values(slots)?).collect();
        rows.push(self.spec.result(&columns, slots.len())?);
        Ok(())
    }
}

/// A column of the batch's rows, behind what is remembered.
fn column(pieces: &[Piece], n: usize, old: Option<&ArrayRef>) -> Result<ArrayRef> {
    let mut parts: Vec<ArrayRef> = old.cloned().into_iter().collect();
    for piece in pieces {
        let all = piece.rows.column(n);
        parts.push(match &piece.select {
            None => all.clone(),
            Some(rows) => take(all, rows, None).map_err(Error::from)?,
        });
    }
    match parts.as_slice() {
        [one] => Ok(one.clone()),
        parts => concat(&parts.iter().map(|part| part.as_ref()).collect::<Vec<_>>()).map_err(Error::from),
    }
}
