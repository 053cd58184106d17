//! `bad_records('q')` and `late_rows('q')`: the newest of what a query, running or ended, has let go of, as tables.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session as DfSession, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::{MemTable, source_as_provider};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{Expr, LogicalPlan, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;

use super::lock;
use super::queries::{Queries, unknown_query};
use crate::error::{Error, Result};
use crate::execution::QueryHandle;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    BadRecords,
    LateRows,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::BadRecords => "bad_records",
            Kind::LateRows => "late_rows",
        }
    }

    fn schema(self) -> SchemaRef {
        let column = |name: &&str| match *name {
            "batch" | "line" => Field::new(*name, DataType::Int64, *name != "batch"),
            name => Field::new(name, DataType::Utf8, true),
        };
        let names: &[&str] = match self {
            Kind::BadRecords => &["batch", "source", "file", "line", "error", "text"],
            Kind::LateRows => &["batch", "operator", "row"],
        };
        Arc::new(Schema::new(names.iter().map(column).collect::<Vec<_>>()))
    }

    /// What the query has kept, oldest first.
    fn rows(self, query: &QueryHandle) -> Result<RecordBatch> {
        let columns: Vec<ArrayRef> = match self {
            Kind::BadRecords => {
                let kept = query.bad_records();
                let text = |of: fn(&crate::error::BadRecord) -> Option<&str>| -> ArrayRef {
                    Arc::new(kept.iter().map(|bad| of(&bad.record)).collect::<StringArray>())
                };
                let line = |line: u64| i64::try_from(line).unwrap_or(i64::MAX);
                vec![
                    Arc::new(kept.iter().map(|bad| Some(bad.batch as i64)).collect::<Int64Array>()),
                    text(|record| Some(&record.source)),
                    text(|record| record.path.as_deref()),
                    Arc::new(kept.iter().map(|bad| bad.record.line.map(line)).collect::<Int64Array>()),
                    text(|record| Some(&record.reason)),
                    text(|record| Some(&record.text)),
                ]
            }
            Kind::LateRows => {
                let kept = query.late_rows();
                vec![
                    Arc::new(kept.iter().map(|late| Some(late.batch as i64)).collect::<Int64Array>()),
                    Arc::new(kept.iter().map(|late| Some(late.operator.as_str())).collect::<StringArray>()),
                    Arc::new(kept.iter().map(|late| Some(late.row.as_str())).collect::<StringArray>()),
                ]
            }
        };
        RecordBatch::try_new(self.schema(), columns).map_err(|e| Error::internal(e.to_string()))
    }
}

/// Registers both functions.
pub(super) fn register(context: &SessionContext, queries: &Queries) {
    for kind in [Kind::BadRecords, Kind::LateRows] {
        context.register_udtf(kind.name(), Arc::new(Function { kind, queries: queries.clone() }));
    }
}

/// Whether a plan reads what a query has let go of.
pub(super) fn reads_sample(plan: &LogicalPlan) -> Result<Option<&'static str>> {
    let mut found = None;
    let walked = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Ok(provider) = source_as_provider(&scan.source)
            && let Some(sample) = (provider.as_ref() as &dyn std::any::Any).downcast_ref::<Sample>()
        {
            found = Some(sample.kind.name());
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(Error::from)?;
    Ok(found)
}

struct Function {
    kind: Kind,
    queries: Queries,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.kind.name())
    }
}

impl TableFunctionImpl for Function {
    fn call_with_args(&self, arguments: TableFunctionArgs) -> DfResult<Arc<dyn TableProvider>> {
        let name = match arguments.exprs() {
            [Expr::Literal(ScalarValue::Utf8(Some(name)) | ScalarValue::Utf8View(Some(name)), _)] => name.clone(),
            _ => {
                let function = self.kind.name();
                let message = format!("{function} takes one argument, the name of a query as a text");
                return Err(Error::invalid(message).help(format!("{function}('query')")).into());
            }
        };
        let queries = lock(&self.queries);
        match queries.get(&name) {
            Some(entry) => Ok(Arc::new(Sample { kind: self.kind, query: entry.handle.clone() })),
            None => Err(unknown_query(&queries, &name).into()),
        }
    }
}

/// What a query has kept, looked at anew by every scan.
struct Sample {
    kind: Kind,
    query: QueryHandle,
}

impl std::fmt::Debug for Sample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}('{}')", self.kind.name(), self.query.name())
    }
}

#[async_trait]
impl TableProvider for Sample {
    fn schema(&self) -> SchemaRef {
        self.kind.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        state: &dyn DfSession,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let rows = MemTable::try_new(self.schema(), vec![vec![self.kind.rows(&self.query)?]])?;
        rows.scan(state, projection, filters, limit).await
    }
}
