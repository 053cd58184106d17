//! Cuts the files of one read between streams, by bytes and then by rows.
//!
//! A byte range would give a row group to one stream whole, and most files have one row group: so a file is cut at
//! rows. What a stream leaves out it passes by the page, without decoding it. Only files that a cut falls into have
//! their footer read here.
//!
//! ```text
//! bytes    |   file 1   | file 2 |      file 3      |      two streams
//! shares   |---------------------^------------------|
//! streams  file 1, file 2, rows 0..r of file 3  /  rows r.. of file 3
//! ```

use std::ops::Range;

use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::FileGroup;
use datafusion::datasource::physical_plan::parquet::ParquetRowSelection;
use parquet::arrow::arrow_reader::RowSelection;
use parquet::file::metadata::ParquetMetaData;

/// Files below this size are not cut.
const CUT_FROM: u64 = 1 << 20;

/// One group of files for each of at most `partitions` streams; `footer` reads a file's, or says nothing of one that can't be read.
pub fn groups<M: AsRef<ParquetMetaData>>(
    files: Vec<PartitionedFile>,
    partitions: usize,
    footer: impl Fn(&PartitionedFile) -> Option<M>,
) -> Vec<FileGroup> {
    if partitions <= 1 {
        return vec![FileGroup::new(files)];
    }
    let total: u64 = files.iter().map(|file| file.object_meta.size).sum();
    let share = total.div_ceil(partitions as u64).max(1);
    let mut groups: Vec<Vec<PartitionedFile>> = vec![Vec::new(); partitions];
    let mut at = 0;
    for file in files {
        let size = file.object_meta.size;
        let (first, last) = (at / share, (at + size).saturating_sub(1).max(at) / share);
        let cuts: Vec<u64> = (first + 1..=last).map(|n| n * share - at).collect();
        at += size;
        let footer = if cuts.is_empty() || size < CUT_FROM { None } else { footer(&file) };
        let Some(footer) = footer else {
            groups[(first as usize).min(partitions - 1)].push(file);
            continue;
        };
        for (n, rows) in row_ranges(footer.as_ref(), &cuts, size).into_iter().enumerate() {
            if !rows.is_empty() {
                let whole = footer.as_ref().file_metadata().num_rows() as usize;
                let selection = RowSelection::from_consecutive_ranges(std::iter::once(rows), whole);
                let part = file.clone().with_extension(ParquetRowSelection::new(selection));
                groups[(first as usize + n).min(partitions - 1)].push(part);
            }
        }
    }
    groups.into_iter().filter(|files| !files.is_empty()).map(FileGroup::new).collect()
}

/// The rows between cuts at these bytes of a file. A cut near the border of two row groups falls on it.
fn row_ranges(footer: &ParquetMetaData, cuts: &[u64], size: u64) -> Vec<Range<usize>> {
    let rows = footer.file_metadata().num_rows() as usize;
    let mut borders = vec![0];
    for group in footer.row_groups() {
        borders.push(borders[borders.len() - 1] + group.num_rows() as usize);
    }
    let near = rows / (cuts.len() + 1) / 8;
    let place = |cut: &u64| {
        let row = (u128::from(*cut) * rows as u128 / u128::from(size.max(1))) as usize;
        borders.iter().copied().find(|border| border.abs_diff(row) <= near).unwrap_or(row)
    };
    let places: Vec<usize> = std::iter::once(0).chain(cuts.iter().map(place)).chain([rows]).collect();
    places.windows(2).map(|pair| pair[0]..pair[1]).collect()
}
