//! Which directory, or which store, a location in a statement speaks of.
//!
//! A plain path is taken as it is, whatever characters it has, and so is the path in an object store; `file:` and
//! `http:` URLs are decoded. A location is shown in SHOW CREATE and in errors, so it may hold no secret.

use std::path::PathBuf;

use crate::error::{Error, Result};

/// What a location speaks of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    Local(PathBuf),
    Remote(RemoteUrl),
}

/// Whose protocol a store speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    S3,
    Gcs,
    Azure,
    Http,
}

/// A URL taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteUrl {
    pub scheme: Scheme,
    /// As written: `s3a://bucket`, `https://host:8080`.
    pub base: String,
    /// The bucket; `container` or `container@account.host`; the host and port.
    pub authority: String,
    /// Without a slash at its front.
    pub path: String,
}

/// What begins like a store's location, and who speaks it.
const SCHEMES: &[(&str, Option<Scheme>)] = &[
    ("s3", Some(Scheme::S3)),
    ("s3a", Some(Scheme::S3)),
    ("gs", Some(Scheme::Gcs)),
    ("gcs", Some(Scheme::Gcs)),
    ("az", Some(Scheme::Azure)),
    ("azure", Some(Scheme::Azure)),
    ("abfs", Some(Scheme::Azure)),
    ("abfss", Some(Scheme::Azure)),
    ("http", Some(Scheme::Http)),
    ("https", Some(Scheme::Http)),
    ("adl", None),
    ("wasb", None),
    ("wasbs", None),
    ("hdfs", None),
];

impl Location {
    /// Takes a location apart; `what` is said of it in errors, as in "a checkpoint".
    ///
    /// # Errors
    /// Unsupported: a store that nobody here speaks to. InvalidInput: empty, an unknown scheme, a URL that names no
    /// bucket, holds a password or a query, or is wrongly encoded.
    pub fn parse(location: &str, what: &str) -> Result<Self> {
        if location.is_empty() {
            return Err(
                Error::invalid(format!("the location of {what} is empty")).help("name a directory, such as './here'")
            );
        }
        let Some((scheme, rest)) = scheme(location) else { return Ok(Location::Local(PathBuf::from(location))) };
        if scheme == "file" {
            return file_url(location, rest).map(Location::Local);
        }
        match SCHEMES.iter().find(|(name, _)| *name == scheme) {
            Some((_, Some(known))) => remote(*known, &scheme, rest).map(Location::Remote),
            Some((_, None)) => Err(Error::not_yet(format!("{what} in {scheme}://: {location}"))
                .help("use a local directory, or s3://, gs://, az://")),
            None => Err(Error::invalid(format!("unknown scheme {scheme}:// in {location}"))
                .help("use a local directory, a file: URL, or s3://, gs://, az://, https://")),
        }
    }

    /// [`Location::parse`] of what is going to be written.
    ///
    /// # Errors
    /// As there. Unsupported: a web server, which promises nothing of what is written to it.
    pub fn to_write(location: &str, what: &str) -> Result<Self> {
        match Self::parse(location, what)? {
            Location::Remote(RemoteUrl { scheme: Scheme::Http, base, path, .. }) => {
                let error = Error::unsupported(format!("{what} on a web server: {base}/{path}"));
                Err(error.help("use a local directory, or s3://, gs://, az://"))
            }
            other => Ok(other),
        }
    }
}

fn remote(scheme: Scheme, name: &str, rest: &str) -> Result<RemoteUrl> {
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    // Nothing of such a URL is repeated.
    let secret = |what: &str| {
        Error::invalid(format!("the {name}:// URL holds {what}, and would be shown with it"))
            .help("credentials come from the environment, as in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    };
    if authority.contains('@') && (scheme != Scheme::Azure || authority.contains(':')) {
        return Err(secret("a user name or password"));
    }
    if scheme == Scheme::Http && path.contains(['?', '#']) || authority.contains(['?', '#']) {
        return Err(secret("a query"));
    }
    let base = format!("{name}://{authority}");
    if authority.is_empty() {
        let what = if scheme == Scheme::Http { "host" } else { "bucket" };
        return Err(
            Error::invalid(format!("{base}/{path} names no {what}")).help(format!("write {name}://{what}/path"))
        );
    }
    let path = match scheme {
        Scheme::Http => percent_decode(path)
            .ok_or_else(|| Error::invalid(format!("{base}/{path}: a % in a URL must be followed by two hex digits")))?,
        _ => path.to_string(),
    };
    Ok(RemoteUrl { scheme, base, authority: authority.to_string(), path })
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

    fn local(location: &str) -> Result<PathBuf> {
        match Location::to_write(location, "a checkpoint")? {
            Location::Local(path) => Ok(path),
            Location::Remote(url) => panic!("{} is no path", url.base),
        }
    }

    #[test]
    fn paths_are_taken_as_they_are() {
        for path in ["ck", "./chk @#chk", "/a/100%", "a:b/c", "ä?*[x]"] {
            assert_eq!(local(path).unwrap(), PathBuf::from(path));
        }
    }

    #[test]
    fn file_urls_are_decoded() {
        assert_eq!(local("file:///a/chk%20%40x").unwrap(), PathBuf::from("/a/chk @x"));
        assert_eq!(local("FILE://localhost/a").unwrap(), PathBuf::from("/a"));
        assert_eq!(local("file:/a").unwrap(), PathBuf::from("/a"));
        for wrong in ["file://host/a", "file:///a%2", "file:///a%zz", "file:"] {
            assert!(matches!(local(wrong), Err(Error::InvalidInput { .. })), "{wrong}");
        }
    }

    fn url(location: &str) -> (Scheme, String, String, String) {
        match Location::parse(location, "files").unwrap() {
            Location::Remote(url) => (url.scheme, url.base, url.authority, url.path),
            Location::Local(path) => panic!("{} is no URL", path.display()),
        }
    }

    #[test]
    fn urls_of_stores_are_taken_apart() {
        let own = |scheme, base: &str, authority: &str, path: &str| {
            (scheme, base.to_string(), authority.to_string(), path.to_string())
        };
        assert_eq!(url("s3://b/a b/%20*.json"), own(Scheme::S3, "s3://b", "b", "a b/%20*.json"));
        assert_eq!(url("S3A://b"), own(Scheme::S3, "s3a://b", "b", ""));
        assert_eq!(url("gs://b/?/[x]"), own(Scheme::Gcs, "gs://b", "b", "?/[x]"));
        let account = "c@acc.dfs.core.windows.net";
        assert_eq!(
            url(&format!("abfss://{account}/p/")),
            own(Scheme::Azure, &format!("abfss://{account}"), account, "p/")
        );
        assert_eq!(url("http://h:9/a%20b/c"), own(Scheme::Http, "http://h:9", "h:9", "a b/c"));
    }

    #[test]
    fn secrets_in_urls_are_refused_and_not_repeated() {
        for location in [
            "s3://KEY:s3cret@bucket/x",
            "https://user:s3cret@host/x",
            "https://host/x?sig=s3cret",
            "az://c:s3cret@acc.blob.core.windows.net/x",
            "https://host?s3cret",
        ] {
            let error = Location::parse(location, "files").unwrap_err();
            assert!(error.to_string().contains("would be shown") && !error.to_string().contains("s3cret"), "{error}");
            assert!(error.help_text().is_some_and(|help| !help.contains("s3cret")));
        }
    }

    #[test]
    fn what_names_no_store_is_refused_by_name() {
        let error = Location::to_write("https://host/ck", "a checkpoint").unwrap_err();
        assert_eq!(error.to_string(), "a checkpoint on a web server: https://host/ck");
        for store in ["http://b/c", "hdfs://n/x", "wasb://c/x"] {
            assert!(matches!(Location::to_write(store, "a checkpoint"), Err(Error::Unsupported { .. })), "{store}");
        }
        for store in ["s3://bucket/ck", "gs://b/c", "az://b/c", "S3A://b"] {
            assert!(matches!(Location::to_write(store, "a checkpoint"), Ok(Location::Remote(_))), "{store}");
        }
        for wrong in ["ftp://x/y", "", "s3:///x", "https://", "http://h/%zz"] {
            assert!(matches!(Location::parse(wrong, "a checkpoint"), Err(Error::InvalidInput { .. })), "{wrong}");
        }
    }
}
