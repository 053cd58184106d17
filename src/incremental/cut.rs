//! The cut: a logical plan over streams becomes fragments and operators.
//!
//! 1. DataFusion's analyzer, nothing else: optimizer rules would take streams and operators out of the plan.
//! 2. Refuse what can't run.
//! 3. From the bottom up: leaves in place of streams, taps in place of watermarks, the batch's clock in place of `now()`.
//! 4. At each node that remembers, what is below it becomes the fragment of an operator's input, and a leaf for the
//!    operator's result stands in its place.
//! 5. What is left is the fragment from the last operators to the sink.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::datasource::provider_as_source;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, FetchType, Join, Limit, LogicalPlan, LogicalPlanBuilder, SkipType, TableScan, Union,
    Window,
};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::aggregate::{Counts, Cut, Request, TimeKey, cut, groups_by_time, leaf_schema, time_key};
use super::batch_cell::BatchCell;
use super::deduplicate::Deduplication;
use super::fragment::Fragment;
use super::grouping_sets;
use super::join;
use super::join_plan::prepare;
use super::linear;
use super::now::replace_now;
use super::part::{Above, Fed, Part, columns_of, distinct_columns, result_of};
use super::planning::Planning;
use super::retract::{self, Hidden};
use super::session_rows;
use super::sessions::{self, SessionKeys, session_keys};
use super::survey::{
    check, is_top, met_statics, nullable, order_matters_in, statics, text_above, top_aggregate, visible_schema,
    watermarks,
};
use super::tap::{Tap, TapKind};
use super::{
    IncrementalPlan, Input, OperatorNode, TargetTraits, WatermarkInput, mode, over, over_now, top, window_keys,
};
use crate::delta::keys::KeyCodec;
use crate::error::{Error, Result};
use crate::operator::{Emit, LimitSpec, OperatorSpec};
use crate::parser::OutputMode;
use crate::planner::event_time::event_time;
use crate::planner::join_bounds::is_join_of_streams;
use crate::planner::leaf::Leaf;
use crate::planner::over::Over;
use crate::planner::session_functions::gives_sessions;
use crate::planner::top::TopNode;
use crate::planner::watermark::WatermarkNode;
use crate::planner::{any, expand, reads_stream, session_batch, set_operations, stream_of};

/// Plans a query for micro-batches.
///
/// # Errors
/// The refusals of the mode table; what can't run over a stream yet.
pub async fn plan(
    state: &SessionState,
    plan: LogicalPlan,
    mode: OutputMode,
    target: &TargetTraits,
    partitions: usize,
) -> Result<IncrementalPlan> {
    let plan = session_batch::expand_static(plan)?;
    let plan = if mode == OutputMode::Append { plan } else { session_batch::expand_changing(plan, mode)? };
    let plan = state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {})?;
    if !reads_stream(&plan) {
        return Err(Error::invalid("the query reads no stream, so it would never change")
            .help("run it as a SELECT, or CREATE VIEW"));
    }
    let output = visible_schema(&plan);
    let plan = grouping_sets::spread(window_keys::lift(plan)?)?;
    let plan = prepare(state, plan, mode)?;
    let top = top_aggregate(&plan)?;
    let others = any(&plan, |node| {
        let gives = gives_sessions(node) || matches!(node, LogicalPlan::Window(_));
        is_join_of_streams(node) || gives && reads_stream(node)
    });
    check(&plan, others, mode)?;
    let cell = Arc::new(BatchCell::new(watermarks(&plan)?));
    let plan = replace_now(plan, state.config_options().execution.time_zone.as_deref(), &cell)?;
    let statics = statics(&plan)?;
    let keeps_rows = others || any(&plan, is_top);
    let text = if top.is_some() || keeps_rows { text_above(&plan, top.as_ref()) } else { String::new() };
    let planning = Planning::new(state, partitions);
    let mut cutter = Cutter {
        state: &planning,
        mode,
        target,
        partitions,
        cell,
        occurrences: HashMap::new(),
        inputs: Vec::new(),
        watermarks: Vec::new(),
        operators: Vec::new(),
        named: Counts::default(),
        fixed_statics: BTreeSet::new(),
        order_matters: order_matters_in(&plan),
    };
    let part = cutter.cut(plan, Above { top: true, ..Above::OPERATOR }).await?;
    let Cutter { inputs, watermarks, mut operators, cell, fixed_statics, .. } = cutter;
    let streams: BTreeSet<&str> = inputs.iter().map(|input| input.stream.name.as_str()).collect();
    if let ([only], 1) = (&mut operators[..], streams.len()) {
        // It can be fed by nothing else.
        only.fed_by.clear();
    }
    let remembers = !operators.is_empty();
    mode::check_target(mode, target, part.signed)?;
    let plan = if part.signed { retract::carry(part.plan)? } else { part.plan };
    let plan = expand::expand(plan)?;
    let (partitions, ordered) = if remembers { (1, true) } else { (partitions, target.ordered) };
    let last = Fragment::plan(&planning, &plan, partitions, ordered, &Ok).await?;
    let hidden = part.signed.then(|| Hidden { visible: output.clone() });
    let (last_from, retracts) = (part.from, part.signed);
    Ok(IncrementalPlan {
        mode,
        inputs,
        watermarks,
        statics,
        fixed_statics,
        cell,
        operators,
        last,
        last_from,
        hidden,
        output,
        retracts,
        text,
    })
}

/// Whether a union is what [`crate::planner::set_operations`] makes of an EXCEPT or INTERSECT.
fn is_of_set_operation(union: &Union) -> bool {
    union.schema.fields().iter().any(|field| field.name() == set_operations::LEFT)
}

/// The work of one cut: what has been found so far.
struct Cutter<'a> {
    state: &'a Planning<'a>,
    mode: OutputMode,
    target: &'a TargetTraits,
    partitions: usize,
    cell: Arc<BatchCell>,
    /// How often each stream was met.
    occurrences: HashMap<String, usize>,
    inputs: Vec<Input>,
    watermarks: Vec<WatermarkInput>,
    /// In the order in which they run.
    operators: Vec<OperatorNode>,
    named: Counts,
    /// Static tables that rows meet which are taken back later.
    fixed_statics: BTreeSet<String>,
    /// Something depends on the order of the rows that it is given.
    order_matters: bool,
}

impl Cutter<'_> {
    fn cut(&mut self, node: LogicalPlan, above: Above) -> BoxFuture<'_, Result<Part>> {
        async move {
            if !reads_stream(&node) {
                return Ok(Part { plan: node, signed: false, lag: 0, from: Vec::new(), of: BTreeSet::new() });
            }
            if stream_of(&node).is_some() {
                return self.stream(node);
            }
            if let Some(watermark) = WatermarkNode::of(&node) {
                return self.watermark(watermark, above).await;
            }
            if let Some(top) = TopNode::of(&node) {
                return self.top(top, above).await;
            }
            let joins_streams = is_join_of_streams(&node);
            match node {
                LogicalPlan::Aggregate(aggregate) => match session_keys(&aggregate)? {
                    Some(keys) => self.sessions(aggregate, keys, above).await,
                    None => self.aggregate(aggregate, above).await,
                },
                LogicalPlan::Distinct(distinct) => self.distinct(distinct, above).await,
                LogicalPlan::Limit(limit) if self.mode == OutputMode::Append || !above.top => {
                    self.limit(limit, above).await
                }
                LogicalPlan::Join(join) if joins_streams => self.join(join, above).await,
                LogicalPlan::Union(union) => self.union(union, above).await,
                LogicalPlan::Window(window) => self.over(window, above).await,
                other => self.pass(other, above).await,
            }
        }
        .boxed()
    }

    fn stream(&mut self, node: LogicalPlan) -> Result<Part> {
        let (Some(stream), LogicalPlan::TableScan(scan)) = (stream_of(&node), node) else {
            return Err(Error::internal("a stream that is no scan"));
        };
        let n = self.occurrences.entry(stream.name.clone()).and_modify(|n| *n += 1).or_insert(1);
        let name = if *n == 1 { stream.name.clone() } else { format!("{}#{n}", stream.name) };
        let leaf = Leaf::new(name.clone(), stream.source_schema.clone());
        let source = provider_as_source(leaf.table());
        let of = BTreeSet::from([stream.name.clone()]);
        self.inputs.push(Input { name, stream, leaf });
        let plan = LogicalPlan::TableScan(TableScan { source, ..scan });
        Ok(Part { plan, signed: false, lag: 0, from: Vec::new(), of })
    }

    async fn watermark(&mut self, watermark: &WatermarkNode, above: Above) -> Result<Part> {
        let part = self.cut(watermark.input.clone(), above).await?;
        if !part.from.is_empty() {
            return Err(Error::not_yet("a watermark on the result of an aggregate")
                .help("put WATERMARK on the stream: it passes the aggregate with window_time(window)"));
        }
        let name = self.inputs.last().map(|i| i.name.clone()).unwrap_or_default();
        let max_future_skew = watermark.spec.max_future_skew;
        let kind = TapKind::Watermark { input: self.watermarks.len(), max_future_skew };
        let column = watermark.column.name.clone();
        self.watermarks.push(WatermarkInput { name, column, spec: watermark.spec.clone() });
        let plan = Tap::plan(part.plan, Expr::Column(watermark.column.clone()), kind, &self.cell);
        Ok(Part { plan, ..part })
    }

    /// A node that remembers nothing.
    async fn pass(&mut self, node: LogicalPlan, above: Above) -> Result<Part> {
        let sessions = gives_sessions(&node);
        if sessions && !above.sessions {
            return self.session_rows(node, above).await;
        }
        let above = Above { sessions: above.sessions && !sessions, ..above };
        let filters = matches!(node, LogicalPlan::Filter(_) | LogicalPlan::Join(_));
        let above = Above { filters: above.filters || filters, ..above };
        let mut inputs = Vec::new();
        let (plan, from, of) = Default::default();
        let mut joined = Part { plan, signed: false, lag: 0, from, of };
        for input in node.inputs().into_iter().cloned().collect::<Vec<_>>() {
            let part = self.cut(input, above).await?;
            inputs.push(part.plan);
            joined.signed |= part.signed;
            joined.lag = joined.lag.max(part.lag);
            joined.from.extend(part.from);
            joined.of.extend(part.of);
        }
        if joined.signed {
            self.fixed_statics.extend(met_statics(&node)?);
        }
        let plan = node.with_new_exprs(node.expressions(), inputs)?;
        Ok(Part { plan, ..joined })
    }

    async fn union(&mut self, union: Union, above: Above) -> Result<Part> {
        let mut parts = Vec::new();
        for input in &union.inputs {
            parts.push(self.cut(input.as_ref().clone(), above).await?);
        }
        let signed = parts.iter().any(|part| part.signed);
        let lag = parts.iter().map(|part| part.lag).max().unwrap_or_default();
        let from = parts.iter().flat_map(|part| part.from.iter().copied()).collect();
        let mut of: BTreeSet<String> = parts.iter().flat_map(|part| part.of.iter().cloned()).collect();
        if is_of_set_operation(&union) {
            // Which rows are of which side matters; of a UNION it doesn't.
            let side = |part: &Part| part.of.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            of = BTreeSet::from([parts.iter().map(side).collect::<Vec<_>>().join(" | ")]);
        }
        let plan = if signed {
            let carried = |part: Part| if part.signed { retract::carry(part.plan) } else { retract::sign(part.plan) };
            let inputs = parts.into_iter().map(carried).map(|plan| plan.map(Arc::new)).collect::<Result<_>>()?;
            LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?)
        } else {
            let inputs = parts.into_iter().map(|part| Arc::new(part.plan)).collect();
            LogicalPlan::Union(Union { inputs, schema: union.schema })
        };
        Ok(Part { plan, signed, lag, from, of })
    }

    async fn aggregate(&mut self, aggregate: Aggregate, above: Above) -> Result<Part> {
        let time = time_key(&aggregate);
        let is_time = |column: &&Column| event_time(&aggregate.input, &Expr::Column((*column).clone())).is_some();
        let watermarked = aggregate.group_expr.iter().any(|key| key.column_refs().iter().any(is_time));
        if matches!(aggregate.input.as_ref(), LogicalPlan::Union(union) if is_of_set_operation(union)) {
            mode::check_set_operation(self.mode, time.is_some())?;
        }
        mode::check_sets(self.mode, time.is_some(), grouping_sets::leaves_time_out(&aggregate))?;
        mode::check_aggregate(self.mode, time.is_some(), groups_by_time(&aggregate), watermarked)?;
        let input = self.cut(aggregate.input.as_ref().clone(), Above::OPERATOR).await?;
        self.aggregate_over(aggregate, input, time, above).await
    }

    /// An aggregate, whose input is cut already.
    async fn aggregate_over(
        &mut self,
        aggregate: Aggregate,
        input: Part,
        time: Option<TimeKey>,
        above: Above,
    ) -> Result<Part> {
        let columns: Vec<_> = aggregate.schema.iter().map(|(q, f)| (q.cloned(), f.clone())).collect();
        let comes_and_goes = self.mode == OutputMode::Update && above.filters;
        if above.top {
            mode::check_target(self.mode, self.target, comes_and_goes)?;
        }
        // Over changes a group can cease to be.
        let comes_and_goes = comes_and_goes || self.mode == OutputMode::Update && input.signed;
        let takes_back = self.mode != OutputMode::Append && !above.top
            || self.mode == OutputMode::Update && (comes_and_goes || self.target.signed);
        let emit = match self.mode {
            OutputMode::Append => Emit::Closed,
            OutputMode::Complete if above.top => Emit::All,
            _ => Emit::Changed { old: takes_back },
        };
        let fed = input.feeds(&aggregate.input)?;
        let (below, linear) = if input.signed {
            let linear = linear::linear(&aggregate, retract::carry(input.plan)?, self.state)?;
            (linear.aggregate.clone(), Some(linear))
        } else {
            let Aggregate { group_expr, aggr_expr, .. } = aggregate;
            (Aggregate::try_new(Arc::new(input.plan), group_expr, aggr_expr)?, None)
        };
        let mut request = self.request(input.lag);
        let Cut { first, chain } = cut(&below, linear.as_ref(), time, emit, &mut request).await?;
        let name = chain.aggregate.name.clone();
        let of_operator: Vec<_> = match &linear {
            Some(linear) => linear.operator_columns(&chain.aggregate.output)?,
            None => below.schema.iter().map(|(q, f)| (q.cloned(), f.clone())).collect(),
        };
        let leaf = self.operator(&name, chain, vec![(first, fed)], input.lag, takes_back, above);
        let mut plan = result_of(&of_operator, &leaf, takes_back)?;
        if let Some(linear) = linear {
            plan = linear.finish(plan, &columns, takes_back)?;
        }
        Ok(self.result(plan, takes_back, input.lag))
    }

    async fn distinct(&mut self, distinct: Distinct, above: Above) -> Result<Part> {
        let (input, all) = match &distinct {
            Distinct::All(input) => (input.clone(), true),
            Distinct::On(on) => (on.input.clone(), false),
        };
        if self.mode == OutputMode::Complete {
            if !all {
                return Err(Error::unsupported("DISTINCT ON can't run in OUTPUT MODE COMPLETE: the result table would be a row of every key ever read")
                    .help("use OUTPUT MODE APPEND or UPDATE"));
            }
            // Sent whole in every batch: a group for each row there is.
            let columns = input.schema().columns().into_iter().map(Expr::Column).collect();
            return self.aggregate(Aggregate::try_new(input, columns, Vec::new())?, above).await;
        }
        let deduplication = Deduplication::of(&distinct)?;
        let part = self.cut(input.as_ref().clone(), Above::OPERATOR).await?;
        if part.signed && !all {
            return Err(Error::not_yet("DISTINCT ON over rows that are taken back (of an aggregate, or of a join that fills with NULLs)")
                .help("which row came first is not known of them: SELECT DISTINCT without ON, or number them with ROW_NUMBER() OVER (PARTITION BY … ORDER BY …) = 1"));
        }
        if part.signed {
            // A group for each row there is, with how often it is there.
            let columns = input.schema().columns().into_iter().map(Expr::Column).collect();
            let aggregate = Aggregate::try_new(input, columns, Vec::new())?;
            let time = time_key(&aggregate);
            return self.aggregate_over(aggregate, part, time, above).await;
        }
        let (columns, fed) = (distinct_columns(&distinct), part.feeds(&input)?);
        let mut request = self.request(part.lag);
        let (fragment, spec) = deduplication.cut(part.plan, &mut request).await?;
        let name = spec.name.clone();
        let leaf = self.operator(&name, spec, vec![(fragment, fed)], part.lag, false, above);
        Ok(self.result(result_of(&columns, &leaf, false)?, false, part.lag))
    }

    /// In APPEND, and below another operator: the first rows there ever are.
    async fn limit(&mut self, limit: Limit, above: Above) -> Result<Part> {
        let (SkipType::Literal(skip), FetchType::Literal(fetch)) = (limit.get_skip_type()?, limit.get_fetch_type()?)
        else {
            return Err(Error::unsupported("LIMIT and OFFSET over a stream want whole numbers"));
        };
        let Some(fetch) = fetch else {
            return Err(Error::unsupported("OFFSET without LIMIT can't run over a stream").help("add LIMIT n"));
        };
        let columns: Vec<_> = limit.input.schema().iter().map(|(q, f)| (q.cloned(), f.clone())).collect();
        let part = self.cut(limit.input.as_ref().clone(), Above::OPERATOR).await?;
        if part.signed {
            return Err(Error::unsupported("LIMIT without ORDER BY can't run over rows that are taken back: which n came first is no answer when they go")
                .help("add ORDER BY to it"));
        }
        let fed = part.feeds(&limit.input)?;
        let exprs = part.plan.schema().columns().into_iter().map(Expr::Column).enumerate();
        let plan =
            LogicalPlanBuilder::from(part.plan).project(exprs.map(|(n, e)| e.alias(format!("c{n}"))))?.build()?;
        let plan = expand::expand(plan)?;
        let fragment = Fragment::plan(self.state, &plan, self.partitions, true, &Ok).await?;
        let spec = LimitSpec {
            name: self.named.name("limit"),
            skip: skip as u64,
            fetch: fetch as u64,
            codec: Arc::new(KeyCodec::new(&[])?),
            output: nullable(&fragment.schema()),
        };
        let name = spec.name.clone();
        let leaf = self.operator(&name, Arc::new(spec), vec![(fragment, fed)], part.lag, false, above);
        Ok(self.result(result_of(&columns, &leaf, false)?, false, part.lag))
    }

    async fn top(&mut self, top: &TopNode, above: Above) -> Result<Part> {
        let time = top::time_of(top);
        mode::check_top_n(self.mode, !top.partition_by.is_empty(), time.is_some())?;
        let part = self.cut(top.input.clone(), Above::OPERATOR).await?;
        let takes_back = self.mode == OutputMode::Update || self.mode == OutputMode::Complete && !above.top;
        if above.top {
            mode::check_top_target(self.mode, self.target, takes_back)?;
        }
        let emit = match self.mode {
            OutputMode::Append => Emit::Closed,
            OutputMode::Complete if above.top => Emit::All,
            _ => Emit::Changed { old: true },
        };
        let fed = part.feeds(&top.input)?;
        let mut request = self.request(part.lag);
        let (fragment, spec) = top::cut(top, time, part.plan, part.signed, emit, &mut request).await?;
        let name = spec.name.clone();
        let leaf = self.operator(&name, spec, vec![(fragment, fed)], part.lag, takes_back, above);
        let plan = result_of(&top::columns_of(top), &leaf, takes_back)?;
        Ok(self.result(plan, takes_back, part.lag))
    }

    async fn over(&mut self, window: Window, above: Above) -> Result<Part> {
        if self.mode != OutputMode::Append {
            return self.over_now(window, above).await;
        }
        let over = Over::of(&window)?;
        let part = self.cut(window.input.as_ref().clone(), Above::OPERATOR).await?;
        if above.top {
            mode::check_target(self.mode, self.target, false)?;
        }
        let fed = part.feeds(&window.input)?;
        let (fragment, spec) = over::cut(&over, part.plan, &mut self.request(part.lag)).await?;
        let name = spec.name.clone();
        let leaf = self.operator(&name, spec, vec![(fragment, fed)], part.lag, false, above);
        let lag = part.lag.saturating_add(over.lag());
        Ok(self.result(result_of(&columns_of(&window), &leaf, false)?, false, lag))
    }

    /// In a mode that can take rows back.
    async fn over_now(&mut self, window: Window, above: Above) -> Result<Part> {
        let over = Over::changing(&window)?;
        let part = self.cut(window.input.as_ref().clone(), Above::OPERATOR).await?;
        let whole = self.mode == OutputMode::Complete && above.top;
        if above.top {
            mode::check_target(self.mode, self.target, false)?;
        }
        if above.top && !whole {
            mode::check_takes_back(self.target, "rows that come change what OVER makes of others")?;
        }
        let emit = if whole { Emit::All } else { Emit::Changed { old: true } };
        let fed = part.feeds(&window.input)?;
        let mut request = self.request(part.lag);
        let (fragment, spec) = over_now::cut(&over, part.plan, part.signed, emit, &mut request).await?;
        let name = spec.name.clone();
        let leaf = self.operator(&name, spec, vec![(fragment, fed)], part.lag, !whole, above);
        Ok(self.result(result_of(&columns_of(&window), &leaf, !whole)?, !whole, part.lag))
    }

    fn request(&mut self, lag: i64) -> Request<'_> {
        Request {
            state: self.state,
            mode: self.mode,
            partitions: self.partitions,
            cell: &self.cell,
            operator: self.operators.len(),
            lag,
            named: &mut self.named,
        }
    }

    async fn join(&mut self, join: Join, above: Above) -> Result<Part> {
        let terms = join::Terms::of(join)?;
        terms.check(self.mode)?;
        let below = Above::OPERATOR;
        let left = self.cut(terms.inputs[0].clone(), below).await?;
        let right = self.cut(terms.inputs[1].clone(), below).await?;
        let signed = [left.signed, right.signed];
        let takes_back = terms.takes_back(self.mode, signed);
        if above.top {
            mode::check_join_top(self.mode)?;
            mode::check_join_target(self.mode, self.target, takes_back)?;
        }
        let (lag, operator) = (left.lag.max(right.lag), self.operators.len());
        let fed = [left.feeds(&terms.inputs[0])?, right.feeds(&terms.inputs[1])?];
        let inputs = [left.plan, right.plan];
        let ([first, second], spec) = join::cut(&terms, inputs, signed, &mut self.request(lag)).await?;
        let [of_left, of_right] = fed;
        let leaf = self.operator("join", spec, vec![(first, of_left), (second, of_right)], lag, takes_back, above);
        // What joins give is sorted where it shows, and else left as it comes: it may be much.
        self.operators[operator].ordered = if above.top { self.target.ordered } else { self.order_matters };
        let plan = result_of(&terms.columns, &leaf, takes_back)?;
        let behind = terms.bounds.as_ref().map_or(0, |bounds| bounds.lag());
        Ok(self.result(plan, takes_back, lag.saturating_add(behind)))
    }

    /// The rows of `SESSION(…)`.
    async fn session_rows(&mut self, node: LogicalPlan, above: Above) -> Result<Part> {
        let LogicalPlan::Projection(table) = node else {
            return Err(Error::internal("a session in a node that groups nothing"));
        };
        let aggregate = session_rows::aggregate_of(&table)?;
        let Some(keys) = session_keys(&aggregate)? else {
            return Err(Error::internal("SESSION(…) without a session"));
        };
        let part = self.sessions(aggregate.clone(), keys, above).await?;
        Ok(Part { plan: session_rows::rows_of(&table, &aggregate, part.plan)?, ..part })
    }

    async fn sessions(&mut self, aggregate: Aggregate, keys: SessionKeys, above: Above) -> Result<Part> {
        mode::check_sessions(self.mode, keys.time.is_some(), keys.watermarked)?;
        let below = Above { sessions: keys.of_table, ..Above::OPERATOR };
        let input = self.cut(aggregate.input.as_ref().clone(), below).await?;
        if input.signed {
            return Err(Error::internal("sessions of rows that are taken back were left to the operator that can't"));
        }
        if above.top {
            mode::check_target(self.mode, self.target, false)?;
        }
        let (emit, takes_back) = match self.mode {
            OutputMode::Append => (Emit::Closed, false),
            OutputMode::Complete if above.top => (Emit::All, false),
            _ => (Emit::Changed { old: true }, true),
        };
        if above.top && takes_back {
            mode::check_takes_back(self.target, "sessions may become one")?;
        }
        let fed = input.feeds(&aggregate.input)?;
        let Aggregate { group_expr, aggr_expr, .. } = aggregate;
        let below = Aggregate::try_new(Arc::new(input.plan), group_expr, aggr_expr)?;
        let mut request = self.request(input.lag);
        let (first, spec) = sessions::cut(&below, &keys, emit, &mut request).await?;
        let name = spec.aggregate.name.clone();
        let columns = below.schema.iter().map(|(q, f)| (q.cloned(), f.clone())).collect::<Vec<_>>();
        let leaf = self.operator(&name, spec, vec![(first, fed)], input.lag, takes_back, above);
        let plan = result_of(&columns, &leaf, takes_back)?;
        Ok(self.result(plan, takes_back, input.lag))
    }

    /// Adds an operator; answers the leaf of its result.
    fn operator(
        &mut self,
        name: &str,
        spec: Arc<dyn OperatorSpec>,
        inputs: Vec<(Fragment, Fed)>,
        lag: i64,
        signed: bool,
        above: Above,
    ) -> Arc<Leaf> {
        let leaf = Leaf::new(name, leaf_schema(spec.output(), signed));
        let (inputs, fed): (Vec<_>, Vec<_>) = inputs.into_iter().unzip();
        let fed_by = fed.iter().map(|fed| fed.text.as_str()).collect::<Vec<_>>().join("; ");
        let from = fed.into_iter().map(|fed| fed.from).collect();
        // What is above may depend on the order of its input.
        let ordered = self.target.ordered || !above.top;
        self.operators.push(OperatorNode { spec, inputs, from, fed_by, leaf: leaf.clone(), lag, signed, ordered });
        leaf
    }

    /// The result of the operator that was added last, by its plan.
    fn result(&self, plan: LogicalPlan, signed: bool, lag: i64) -> Part {
        let operator = self.operators.len().saturating_sub(1);
        let states = self.operators.last().map(|node| node.spec.states()).unwrap_or_default();
        let of = states.first().map(|state| state.name().to_string()).into_iter().collect();
        Part { plan, signed, lag, from: vec![operator], of }
    }
}
