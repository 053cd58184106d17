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

    /// The bytes inside. A file that ends in the middle of a member is an error when its end is reached. As long as
    /// `file` is handed out in pieces of one size, what comes before an error is the same at every read.
    ///
    /// # Errors
    /// The decoder's own.
    pub fn reader(self, file: Box<dyn BufRead + Send>) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Compression::None => Box::new(file),
            Compression::Gzip => Box::new(Steps::of(flate2::bufread::MultiGzDecoder::new(file))),
            Compression::Zstd => Box::new(Steps::of(zstd::stream::read::Decoder::with_buffer(file)?)),
        })
    }
}

/// A decoder, read in steps of one size: at damage it loses what it was just writing, so how much it is asked for
/// must not depend on who reads.
struct Steps<R> {
    decoder: R,
    step: Vec<u8>,
    pos: usize,
    end: usize,
    /// Came behind what is in `step`.
    error: Option<io::Error>,
}

impl<R: Read> Steps<R> {
    const SIZE: usize = 64 << 10;

    fn of(decoder: R) -> Self {
        Steps { decoder, step: vec![0; Self::SIZE], pos: 0, end: 0, error: None }
    }

    fn fill(&mut self) -> io::Result<()> {
        (self.pos, self.end) = (0, 0);
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        while self.end < Self::SIZE {
            match self.decoder.read(&mut self.step[self.end..]) {
                Ok(0) => break,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if self.end == 0 => return Err(error),
                Err(error) => {
                    self.error = Some(error);
                    break;
                }
            }
        }
        Ok(())
    }
}

impl<R: Read> Read for Steps<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.pos == self.end {
            self.fill()?;
        }
        let length = into.len().min(self.end - self.pos);
        into[..length].copy_from_slice(&self.step[self.pos..self.pos + length]);
        self.pos += length;
        Ok(length)
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

    #[test]
    fn what_comes_before_damage_is_the_same_however_it_is_read() {
        let text: String = (0..60_000).map(|n| format!("line {} of it\n", n * 7_919 % 60_000)).collect();
        let damaged = |compression| {
            let mut bytes = match compression {
                Compression::Gzip => gzip(text.as_bytes()),
                _ => zstd::encode_all(text.as_bytes(), 1).unwrap_or_default(),
            };
            let middle = bytes.len() / 2;
            bytes[middle..middle + 64].fill(0xA5);
            bytes
        };
        for compression in [Compression::Gzip, Compression::Zstd] {
            let before = |piece: usize| {
                let file = Box::new(io::Cursor::new(damaged(compression)));
                let (mut reader, mut got, mut buffer) = (compression.reader(file).unwrap(), Vec::new(), vec![0; piece]);
                while let Ok(read) = reader.read(&mut buffer) {
                    assert!(read > 0, "damage is an error");
                    got.extend_from_slice(&buffer[..read]);
                }
                got
            };
            let whole = before(1 << 20);
            assert!(whole.len() > text.len() / 4 && text.as_bytes().starts_with(&whole[..text.len() / 4]));
            assert!(before(77) == whole && before(100_001) == whole, "{compression:?}");
        }
    }
}
