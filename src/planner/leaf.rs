//! Where rows enter a plan: a leaf whose input is put in before each run.
//!
//! A plan is made once and run for every batch; its leaves stay and are only handed another range of a source, or other
//! batches in memory. A bounded SELECT fills its leaves once.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::memory::MemoryStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, EmptyRecordBatchStream, ExecutionPlan, Partitioning, PlanProperties,
};
use futures::StreamExt;

use crate::catalog::StreamDef;
use crate::checkpoint::SourceLog;
use crate::error::{Error, Result};
use crate::source::{BadRecords, OffsetRange, Pushdown, ReadLimit, Source};

/// A source that a query and its leaf share.
pub type SharedSource = Arc<Mutex<Box<dyn Source>>>;

/// What a leaf gives in the next run.
#[derive(Clone)]
pub enum LeafInput {
    Nothing,
    Source { source: SharedSource, range: OffsetRange },
    Batches(Arc<Vec<RecordBatch>>),
}

/// One entry of rows into a plan.
pub struct Leaf {
    name: String,
    schema: SchemaRef,
    state: Mutex<LeafState>,
    rows: AtomicU64,
    /// The rows of a run that is over.
    told: AtomicBool,
    /// All bad records are kept.
    keeps_bad: AtomicBool,
}

struct LeafState {
    run: u64,
    input: LeafInput,
    bad_records: Option<Arc<BadRecords>>,
}

impl Leaf {
    /// A leaf that gives nothing until it is filled.
    pub fn new(name: impl Into<String>, schema: SchemaRef) -> Arc<Self> {
        let state = Mutex::new(LeafState { run: 0, input: LeafInput::Nothing, bad_records: None });
        let (rows, told, keeps_bad) = (AtomicU64::new(0), AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Leaf { name: name.into(), schema, state, rows, told, keeps_bad })
    }

    /// The columns of its input.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Puts the input of the next run in; what was counted of the last one is forgotten.
    pub fn fill(&self, input: LeafInput) {
        let mut state = lock(&self.state);
        state.run += 1;
        state.input = input;
        state.bad_records = None;
        self.rows.store(0, Ordering::Relaxed);
        self.told.store(false, Ordering::Relaxed);
    }

    /// Rows given in this run.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Rows given so far by a run that goes on.
    pub fn running_rows(&self) -> u64 {
        if self.told.load(Ordering::Relaxed) { 0 } else { self.rows() }
    }

    /// The run is over, and its rows are told of elsewhere.
    pub fn end_run(&self) {
        self.told.store(true, Ordering::Relaxed);
    }

    /// Keeps all bad records of each run, not only the first.
    pub fn keep_all_bad_records(&self) {
        self.keeps_bad.store(true, Ordering::Relaxed);
    }

    /// Bad records that were let pass in this run, where the input is a source.
    pub fn bad_records(&self) -> Option<Arc<BadRecords>> {
        lock(&self.state).bad_records.clone()
    }

    /// The leaf as a table that a plan scans.
    pub fn table(self: &Arc<Self>) -> Arc<LeafTable> {
        Arc::new(LeafTable { leaf: self.clone() })
    }
}

impl fmt::Debug for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Leaf({})", self.name)
    }
}

/// Sources may use filters to skip rows; whatever they let pass is filtered again.
fn applied_again(filters: &[&Expr]) -> Vec<TableProviderFilterPushDown> {
    vec![TableProviderFilterPushDown::Inexact; filters.len()]
}

/// A leaf as DataFusion sees it.
#[derive(Debug)]
pub struct LeafTable {
    leaf: Arc<Leaf>,
}

#[async_trait]
impl TableProvider for LeafTable {
    fn schema(&self) -> SchemaRef {
        self.leaf.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> DfResult<Vec<TableProviderFilterPushDown>> {
        Ok(applied_again(filters))
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let all: Vec<usize> = (0..self.leaf.schema.fields().len()).collect();
        let wanted = Pushdown {
            columns: projection.cloned().unwrap_or(all),
            // One that reads no column may be taken above a watermark again, which sees all rows.
            filters: filters.iter().filter(|filter| !filter.column_refs().is_empty()).cloned().collect(),
            partitions: session.config().target_partitions(),
        };
        Ok(Arc::new(LeafExec::new(self.leaf.clone(), wanted)?))
    }
}

/// A stream of the catalog as a table that can be scanned once: everything that its source holds now.
#[derive(Debug)]
pub struct BoundedTable(pub Arc<StreamDef>);

#[async_trait]
impl TableProvider for BoundedTable {
    fn schema(&self) -> SchemaRef {
        self.0.source_schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> DfResult<Vec<TableProviderFilterPushDown>> {
        Ok(applied_again(filters))
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let leaf = Leaf::new(&self.0.name, self.schema());
        leaf.fill(everything(&self.0)?);
        leaf.table().scan(session, projection, filters, limit).await
    }
}

/// All that a stream's source holds now.
fn everything(stream: &StreamDef) -> Result<LeafInput> {
    if !stream.replayable() {
        let error = Error::unsupported(format!(
            "stream {} can't be read twice, so a SELECT would take its rows away",
            stream.name
        ));
        return Err(error.help("WATCH SELECT … shows its rows as they come"));
    }
    let mut source = stream.open(SourceLog::in_memory())?;
    let limit = ReadLimit { unlimited: true, ..ReadLimit::default() };
    Ok(match source.latest_offset(None, &limit)? {
        None => LeafInput::Nothing,
        Some(end) => {
            LeafInput::Source { source: Arc::new(Mutex::new(source)), range: OffsetRange { start: None, end } }
        }
    })
}

/// The leaf in a physical plan.
pub struct LeafExec {
    leaf: Arc<Leaf>,
    wanted: Pushdown,
    properties: Arc<PlanProperties>,
    /// The streams of one run, each taken by its partition.
    streams: Mutex<(u64, Vec<Option<SendableRecordBatchStream>>)>,
}

impl LeafExec {
    fn new(leaf: Arc<Leaf>, wanted: Pushdown) -> DfResult<Self> {
        let schema = wanted.project(&leaf.schema)?;
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(wanted.partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(LeafExec { leaf, wanted, properties: Arc::new(properties), streams: Mutex::new((0, Vec::new())) })
    }

    /// The leaf's name.
    pub fn name(&self) -> &str {
        &self.leaf.name
    }

    /// Rows that the leaf has given in this run.
    pub fn rows(&self) -> u64 {
        self.leaf.rows()
    }

    fn open(&self) -> Result<(u64, Vec<Option<SendableRecordBatchStream>>)> {
        let (run, input) = {
            let state = lock(&self.leaf.state);
            (state.run, state.input.clone())
        };
        let streams = match input {
            LeafInput::Nothing => Vec::new(),
            LeafInput::Batches(batches) => self.spread(&batches)?,
            LeafInput::Source { source, range } => {
                let read = lock(&source).read(&range, &self.wanted)?;
                if self.leaf.keeps_bad.load(Ordering::Relaxed) {
                    read.bad_records.keep_all();
                }
                lock(&self.leaf.state).bad_records = Some(read.bad_records);
                read.streams
            }
        };
        Ok((run, streams.into_iter().map(Some).collect()))
    }

    fn spread(&self, batches: &[RecordBatch]) -> Result<Vec<SendableRecordBatchStream>> {
        let mut parts: Vec<Vec<RecordBatch>> = vec![Vec::new(); self.wanted.partitions];
        for (n, batch) in batches.iter().enumerate() {
            let batch = batch.project(&self.wanted.columns).map_err(|e| Error::internal(e.to_string()))?;
            parts[n % self.wanted.partitions].push(batch);
        }
        let stream =
            |part| MemoryStream::try_new(part, self.schema(), None).map(|s| Box::pin(s) as SendableRecordBatchStream);
        parts.into_iter().map(|part| stream(part).map_err(Error::from)).collect()
    }
}

impl fmt::Debug for LeafExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LeafExec({})", self.leaf.name)
    }
}

impl DisplayAs for LeafExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let names: Vec<&str> = self.wanted.columns.iter().map(|c| self.leaf.schema.field(*c).name().as_str()).collect();
        write!(f, "LeafExec: {} [{}]", self.leaf.name, names.join(", "))?;
        if !self.wanted.filters.is_empty() {
            let filters: Vec<String> = self.wanted.filters.iter().map(ToString::to_string).collect();
            write!(f, " filters=[{}]", filters.join(" AND "))?;
        }
        Ok(())
    }
}

impl ExecutionPlan for LeafExec {
    fn name(&self) -> &str {
        "LeafExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _children: Vec<Arc<dyn ExecutionPlan>>) -> DfResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, _context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let mut streams = lock(&self.streams);
        if streams.0 != lock(&self.leaf.state).run {
            *streams = self.open()?;
        }
        let Some(stream) = streams.1.get_mut(partition).and_then(Option::take) else {
            return Ok(Box::pin(EmptyRecordBatchStream::new(self.schema())));
        };
        let leaf = self.leaf.clone();
        let counted = stream.inspect(move |batch| {
            if let Ok(batch) = batch {
                leaf.rows.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), counted)))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
