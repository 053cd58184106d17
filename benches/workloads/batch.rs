//! Batch DataFusion as it comes: its own SQL over an external table.

use std::path::Path;
use std::time::Duration;

use datafusion::prelude::SessionContext;
use futures::StreamExt;
use levada::clock::Stopwatch;

use crate::levada::Input;

/// Runs `sql` over folders of files, each a table, and drops the rows.
pub fn run(inputs: &[Input], format: &str, data: &Path, sql: &str) -> Duration {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let context = SessionContext::new();
        for Input { name, data: folder, columns, .. } in inputs {
            let columns = columns.replace("TIMESTAMP(3)", "TIMESTAMP");
            let place = data.join(format!("{folder}-{format}"));
            let table =
                format!("CREATE EXTERNAL TABLE {name} ({columns}) STORED AS {format} LOCATION '{}/'", place.display());
            context.sql(&table).await.expect("a table");
        }
        let watch = Stopwatch::start();
        let rows = context.sql(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
        let mut rows = rows.execute_stream().await.unwrap_or_else(|e| panic!("{sql}: {e}"));
        while let Some(batch) = rows.next().await {
            drop(batch.unwrap_or_else(|e| panic!("{sql}: {e}")));
        }
        watch.elapsed()
    })
}
