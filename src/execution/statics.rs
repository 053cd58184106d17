//! Versions of static tables: what a batch read is logged, so that a batch that is run again reads the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::catalog::TableProvider;
use datafusion::datasource::MemTable;
use datafusion::datasource::listing::ListingTable;
use datafusion::execution::SessionState;
use futures::TryStreamExt;

use super::Engine;
use crate::error::Result;
use crate::incremental::StaticTable;

/// The versions that the fragments were planned with.
#[derive(Default)]
pub(super) struct StaticVersions {
    planned: BTreeMap<String, String>,
    /// What a table in memory was made of when its version was computed: while it is the same, so is the version. The columns
    /// themselves are held, as another could come to lie where one was.
    seen: BTreeMap<String, (Vec<RecordBatch>, String)>,
}

impl StaticVersions {
    /// What the tables were in the last batch of the run before.
    pub fn restore(&mut self, logged: &BTreeMap<String, String>) {
        self.planned = logged.clone();
    }

    /// The versions now, and the tables that differ from what the fragments were planned with.
    ///
    /// # Errors
    /// A table can't be listed or read.
    pub fn look(&mut self, tables: &[StaticTable], engine: &Engine) -> Result<(BTreeMap<String, String>, Vec<String>)> {
        let mut now = BTreeMap::new();
        for table in tables {
            let version = engine.runtime.block_on(self.version(table, &engine.state))?;
            now.insert(table.name.clone(), version);
        }
        let differs = |(name, version): (&String, &String)| {
            self.planned.get(name).filter(|planned| *planned != version).map(|_| name.clone())
        };
        let changed = now.iter().filter_map(differs).collect();
        Ok((now, changed))
    }

    /// The fragments are planned with these.
    pub fn take_up(&mut self, versions: &BTreeMap<String, String>) {
        self.planned = versions.clone();
    }

    async fn version(&mut self, table: &StaticTable, state: &SessionState) -> Result<String> {
        let parts = memory_parts(table).await;
        if let (Some((seen, version)), Some(parts)) = (self.seen.get(&table.name), &parts)
            && same(seen, parts)
        {
            return Ok(version.clone());
        }
        let version = version(table, state).await?;
        if let Some(parts) = parts {
            self.seen.insert(table.name.clone(), (parts, version.clone()));
        }
        Ok(version)
    }
}

/// A memory table's batches: they are never changed in place.
async fn memory_parts(table: &StaticTable) -> Option<Vec<RecordBatch>> {
    let provider: &dyn std::any::Any = table.provider.as_ref();
    let memory = provider.downcast_ref::<MemTable>()?;
    let mut parts = Vec::new();
    for partition in &memory.batches {
        parts.extend(partition.read().await.iter().cloned());
    }
    Some(parts)
}

/// Whether these are the same columns. An UPDATE makes some of them anew and leaves the others.
fn same(a: &[RecordBatch], b: &[RecordBatch]) -> bool {
    let batch = |(a, b): (&RecordBatch, &RecordBatch)| {
        a.num_rows() == b.num_rows() && a.columns().iter().zip(b.columns()).all(|(a, b)| Arc::ptr_eq(a, b))
    };
    a.len() == b.len() && a.iter().zip(b).all(batch)
}

/// What a table is now: the same text for the same contents.
///
/// # Errors
/// The table can't be listed or read.
async fn version(table: &StaticTable, state: &SessionState) -> Result<String> {
    let provider: &dyn std::any::Any = table.provider.as_ref();
    if let Some(listing) = provider.downcast_ref::<ListingTable>() {
        return files(listing, state).await;
    }
    if let Some(memory) = provider.downcast_ref::<MemTable>() {
        let mut sum = Sum::default();
        for partition in &memory.batches {
            partition.read().await.iter().for_each(|batch| sum.add(batch));
        }
        return Ok(sum.text());
    }
    rows(&table.provider, state).await
}

async fn files(table: &ListingTable, state: &SessionState) -> Result<String> {
    let listed = table.list_files_for_scan(state, &[], None).await?;
    let mut entries: Vec<String> = Vec::new();
    for group in &listed.file_groups {
        for file in group.files() {
            let meta = &file.object_meta;
            entries.push(format!("{} {} {}", meta.location, meta.size, meta.last_modified.timestamp_millis()));
        }
    }
    entries.sort();
    Ok(format!("{} files, crc32c {:08x}", entries.len(), crc32c::crc32c(entries.join("\n").as_bytes())))
}

async fn rows(provider: &Arc<dyn TableProvider>, state: &SessionState) -> Result<String> {
    let plan = provider.scan(state, None, &[], None).await?;
    let mut stream = datafusion::physical_plan::execute_stream(plan, state.task_ctx())?;
    let mut sum = Sum::default();
    while let Some(batch) = stream.try_next().await? {
        sum.add(&batch);
    }
    Ok(sum.text())
}

#[derive(Default)]
struct Sum {
    rows: u64,
    crc: u32,
}

impl Sum {
    fn add(&mut self, batch: &RecordBatch) {
        self.rows += batch.num_rows() as u64;
        self.crc = of_rows(batch, self.crc);
    }

    fn text(&self) -> String {
        format!("{} rows, crc32c {:08x}", self.rows, self.crc)
    }
}

/// Over values and not over buffers, as equal columns may have different buffers (offsets, what lies under a NULL); row by
/// row, so that it does not matter which rows came together.
fn of_rows(batch: &RecordBatch, crc: u32) -> u32 {
    let options = arrow::util::display::FormatOptions::new().with_null("\u{0}NULL");
    let formatter = |column| arrow::util::display::ArrayFormatter::try_new(column, &options);
    let Ok(columns) =
        batch.columns().iter().map(|column| formatter(column.as_ref())).collect::<std::result::Result<Vec<_>, _>>()
    else {
        return crc;
    };
    let cell = |crc: u32, (column, row): (&arrow::util::display::ArrayFormatter<'_>, usize)| {
        let text = column.value(row).to_string();
        crc32c::crc32c_append(crc32c::crc32c_append(crc, text.as_bytes()), b"\x1f")
    };
    (0..batch.num_rows()).flat_map(|row| columns.iter().map(move |column| (column, row))).fold(crc, cell)
}
