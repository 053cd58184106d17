//! Compressed files: gzip and zstd, each of one or many members, told by suffix or by option.

use std::io::{self, BufRead, Read};

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    /// The words that the option `compression` takes.
    pub const NAMES: &'static [&'static str] = &["auto", "none", "gzip", "zstd"];

    /// What the option says; `None` for `auto`.
    pub fn parse(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "none" => Some(Compression::None),
            "gzip" => Some(Compression::Gzip),
            "zstd" => Some(Compression::Zstd),
            _ => None,
        }
    }

    /// What a file's name says.
    pub fn of_name(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        match name.rsplit_once('.').map(|(_, suffix)| suffix) {
            Some("gz" | "gzip") => Compression::Gzip,
            Some("zst" | "zstd") => Compression::Zstd,
            _ => Compression::None,
        }
    }

    /// The bytes inside. A file that ends in the middle of a member is an error when its end is reached.
    ///
    /// # Errors
    /// The decoder's own.
    pub fn reader(self, file: Box<dyn BufRead + Send>) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Compression::None => Box::new(file),
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(file)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text).and_then(|()| encoder.finish()).unwrap_or_default()
    }

    fn read(compression: Compression, bytes: Vec<u8>) -> io::Result<String> {
        let mut text = String::new();
        compression.reader(Box::new(io::Cursor::new(bytes)))?.read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn the_suffix_tells() {
        assert_eq!(Compression::of_name("a/b.json.GZ"), Compression::Gzip);
        assert_eq!(Compression::of_name("b.zst"), Compression::Zstd);
        assert_eq!(Compression::of_name("gz"), Compression::None);
        assert_eq!(Compression::parse("auto"), None);
    }

    #[test]
    fn every_member_is_read() {
        let two = [gzip(b"a\n"), gzip(b"b\n")].concat();
        assert_eq!(read(Compression::Gzip, two).ok().as_deref(), Some("a\nb\n"));
        let zstd = |text: &[u8]| zstd::encode_all(text, 0).unwrap_or_default();
        let two = [zstd(b"a\n"), zstd(b"b\n")].concat();
        assert_eq!(read(Compression::Zstd, two).ok().as_deref(), Some("a\nb\n"));
    }

    #[test]
    fn a_cut_or_foreign_file_is_an_error() {
        let mut cut = gzip("line\n".repeat(1000).as_bytes());
        cut.truncate(cut.len() - 20);
        assert!(read(Compression::Gzip, cut).is_err());
        assert!(read(Compression::Gzip, b"plain text".to_vec()).is_err());
        let mut cut = zstd::encode_all("line\n".repeat(1000).as_bytes(), 0).unwrap_or_default();
        cut.truncate(cut.len() - 2);
        assert!(read(Compression::Zstd, cut).is_err());
        assert!(read(Compression::Zstd, b"plain text".to_vec()).is_err());
    }
}
