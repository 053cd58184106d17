//! One part file: rows in, bytes in their place, their count and checksum out.

use std::io::{self, BufWriter, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use flate2::write::GzEncoder;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression as ParquetCompression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::folder::{Finished, PartFile};
use crate::error::{Error, Result};
use crate::sink::encode::TextFormat;

/// Rows of a parquet row group, at the most.
const ROW_GROUP_ROWS: usize = 1 << 20;

/// How rows become bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileFormat {
    Text(TextFormat, TextCompression),
    Parquet(ParquetCompression),
}

/// Of text files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextCompression {
    None,
    Gz,
    Zst,
}

impl FileFormat {
    /// From the options `format` and `compression`.
    ///
    /// # Errors
    /// InvalidInput: the format has no such compression.
    pub(super) fn parse(format: &str, compression: Option<&str>) -> Result<Self> {
        let compression = compression.map(str::to_ascii_lowercase);
        let text = match format.to_ascii_lowercase().as_str() {
            "json" => TextFormat::Json,
            "csv" => TextFormat::Csv,
            "parquet" => return Self::parse_parquet(compression.as_deref()),
            other => {
                return Err(Error::invalid(format!("the file sink does not write format '{other}'"))
                    .help("it writes json, csv and parquet"));
            }
        };
        match compression.as_deref() {
            None | Some("none") => Ok(FileFormat::Text(text, TextCompression::None)),
            Some("gzip") => Ok(FileFormat::Text(text, TextCompression::Gz)),
            Some("zstd") => Ok(FileFormat::Text(text, TextCompression::Zst)),
            Some(other) => Err(no_compression(text.name(), other, "none, gzip, zstd")),
        }
    }

    fn parse_parquet(compression: Option<&str>) -> Result<Self> {
        match compression {
            None | Some("snappy") => Ok(FileFormat::Parquet(ParquetCompression::SNAPPY)),
            Some("zstd") => Ok(FileFormat::Parquet(ParquetCompression::ZSTD(ZstdLevel::default()))),
            Some("none") => Ok(FileFormat::Parquet(ParquetCompression::UNCOMPRESSED)),
            Some(other) => Err(no_compression("parquet", other, "snappy, zstd, none")),
        }
    }

    /// Without a dot in front.
    pub(super) fn extension(self) -> String {
        match self {
            FileFormat::Parquet(_) => "parquet".into(),
            FileFormat::Text(text, TextCompression::None) => text.name().into(),
            FileFormat::Text(text, TextCompression::Gz) => format!("{}.gz", text.name()),
            FileFormat::Text(text, TextCompression::Zst) => format!("{}.zst", text.name()),
        }
    }

    /// Refuses columns that the format can't hold.
    pub(super) fn check(self, schema: &SchemaRef) -> Result<()> {
        match self {
            FileFormat::Text(text, _) => text.check(schema),
            FileFormat::Parquet(_) => match ArrowWriter::try_new(io::sink(), schema.clone(), None) {
                Ok(_) => Ok(()),
                Err(e) => Err(Error::unsupported(format!("parquet can't hold the result: {e}"))
                    .help("cast the column to a type that it has")),
            },
        }
    }
}

fn no_compression(format: &str, compression: &str, known: &str) -> Error {
    Error::invalid(format!("format {format} has no compression '{compression}'")).help(format!("it has {known}"))
}

/// A part file that is being written.
pub(super) struct PartWriter {
    /// As a user knows it.
    path: String,
    encoder: Encoder,
    rows: u64,
}

enum Encoder {
    Plain(TextFormat, BufWriter<Counted>),
    Gz(TextFormat, GzEncoder<BufWriter<Counted>>),
    Zst(TextFormat, zstd::Encoder<'static, BufWriter<Counted>>),
    Parquet(Box<ArrowWriter<Counted>>),
}

/// What a finished part file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written {
    pub size: u64,
    pub rows: u64,
    pub crc32c: u32,
}

impl PartWriter {
    /// Writes to a new file, which a user knows as `path`.
    pub(super) fn new(file: Box<dyn PartFile>, path: String, format: FileFormat, schema: &SchemaRef) -> Result<Self> {
        let counted = Counted { file, size: 0, crc32c: 0 };
        let failed = |e: io::Error| writing_failed(&path, e);
        let mut encoder = match format {
            FileFormat::Text(text, TextCompression::None) => Encoder::Plain(text, BufWriter::new(counted)),
            FileFormat::Text(text, TextCompression::Gz) => {
                Encoder::Gz(text, GzEncoder::new(BufWriter::new(counted), flate2::Compression::default()))
            }
            FileFormat::Text(text, TextCompression::Zst) => {
                Encoder::Zst(text, zstd::Encoder::new(BufWriter::new(counted), 0).map_err(failed)?)
            }
            FileFormat::Parquet(compression) => {
                let properties = WriterProperties::builder()
                    .set_compression(compression)
                    .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
                    .build();
                let writer = ArrowWriter::try_new(counted, schema.clone(), Some(properties));
                Encoder::Parquet(Box::new(writer.map_err(|e| parquet_failed(&path, e))?))
            }
        };
        if let FileFormat::Text(text, _) = format {
            encoder.write_text(&text.header(schema)?).map_err(failed)?;
        }
        Ok(PartWriter { path, encoder, rows: 0 })
    }

    /// Adds rows.
    pub(super) fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        let text = match &mut self.encoder {
            Encoder::Parquet(writer) => {
                writer.write(rows).map_err(|e| parquet_failed(&self.path, e))?;
                self.rows += rows.num_rows() as u64;
                return Ok(());
            }
            Encoder::Plain(text, _) | Encoder::Gz(text, _) | Encoder::Zst(text, _) => *text,
        };
        let bytes = text.rows(rows)?;
        self.encoder.write_text(&bytes).map_err(|e| writing_failed(&self.path, e))?;
        self.rows += rows.num_rows() as u64;
        Ok(())
    }

    /// Bytes that wait in memory for their row group.
    pub(super) fn buffered_rows(&self) -> usize {
        match &self.encoder {
            Encoder::Parquet(writer) => writer.memory_size(),
            _ => 0,
        }
    }

    /// Bytes that wait in memory for the file to take them.
    pub(super) fn buffered_bytes(&self) -> usize {
        let counted = match &self.encoder {
            Encoder::Plain(_, out) => out.get_ref(),
            Encoder::Gz(_, out) => out.get_ref().get_ref(),
            Encoder::Zst(_, out) => out.get_ref().get_ref(),
            Encoder::Parquet(writer) => writer.inner(),
        };
        counted.file.buffered()
    }

    /// Ends the row group that waits in memory.
    pub(super) fn flush(&mut self) -> Result<()> {
        match &mut self.encoder {
            Encoder::Parquet(writer) => writer.flush().map_err(|e| parquet_failed(&self.path, e)),
            _ => Ok(()),
        }
    }

    /// Writes what is left, and lets the file make its content durable.
    pub(super) fn finish(self) -> Result<(Written, Box<dyn Finished>)> {
        let PartWriter { path, encoder, rows } = self;
        let failed = |e: io::Error| writing_failed(&path, e);
        let unbuffered = |out: BufWriter<Counted>| out.into_inner().map_err(|e| failed(e.into_error()));
        let counted = match encoder {
            Encoder::Plain(_, out) => unbuffered(out)?,
            Encoder::Gz(_, out) => unbuffered(out.finish().map_err(failed)?)?,
            Encoder::Zst(_, out) => unbuffered(out.finish().map_err(failed)?)?,
            Encoder::Parquet(writer) => writer.into_inner().map_err(|e| parquet_failed(&path, e))?,
        };
        let written = Written { size: counted.size, rows, crc32c: counted.crc32c };
        Ok((written, counted.file.finish()?))
    }
}

impl Encoder {
    fn write_text(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Encoder::Plain(_, out) => out.write_all(bytes),
            Encoder::Gz(_, out) => out.write_all(bytes),
            Encoder::Zst(_, out) => out.write_all(bytes),
            Encoder::Parquet(_) => Err(io::Error::other("text for a parquet file")),
        }
    }
}

/// Counts and sums up what reaches the file.
struct Counted {
    file: Box<dyn PartFile>,
    size: u64,
    crc32c: u32,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.crc32c = crc32c::crc32c_append(self.crc32c, &bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// An error of the file itself keeps its kind: a full disk is a full disk, and what a store says of itself is ours.
fn writing_failed(path: &str, error: io::Error) -> Error {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(ours) => ours.clone(),
        None => Error::io(format!("writing {path}"), &error),
    }
}

fn parquet_failed(path: &str, error: ParquetError) -> Error {
    match error {
        ParquetError::External(inner) if inner.is::<io::Error>() => match inner.downcast::<io::Error>() {
            Ok(io) => writing_failed(path, *io),
            Err(other) => parquet_failed(path, ParquetError::General(other.to_string())),
        },
        other => Error::Io {
            context: format!("writing {path}"),
            message: other.to_string(),
            kind: io::ErrorKind::Other,
            transient: false,
        },
    }
}
