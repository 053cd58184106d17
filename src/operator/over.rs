//! Over: each row, and what functions make of the rows around it in its partition, once it is final.
//!
//! RELATION   each row with f₁ … fₙ over frames of the rows of its partition, in their order
//! REMEMBERS  (partition, time, number) → rows that are not final yet, and those that frames of rows to come reach back to;
//!            partition → how many rows there were, and the partial states of functions over all of them
//! ON CHANGE  nothing: a row waits until nothing that comes can change what the functions make of it
//! FORGETS    rows that no frame reaches any more; all of a partition whose time is at or before the watermark
//! REFUSES    input that retracts, modes other than APPEND
//!
//! ```text
//! sum(v) of a row and the one before, by ts    in    (1s,5) (3s,2)       (2s,1)       watermark 3s
//!                                              out                                    (1s,5,5) (2s,1,6) (3s,2,3)
//! ```
//! Rows that are equal in the order come as they came. What is computed of a row is the same however rows were split into
//! batches: peers are given out together, and an aggregate over all rows before goes on from its partial state.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{concat, take};
use arrow::datatypes::{DataType, FieldRef, Fields, Int64Type, SchemaRef};
use arrow::row::RowConverter;
use datafusion::logical_expr::Accumulator;
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::scalar::ScalarValue;

use super::aggregate::as_declared;
use super::chain::version;
use super::node::{OperatorPart, OperatorSpec, Role, StateSpec};
use super::over_calls::{Call, Framed, Seen, window_values};
use super::over_index::{Entry, Final, OverIndex, Reach, Standing};
use super::{BatchInfo, ForgetBy, KeyedDelta, Output};
use crate::delta::keys::KeyCodec;
use crate::delta::time::time_values;
use crate::error::{Error, Result};
use crate::state::schema::StateSchema;
use crate::state::{Asked, Slot, Spread, StateTable, select_rows};

/// What all partitions of an OVER share.
pub struct OverSpec {
    /// `over`, `over#2`
    pub name: String,
    /// How many of the input's first columns say which partition a row is of.
    pub width: usize,
    pub codec: Arc<KeyCodec>,
    /// How many of the input's first columns are keys of a row; behind them the state has its number.
    pub lead: usize,
    pub keys: SchemaRef,
    pub row_codec: Arc<KeyCodec>,
    pub rows: SchemaRef,
    /// Which column has the time that rows are ordered by, where they are final by it.
    pub time: Option<usize>,
    /// What else they are ordered by, and what makes bytes of it: columns of the state.
    pub then_by: Vec<usize>,
    pub sorter: RowConverter,
    /// All that they are ordered by.
    pub order_by: Vec<PhysicalSortExpr>,
    pub is_final: Final,
    pub reach: Reach,
    /// When a row is final, or its partition ends.
    pub due: ForgetBy,
    /// When its partition ends, if the watermark ends it.
    pub ends: Option<ForgetBy>,
    pub calls: Vec<Call>,
    pub running: Option<RunningSpec>,
    /// Where the result's columns are in the state: what orders it, then those of the input.
    pub columns: Vec<usize>,
    pub output: SchemaRef,
    /// Of the result's first columns, to hand rows on in an order.
    pub order: (Arc<KeyCodec>, usize),
    /// What it does, as it is known again by.
    pub text: String,
    /// What bounds the rows that are remembered.
    pub bound: String,
    /// When it sends a row.
    pub sends: String,
}

/// What is remembered of all rows of a partition together.
pub struct RunningSpec {
    /// `running`, `running#2`
    pub name: String,
    pub keys: SchemaRef,
    /// Key, rows, places in the order, partial states.
    pub rows: SchemaRef,
    /// The states of each function that runs on, by their columns.
    pub states: Vec<Vec<FieldRef>>,
    /// The functions' names.
    pub serves: String,
    pub bound: String,
}

impl OperatorSpec for OverSpec {
    fn output(&self) -> &SchemaRef {
        &self.output
    }

    fn key(&self, _input: usize) -> (&Arc<KeyCodec>, usize) {
        (&self.codec, self.width)
    }

    fn order(&self) -> (&Arc<KeyCodec>, usize) {
        (&self.order.0, self.order.1)
    }

    fn states(&self) -> Vec<StateSpec> {
        let behind = |rows: &SchemaRef, keys: &SchemaRef| -> Fields {
            rows.fields()[keys.fields().len()..].iter().cloned().collect()
        };
        let own = StateSpec {
            rows: self.rows.clone(),
            keys: self.keys.clone(),
            codec: self.row_codec.clone(),
            stored: StateSchema::new(&self.name, self.keys.fields(), &behind(&self.rows, &self.keys), BTreeMap::new())
                .made_by(Some(self.text.clone())),
            spread: Some(Spread { codec: self.codec.clone(), columns: self.width, asked: Asked::Key }),
            forget: Some(self.due),
            kind: "over",
            bound: self.bound.clone(),
            role: Role::Own,
        };
        let running = self.running.as_ref().map(|running| {
            let versions = self.framed().map(|framed| {
                let function = framed.function();
                (function.fun().name().to_string(), version(function))
            });
            StateSpec {
                rows: running.rows.clone(),
                keys: running.keys.clone(),
                codec: self.codec.clone(),
                stored: StateSchema::new(
                    &running.name,
                    running.keys.fields(),
                    &behind(&running.rows, &running.keys),
                    versions.collect(),
                ),
                spread: None,
                forget: self.ends,
                kind: "over",
                bound: running.bound.clone(),
                role: Role::Part(running.serves.clone()),
            }
        });
        std::iter::once(own).chain(running).collect()
    }

    fn part(self: Arc<Self>) -> Result<Box<dyn OperatorPart>> {
        Ok(Box::new(Over { spec: self, index: None, fresh: Vec::new() }))
    }

    fn only_adds(&self) -> bool {
        true
    }

    fn waits(&self) -> bool {
        true
    }

    fn rows_to_follow(&self) -> u64 {
        match self.is_final {
            Final::ByTime { rows, .. } => rows,
            Final::AtItsEnd => 0,
        }
    }

    fn describe(&self) -> Vec<String> {
        let growing = self.framed().filter(|framed| {
            let function = framed.function();
            function.state_fields().is_ok_and(|states| states.iter().any(|state| state.data_type().is_list()))
        });
        let names: Vec<&str> = growing.map(|framed| framed.function().name()).collect();
        let first = format!("{}; sends {}", self.text, self.sends);
        let costs = (!names.is_empty()).then(|| {
            format!(
                "{} keeps values of all rows of a partition: a batch costs as much as the partitions that it touches hold",
                names.join(", ")
            )
        });
        std::iter::once(first).chain(costs).collect()
    }
}

impl OverSpec {
    /// The functions that run on, in the order of their states.
    fn framed(&self) -> impl Iterator<Item = &Framed> {
        self.calls.iter().filter_map(|call| match call {
            Call::Running(framed) => Some(framed),
            _ => None,
        })
    }

    /// Bytes of what rows are ordered by behind their time.
    fn places(&self, columns: &[ArrayRef], rows: usize) -> Result<Vec<Box<[u8]>>> {
        if self.then_by.is_empty() {
            return Ok(vec![Box::default(); rows]);
        }
        let by: Vec<ArrayRef> = self.then_by.iter().map(|at| columns[*at].clone()).collect();
        let by = self.sorter.convert_columns(&by).map_err(Error::from)?;
        Ok((0..rows).map(|row| by.row(row).as_ref().into()).collect())
    }

    /// When the partitions of rows end.
    fn ends(&self, columns: &[ArrayRef], rows: usize) -> Result<Vec<i64>> {
        self.ends.map_or_else(|| Ok(vec![i64::MAX; rows]), |by| by.times(columns))
    }

    /// The times of rows, of which there is none without one; 0 where they are not ordered by time.
    fn times(&self, columns: &[ArrayRef], rows: usize) -> Result<Int64Array> {
        self.time.map_or_else(|| Ok(Int64Array::from(vec![0; rows])), |at| time_values(&columns[at]))
    }
}

/// One partition's work on one batch. See the module's documentation.
struct Over {
    spec: Arc<OverSpec>,
    /// Made of what is remembered when the first batch comes.
    index: Option<OverIndex>,
    /// Rows that this batch brought, as they came.
    fresh: Vec<Slot>,
}

/// Rows of one partition that a batch can see.
struct Work {
    id: u32,
    /// Where they begin among all that are gathered.
    at: usize,
    done: usize,
    standing: Standing,
}

/// What is remembered of all rows of a partition.
struct Total {
    rows: i64,
    places: i64,
    /// One a function that runs on.
    functions: Vec<Box<dyn Accumulator>>,
}

impl OperatorPart for Over {
    fn push(
        &mut self,
        _: usize,
        changes: &KeyedDelta,
        batch: &BatchInfo,
        states: &mut [&mut StateTable],
    ) -> Result<()> {
        let [state, ..] = states else { return Err(Error::internal("an OVER without a state")) };
        let mut index = self.opened(batch, state)?;
        let spec = self.spec.clone();
        // Nothing without a time comes this far, but that is another's promise.
        let all = changes.rows.num_rows();
        let timed = spec.time.filter(|at| changes.rows.column(*at).null_count() > 0);
        let select = match (&changes.select, timed) {
            (None, None) => None,
            (select, timed) => {
                let rows: Vec<u32> = select.clone().unwrap_or_else(|| (0..all as u32).collect());
                let has_time = |row: &u32| timed.is_none_or(|at| changes.rows.column(at).is_valid(*row as usize));
                Some(rows.into_iter().filter(has_time).collect::<Vec<u32>>())
            }
        };
        let rows = match &select {
            None => changes.rows.clone(),
            Some(select) => select_rows(&changes.rows, select.clone())?,
        };
        let (count, columns) = (rows.num_rows(), rows.columns());
        if count == 0 {
            self.index = Some(index);
            return Ok(());
        }
        let (times, ends) = (spec.times(columns, count)?, spec.ends(columns, count)?);
        let (mut ids, mut numbers) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for row in 0..count {
            let key = changes.keys.bytes(select.as_ref().map_or(row, |select| select[row] as usize));
            let id = index.partition(key, ends[row]);
            ids.push(id);
            numbers.push(index.number(id, times.value(row)));
        }
        let mut keys: Vec<ArrayRef> = columns[..spec.lead].to_vec();
        keys.push(Arc::new(Int64Array::from(numbers.clone())));
        let all: Vec<ArrayRef> = keys.iter().chain(&columns[spec.lead..]).cloned().collect();
        let places = spec.places(&all, count)?;
        let mut slots = Vec::with_capacity(count);
        state.find_or_insert_all(&spec.row_codec.encode(&keys, count)?, None, count, &mut slots);
        for (row, by) in places.into_iter().enumerate() {
            index.enter(ids[row], Entry { time: times.value(row), by, number: numbers[row], slot: slots[row] });
        }
        self.fresh.extend(&slots);
        let due = spec.due.times(&keys)?;
        state.write(slots, keys, columns[spec.lead..].to_vec(), Some(&due))?;
        self.index = Some(index);
        Ok(())
    }

    fn finish(&mut self, batch: &BatchInfo, states: &mut [&mut StateTable]) -> Result<Vec<Output>> {
        let mut out: Vec<Output> = states.iter().map(|_| Output::default()).collect();
        let Some((state, others)) = states.split_first_mut() else { return Ok(out) };
        let Some((own, of_others)) = out.split_first_mut() else { return Ok(out) };
        let mut index = self.opened(batch, state)?;
        let mut gone = Vec::new();
        if let Some(until) = ForgetBy::until(batch) {
            let due = state.due(until);
            let touched = index.touched(&due, until);
            state.settle(&due, until);
            let mut works = Vec::new();
            let mut at = 0;
            for id in &touched {
                let part = &mut index.parts[*id as usize];
                part.sort();
                let standing = part.standing(until, self.spec.is_final);
                if standing.ready > part.done {
                    works.push(Work { id: *id, at, done: part.done, standing });
                    at += standing.settled;
                }
            }
            if !works.is_empty() {
                let running = others.first_mut().map(|running| &mut **running).zip(of_others.first_mut());
                self.compute(&works, &index, state, running, own)?;
            }
            for id in touched {
                self.let_go(id, until, &mut index, &mut gone);
            }
            if let (Some(running), Some(out), Some(by), Some(ends)) =
                (others.first_mut(), of_others.first_mut(), &self.spec.running, self.spec.ends)
            {
                ends.forget(until, &by.keys, running, out)?;
            }
        }
        self.keep(gone, state, own)?;
        self.index = Some(index);
        Ok(out)
    }
}

impl Over {
    /// The index of what is remembered: as it was behind the batch before.
    fn opened(&mut self, batch: &BatchInfo, state: &mut StateTable) -> Result<OverIndex> {
        if let Some(index) = self.index.take() {
            return Ok(index);
        }
        let spec = self.spec.clone();
        let (mut index, slots) = (OverIndex::default(), state.slots());
        if slots.is_empty() {
            return Ok(index);
        }
        let until = ForgetBy::until(&BatchInfo { watermark: batch.late_watermark, ..*batch });
        let columns = state.columns(&slots, 0..spec.rows.fields().len())?;
        let (times, ends) = (spec.times(&columns, slots.len())?, spec.ends(&columns, slots.len())?);
        let (places, numbers) = (spec.places(&columns, slots.len())?, columns[spec.lead].as_primitive::<Int64Type>());
        let due = spec.due.times(&columns)?;
        let keys = spec.codec.encode(&columns[..spec.width], slots.len())?;
        let mut ids = Vec::with_capacity(slots.len());
        for (row, by) in places.into_iter().enumerate() {
            let id = index.partition(keys.bytes(row), ends[row]);
            let entry = Entry { time: times.value(row), by, number: numbers.value(row), slot: slots[row] };
            if until.is_none_or(|until| due[row] > until) {
                index.numbered(id, entry.time, entry.number);
            }
            index.enter(id, entry);
            ids.push(id);
        }
        let Some(until) = until else { return Ok(index) };
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            let part = &mut index.parts[id as usize];
            part.sort();
            let ready = part.standing(until, spec.is_final).ready;
            part.give(ready);
            // Nothing is to be let go of that the batch before has left.
            let wake = part.trim(until, spec.reach, spec.is_final, &mut Vec::new());
            index.wake_at(id, wake);
        }
        // What was given out, and what waits for rows to follow, is due no more.
        let due = state.due(until);
        state.settle(&due, until);
        Ok(index)
    }

    /// Computes the rows that have become final, and what is remembered of all rows of their partitions.
    fn compute(
        &self,
        works: &[Work],
        index: &OverIndex,
        state: &StateTable,
        running: Option<(&mut StateTable, &mut Output)>,
        out: &mut Output,
    ) -> Result<()> {
        let spec = &self.spec;
        let seen = works.iter().flat_map(|work| &index.parts[work.id as usize].rows[..work.standing.settled]);
        let slots: Vec<Slot> = seen.map(|row| row.slot).collect();
        let columns = state.columns(&slots, 0..spec.rows.fields().len())?;
        let options = RecordBatchOptions::new().with_row_count(Some(slots.len()));
        let rows = RecordBatch::try_new_with_options(spec.rows.clone(), columns, &options).map_err(Error::from)?;
        let mut totals = match &running {
            Some((running, _)) => self.totals(works, &rows, running)?,
            None => Vec::new(),
        };
        let mut values: Vec<Values> = spec.calls.iter().map(Values::of).collect();
        for (n, work) in works.iter().enumerate() {
            let held = rows.slice(work.at, work.standing.settled);
            let of = work.done..work.standing.ready;
            let mut total = totals.get_mut(n);
            let (rows_before, places_before) =
                total.as_ref().map_or((0, 0), |total| (total.rows as u64, total.places as u64));
            let seen = Seen { rows: &held, of: of.clone(), order_by: &spec.order_by, rows_before, places_before };
            let final_rows = held.slice(of.start, of.end - of.start);
            let only = Seen { rows: &final_rows, of: 0..of.end - of.start, ..seen };
            let mut function = 0;
            for (call, values) in spec.calls.iter().zip(&mut values) {
                match (call, values) {
                    (Call::Window(window), Values::Arrays(arrays)) => arrays.push(window_values(window, None, &seen)?),
                    (Call::Number(window, rank), Values::Arrays(arrays)) => {
                        arrays.push(window_values(window, Some(*rank), &seen)?);
                    }
                    (Call::Framed(framed), Values::Scalars(scalars)) => framed.compute(&seen, None, scalars)?,
                    (Call::Running(framed), Values::Scalars(scalars)) => {
                        let lost = || Error::internal("a function that runs on, and nothing that it runs on from");
                        let total = total.as_mut().and_then(|total| total.functions.get_mut(function));
                        framed.compute(&only, Some(total.ok_or_else(lost)?), scalars)?;
                        function += 1;
                    }
                    _ => return Err(Error::internal("a function of an OVER has lost its values")),
                }
            }
            if let Some(total) = total {
                let part = &index.parts[work.id as usize].rows[of.clone()];
                let places = part.chunk_by(|a, b| a.is_peer(b)).count();
                total.rows = total.rows.saturating_add((of.end - of.start) as i64);
                total.places = total.places.saturating_add(places as i64);
            }
        }
        let given =
            works.iter().flat_map(|work| (work.at + work.done..work.at + work.standing.ready).map(|n| n as u32));
        let given: UInt32Array = given.collect();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(spec.output.fields().len());
        for at in &spec.columns {
            columns.push(take(rows.column(*at), &given, None).map_err(Error::from)?);
        }
        for values in values {
            let field = &spec.output.fields()[columns.len()];
            columns.push(as_declared(values.array(field.data_type())?, field)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(given.len()));
        out.rows.push(RecordBatch::try_new_with_options(spec.output.clone(), columns, &options).map_err(Error::from)?);
        match running {
            Some((running, out)) => self.remember(works, &rows, totals, running, out),
            None => Ok(()),
        }
    }

    /// The keys of the partitions of some work.
    fn keys_of(&self, works: &[Work], rows: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let first: UInt32Array = works.iter().map(|work| work.at as u32).collect();
        let key = |column: &ArrayRef| take(column, &first, None).map_err(Error::from);
        let keys: Vec<ArrayRef> = rows.columns()[..self.spec.width].iter().map(key).collect::<Result<_>>()?;
        if self.spec.codec.is_plain() || keys.is_empty() {
            return Ok(keys);
        }
        let encoded = self.spec.codec.encode(&keys, works.len())?;
        self.spec.codec.decode((0..works.len()).map(|row| encoded.bytes(row)))
    }

    /// What is remembered of all rows of these partitions.
    fn totals(&self, works: &[Work], rows: &RecordBatch, running: &StateTable) -> Result<Vec<Total>> {
        let spec = &self.spec;
        let keys = spec.codec.encode(&self.keys_of(works, rows)?, works.len())?;
        let slots: Vec<Option<Slot>> = (0..works.len()).map(|row| running.find(&keys, row)).collect();
        let known: Vec<Slot> = slots.iter().flatten().copied().collect();
        let values = running.values(&known)?;
        let numbers = |at: usize| values[at].as_primitive::<Int64Type>();
        let mut row = 0;
        let total = |slot: &Option<Slot>| -> Result<Total> {
            let from = slot.is_some().then_some(row);
            row += usize::from(from.is_some());
            let mut at = 2;
            let functions = spec.framed().zip(spec.running.iter().flat_map(|running| &running.states));
            let functions = functions.map(|(framed, states)| {
                let columns = at..at + states.len();
                at += states.len();
                let state: Vec<ArrayRef> = match from {
                    Some(row) => columns.map(|n| values[n].slice(row, 1)).collect(),
                    None => Vec::new(),
                };
                framed.resumed(&state)
            });
            let functions = functions.collect::<Result<_>>()?;
            Ok(match from {
                Some(row) => Total { rows: numbers(0).value(row), places: numbers(1).value(row), functions },
                None => Total { rows: 0, places: 0, functions },
            })
        };
        slots.iter().map(total).collect()
    }

    fn remember(
        &self,
        works: &[Work],
        rows: &RecordBatch,
        totals: Vec<Total>,
        running: &mut StateTable,
        out: &mut Output,
    ) -> Result<()> {
        let Some(spec) = &self.spec.running else { return Ok(()) };
        let keys = self.keys_of(works, rows)?;
        let mut values: Vec<ArrayRef> = vec![
            Arc::new(totals.iter().map(|total| Some(total.rows)).collect::<Int64Array>()),
            Arc::new(totals.iter().map(|total| Some(total.places)).collect::<Int64Array>()),
        ];
        let fields: Vec<&FieldRef> = spec.states.iter().flatten().collect();
        let mut states: Vec<Vec<ScalarValue>> = vec![Vec::with_capacity(totals.len()); fields.len()];
        for mut total in totals {
            let mut at = states.iter_mut();
            for function in &mut total.functions {
                for (state, into) in function.state()?.into_iter().zip(&mut at) {
                    into.push(state);
                }
            }
        }
        for (state, field) in states.into_iter().zip(fields) {
            values.push(as_declared(ScalarValue::iter_to_array(state)?, field)?);
        }
        let mut slots = Vec::with_capacity(works.len());
        running.find_or_insert_all(&self.spec.codec.encode(&keys, works.len())?, None, works.len(), &mut slots);
        let times = self.spec.ends.map(|by| by.times(&keys)).transpose()?;
        out.updated += slots.len() as u64;
        out.upserts.push(running.write(slots, keys, values, times.as_deref())?);
        Ok(())
    }

    /// Lets go of a partition's rows that nothing reaches any more.
    fn let_go(&self, id: u32, until: i64, index: &mut OverIndex, gone: &mut Vec<Slot>) {
        let spec = &self.spec;
        let part = &mut index.parts[id as usize];
        let standing = part.standing(until, spec.is_final);
        if standing.ended {
            gone.extend(part.rows.drain(..).map(|row| row.slot));
        } else {
            part.give(standing.ready);
            let next = part.trim(until, spec.reach, spec.is_final, gone);
            let end = part.end;
            index.wake_at(id, next.min(end));
        }
        index.drop_empty(id);
    }

    /// What the batch has changed of the rows that are remembered: those that came and went in it are no change.
    fn keep(&mut self, gone: Vec<Slot>, state: &mut StateTable, out: &mut Output) -> Result<()> {
        let keys = self.spec.keys.clone();
        let fresh: HashSet<Slot> = self.fresh.iter().copied().collect();
        let (passed, gone): (Vec<Slot>, Vec<Slot>) = gone.into_iter().partition(|slot| fresh.contains(slot));
        let passed_by: HashSet<Slot> = passed.iter().copied().collect();
        let stays: Vec<Slot> =
            std::mem::take(&mut self.fresh).into_iter().filter(|slot| !passed_by.contains(slot)).collect();
        if !stays.is_empty() {
            let columns = state.columns(&stays, 0..self.spec.rows.fields().len())?;
            let options = RecordBatchOptions::new().with_row_count(Some(stays.len()));
            let rows = RecordBatch::try_new_with_options(self.spec.rows.clone(), columns, &options);
            out.upserts.push(rows.map_err(Error::from)?);
            out.updated += stays.len() as u64;
        }
        state.forget(&passed, &keys)?;
        out.forgot(state.forget(&gone, &keys)?);
        Ok(())
    }
}

/// The values of one function, of all partitions.
enum Values {
    Arrays(Vec<ArrayRef>),
    Scalars(Vec<ScalarValue>),
}

impl Values {
    fn of(call: &Call) -> Self {
        match call {
            Call::Window(_) | Call::Number(..) => Values::Arrays(Vec::new()),
            Call::Framed(_) | Call::Running(_) => Values::Scalars(Vec::new()),
        }
    }

    fn array(self, is: &DataType) -> Result<ArrayRef> {
        match self {
            Values::Arrays(arrays) => {
                let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
                if arrays.is_empty() {
                    Ok(arrow::array::new_empty_array(is))
                } else {
                    concat(&arrays).map_err(Error::from)
                }
            }
            Values::Scalars(scalars) if scalars.is_empty() => Ok(arrow::array::new_empty_array(is)),
            Values::Scalars(scalars) => ScalarValue::iter_to_array(scalars).map_err(Error::from),
        }
    }
}
