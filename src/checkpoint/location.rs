//! Which directory a `CHECKPOINT '…'`, or the option `path` of files, speaks of.
//!
//! A plain path is taken as it is, whatever characters it has; a `file:` URL is decoded. Object stores have a place
//! in the language and are refused for now.

use std::path::PathBuf;

use crate::error::{Error, Result};

const OBJECT_STORES: &[&str] =
    &["s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss", "adl", "wasb", "wasbs", "hdfs", "http", "https"];

/// The local directory of a location; `what` is said of it in errors, as in "a checkpoint".
///
/// # Errors
/// Unsupported: an object store. InvalidInput: empty, an unknown scheme, a `file:` URL that names a host or is
/// wrongly encoded.
pub fn local_directory(location: &str, what: &str) -> Result<PathBuf> {
    if location.is_empty() {
        return Err(
            Error::invalid(format!("the location of {what} is empty")).help("name a directory, such as './here'")
        );
    }
    let Some((scheme, rest)) = scheme(location) else { return Ok(PathBuf::from(location)) };
    if scheme == "file" {
        return file_url(location, rest);
    }
    if OBJECT_STORES.contains(&scheme.as_str()) {
        let error = Error::not_yet(format!("{what} in {scheme}://: {location}"));
        return Err(error.help("use a local directory"));
    }
    let error = Error::invalid(format!("unknown scheme {scheme}:// in {location}"));
    Err(error.help("use a local directory, or a file: URL"))
}

/// `s3` and what follows `s3:`. A colon alone doesn't make a scheme: `a:b` is a fine directory name.
fn scheme(location: &str) -> Option<(String, &str)> {
    let (scheme, rest) = location.split_once(':')?;
    let scheme = scheme.to_ascii_lowercase();
    let letters = scheme.starts_with(|c: char| c.is_ascii_lowercase())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    (letters && (rest.starts_with("//") || scheme == "file")).then_some((scheme, rest))
}

fn file_url(location: &str, rest: &str) -> Result<PathBuf> {
    let path = match rest.strip_prefix("//") {
        None => rest,
        Some(behind) => match behind.find('/') {
            Some(at) if matches!(&behind[..at], "" | "localhost") => &behind[at..],
            _ => {
                let error = Error::invalid(format!("{location} names a host: a file: URL is file:///path"));
                return Err(error.help("write three slashes before an absolute path"));
            }
        },
    };
    let decoded = percent_decode(path).filter(|path| !path.is_empty());
    let decoded = decoded.ok_or_else(|| {
        Error::invalid(format!("{location} is no file: URL: a % in it must be followed by two hex digits"))
    })?;
    Ok(PathBuf::from(decoded))
}

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, behind)) = rest.split_first() {
        if *byte == b'%' {
            let hex = behind.get(..2).filter(|hex| hex.iter().all(u8::is_ascii_hexdigit))?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?);
            rest = &behind[2..];
        } else {
            bytes.push(*byte);
            rest = behind;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_as_they_are() {
        for path in ["ck", "./chk @#chk", "/a/100%", "a:b/c", "ä?*[x]"] {
            assert_eq!(local_directory(path, "a checkpoint").unwrap(), PathBuf::from(path));
        }
    }

    #[test]
    fn file_urls_are_decoded() {
        assert_eq!(local_directory("file:///a/chk%20%40x", "a checkpoint").unwrap(), PathBuf::from("/a/chk @x"));
        assert_eq!(local_directory("FILE://localhost/a", "a checkpoint").unwrap(), PathBuf::from("/a"));
        assert_eq!(local_directory("file:/a", "a checkpoint").unwrap(), PathBuf::from("/a"));
        for wrong in ["file://host/a", "file:///a%2", "file:///a%zz", "file:"] {
            assert!(matches!(local_directory(wrong, "a checkpoint"), Err(Error::InvalidInput { .. })), "{wrong}");
        }
    }

    #[test]
    fn object_stores_are_refused_by_name() {
        let error = local_directory("s3://bucket/ck", "a checkpoint").unwrap_err();
        assert_eq!(error.to_string(), "not supported yet: a checkpoint in s3://: s3://bucket/ck");
        for store in ["gs://b/c", "az://b/c", "S3A://b"] {
            assert!(matches!(local_directory(store, "a checkpoint"), Err(Error::Unsupported { .. })), "{store}");
        }
        assert!(matches!(local_directory("ftp://x/y", "a checkpoint"), Err(Error::InvalidInput { .. })));
        assert!(matches!(local_directory("", "a checkpoint"), Err(Error::InvalidInput { .. })));
    }
}
