//! Checksummed lines: the text of every log file, of a manifest entry, of metadata and of a state schema.
//!
//! ```text
//! v1 crc32c=1c291ca3
//! {"batch":0,"timestamp":1700000000000}
//! {"source":"bids","start":null,"end":{"row":3}}
//! ```
//! The first line names the version of the format and the CRC-32C of all bytes behind that line. Every line, the last
//! one too, ends with a newline. A file that isn't exactly so is refused; nothing is skipped or repaired.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

const VERSION: u64 = 1;

/// The file's bytes for some lines, none of which may hold a newline.
pub fn encode<S: AsRef<str>>(lines: &[S]) -> Vec<u8> {
    let mut body = Vec::with_capacity(lines.iter().map(|line| line.as_ref().len() + 1).sum());
    for line in lines {
        body.extend_from_slice(line.as_ref().as_bytes());
        body.push(b'\n');
    }
    with_checksum(&body)
}

/// Puts the first line before lines that are encoded already.
pub(super) fn with_checksum(body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("v{VERSION} crc32c={:08x}\n", crc32c::crc32c(body)).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// The lines behind the first one. `path` is only used in errors.
///
/// # Errors
/// Corrupt: anything but what [`encode`] gives.
pub fn decode<'a>(path: &str, bytes: &'a [u8]) -> Result<std::str::Lines<'a>> {
    Ok(body(path, bytes)?.lines())
}

/// What stands behind the first line, when it is what was written.
pub(super) fn body<'a>(path: &str, bytes: &'a [u8]) -> Result<&'a str> {
    let corrupt = |message: String| Error::corrupt(path, message);
    if bytes.is_empty() {
        return Err(corrupt("the file is empty; it was truncated, or never reached the disk".into()));
    }
    let newline = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let first = String::from_utf8_lossy(&bytes[..newline]);
    let expected = checksum_of(&first).map_err(|message| corrupt(message.unwrap_or_else(|| foreign(&first))))?;
    let Some(rest) = bytes.get(newline + 1..) else {
        return Err(corrupt("the file was truncated behind its first line".into()));
    };
    let found = crc32c::crc32c(rest);
    if found != expected {
        return Err(corrupt(format!(
            "the content's checksum is {found:08x} where the first line says {expected:08x}: the file was truncated or changed"
        )));
    }
    std::str::from_utf8(rest).map_err(|_| corrupt("the content is not text, though its checksum is right".into()))
}

/// The checksum in a first line; an error without a text where the line is not one of ours.
fn checksum_of(first: &str) -> Result<u32, Option<String>> {
    let (version, rest) = first.split_once(' ').unwrap_or((first, ""));
    let number = version.strip_prefix('v').filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
    let number: u64 = number.and_then(|digits| digits.parse().ok()).ok_or(None)?;
    if number > VERSION {
        return Err(Some(format!(
            "the file was written by a newer Levada (log format v{number}; this one reads up to v{VERSION})"
        )));
    }
    let hex = rest.strip_prefix("crc32c=").ok_or(None)?;
    let lower = hex.len() == 8 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let sum = u32::from_str_radix(hex, 16).ok().filter(|_| lower && version == "v1");
    sum.ok_or(None)
}

fn foreign(first: &str) -> String {
    let shown: String = first.chars().take(40).collect();
    format!("not a file of Levada, or damaged: the first line should be `v1 crc32c=<8 hex digits>`, but is {shown:?}")
}

/// One value as a JSON line.
pub(super) fn to_line(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|e| Error::internal(format!("a log line can't be written as JSON: {e}")))
}

/// One JSON line of the file `path`.
pub(super) fn from_line<T: DeserializeOwned>(path: &str, line: &str) -> Result<T> {
    serde_json::from_str(line).map_err(|e| {
        Error::corrupt(path, format!("a line does not hold what it should ({e}), though the checksum is right"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back() {
        let bytes = encode(&["{\"a\":1}", "", "ä"]);
        assert!(bytes.starts_with(b"v1 crc32c="));
        assert_eq!(decode("p", &bytes).unwrap().collect::<Vec<_>>(), ["{\"a\":1}", "", "ä"]);
        assert_eq!(decode("p", &encode::<&str>(&[])).unwrap().count(), 0);
    }

    #[test]
    fn every_bit_and_every_length_counts() {
        let bytes = encode(&["{\"a\":1}", "{\"b\":[1,2,3]}"]);
        for length in 0..bytes.len() {
            assert!(matches!(decode("p", &bytes[..length]), Err(Error::Corrupt { .. })), "{length}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(decode("p", &flipped), Err(Error::Corrupt { .. })), "bit {bit}");
        }
        let mut longer = bytes.clone();
        longer.push(b'\n');
        assert!(decode("p", &longer).is_err());
    }

    #[test]
    fn a_newer_version_and_a_foreign_file_are_told_apart() {
        let message = |bytes: &[u8]| decode("x/7", bytes).unwrap_err().to_string();
        assert_eq!(
            message(b"v2 whatever\nnew"),
            "x/7: the file was written by a newer Levada (log format v2; this one reads up to v1)"
        );
        assert!(message(b"v1\n{\"batchWatermarkMs\":0}").contains("not a file of Levada"));
        assert!(message(b"").contains("empty"));
        assert!(message(b"v01 crc32c=00000000\n").contains("not a file of Levada"));
    }
}
