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
    /// What a table in memory was made of when its version was computed: while it is the same, so is the version.
    seen: BTreeMap<String, (Vec<(usize, usize)>, String)>,
}

impl StaticVersions {
    /// The versions now, and whether any differs from what the fragments were planned with.
    ///
    /// # Errors
    /// A table can't be listed or read.
    pub fn look(&mut self, tables: &[StaticTable], engine: &Engine) -> Result<(BTreeMap<String, String>, bool)> {
        let mut now = BTreeMap::new();
        for table in tables {
            let version = engine.runtime.block_on(self.version(table, &engine.state))?;
            now.insert(table.name.clone(), version);
        }
        let changed = !self.planned.is_empty() && self.planned != now;
        self.planned = now.clone();
        Ok((now, changed))
    }

    async fn version(&mut self, table: &StaticTable, state: &SessionState) -> Result<String> {
        let parts = memory_parts(table).await;
        if let (Some((seen, version)), Some(parts)) = (self.seen.get(&table.name), &parts)
            && seen == parts
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

/// Where a memory table's batches are, while they are: batches are never changed in place.
async fn memory_parts(table: &StaticTable) -> Option<Vec<(usize, usize)>> {
    let provider: &dyn std::any::Any = table.provider.as_ref();
    let memory = provider.downcast_ref::<MemTable>()?;
    let mut parts = Vec::new();
    for partition in &memory.batches {
        for batch in partition.read().await.iter() {
            let at = batch.columns().first().map_or(0, |c| Arc::as_ptr(c).cast::<u8>() as usize);
            parts.push((at, batch.num_rows()));
        }
    }
    Some(parts)
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
        for column in batch.columns() {
            self.crc = of_data(&column.to_data(), self.crc);
        }
    }

    fn text(&self) -> String {
        format!("{} rows, crc32c {:08x}", self.rows, self.crc)
    }
}

/// Over values and not over buffers, as equal columns may have different buffers (offsets, what lies under a NULL).
fn of_data(data: &arrow::array::ArrayData, crc: u32) -> u32 {
    let array = arrow::array::make_array(data.clone());
    let options = arrow::util::display::FormatOptions::new().with_null("\u{0}NULL");
    let Ok(formatter) = arrow::util::display::ArrayFormatter::try_new(&array, &options) else { return crc };
    (0..array.len()).fold(crc, |crc, row| {
        let text = formatter.value(row).to_string();
        crc32c::crc32c_append(crc32c::crc32c_append(crc, text.as_bytes()), b"\x1f")
    })
}
