//! What a store's failure means, without what must not be seen.
//!
//! Stores answer in XML, and URLs may carry signatures: of an answer only its code and message are shown, of a URL
//! nothing behind its path.

use std::io::ErrorKind;

use object_store::client::{HttpError, HttpErrorKind};

use crate::error::Error;

/// A failed request; `doing` names it and its object, as in "read s3://bucket/key".
pub fn failed(doing: impl std::fmt::Display, error: &object_store::Error) -> Error {
    use object_store::Error as Store;
    let kind = match error {
        Store::NotFound { .. } => ErrorKind::NotFound,
        Store::PermissionDenied { .. } | Store::Unauthenticated { .. } => ErrorKind::PermissionDenied,
        Store::AlreadyExists { .. } | Store::Precondition { .. } => ErrorKind::AlreadyExists,
        Store::InvalidPath { .. } => ErrorKind::InvalidData,
        Store::NotSupported { .. } | Store::NotImplemented { .. } => ErrorKind::Unsupported,
        _ => ErrorKind::Other,
    };
    let transient = kind == ErrorKind::Other && is_transient(error);
    let message = match kind {
        ErrorKind::NotFound => "it is not there".to_string(),
        _ => clean(&error.to_string()),
    };
    Error::Io { context: doing.to_string(), message, kind, transient }
}

/// Whether the request itself was sound: nobody answered, or the server says that it is its fault.
fn is_transient(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(inner) = cause {
        if let Some(http) = inner.downcast_ref::<HttpError>() {
            use HttpErrorKind::*;
            return matches!(http.kind(), Connect | Request | Timeout | Interrupted | Decode);
        }
        cause = inner.source();
    }
    let text = error.to_string();
    let passing = ["500", "502", "503", "504", "429", "408"].map(|code| format!("status code: {code}"));
    passing.iter().any(|code| text.contains(code)) || text.contains("SlowDown") || text.contains("InternalError")
}

/// An error's text as it may be shown.
fn clean(text: &str) -> String {
    let between = |tag: &str| {
        let (_, behind) = text.split_once(&format!("<{tag}>"))?;
        Some(behind.split_once("</")?.0.trim().to_string())
    };
    if let Some(code) = between("Code") {
        let message = between("Message").unwrap_or_default();
        return format!("the store answers {code}: {message}");
    }
    if text.contains("169.254.169.254") {
        // Where nothing else is given, the clients ask the machine they run on.
        return "there are no credentials in the environment, and this machine has none of its own; a public bucket wants anonymous = true"
            .to_string();
    }
    // What follows is a page for browsers.
    let text = text.split('<').next().unwrap_or_default().trim_end_matches([' ', ':']);
    let words: Vec<String> = text.split_whitespace().map(without_query).collect();
    let text = words.join(" ");
    match text.char_indices().nth(400) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

fn without_query(word: &str) -> String {
    match (word.find("://"), word.find(['?', '#'])) {
        (Some(_), Some(at)) => format!("{}?…", &word[..at]),
        _ => word.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> object_store::Error {
        object_store::Error::Generic { store: "S3", source: text.to_string().into() }
    }

    #[test]
    fn only_code_and_message_of_an_answer_are_shown() {
        let answer = "Error performing GET http://h/b/k?X-Amz-Signature=secret in 1ms - Server returned non-2xx status code: \
            403 Forbidden: <Error><Code>InvalidAccessKeyId</Code><Message>No such key.</Message>\
            <AWSAccessKeyId>AKIASECRET</AWSAccessKeyId></Error>";
        let shown = failed("read s3://b/k", &generic(answer)).to_string();
        assert_eq!(shown, "read s3://b/k: the store answers InvalidAccessKeyId: No such key.");
        let shown = failed("list az://c", &generic("GET https://a.blob/c?sig=secret#x failed:\n why")).to_string();
        assert_eq!(shown, "list az://c: Generic S3 error: GET https://a.blob/c?… failed: why");
        let page = generic("non-2xx status code: 501 Not Implemented: <!DOCTYPE HTML> <html>…");
        assert_eq!(failed("x", &page).to_string(), "x: Generic S3 error: non-2xx status code: 501 Not Implemented");
        let shown = failed("read", &generic("PUT http://169.254.169.254/latest/api/token timed out")).to_string();
        assert!(shown.starts_with("read: there are no credentials in the environment"), "{shown}");
        assert!(failed("x", &generic(&"y".repeat(5_000))).to_string().len() < 500);
    }

    #[test]
    fn what_may_pass_is_worth_another_try() {
        let transient = |text: &str| failed("read", &generic(text)).is_transient();
        assert!(transient("Server returned non-2xx status code: 503 Service Unavailable: "));
        assert!(transient("Server returned error response: <Code>SlowDown</Code>"));
        assert!(!transient("Server returned non-2xx status code: 400 Bad Request: "));
        assert!(!transient("Server returned non-2xx status code: 501 Not Implemented: "));
        let refused = HttpError::new(HttpErrorKind::Connect, std::io::Error::other("refused"));
        let refused = object_store::Error::Generic { store: "S3", source: Box::new(refused) };
        assert!(failed("read", &refused).is_transient());
        let gone = object_store::Error::NotFound { path: "k".into(), source: "x".into() };
        assert!(!failed("read", &gone).is_transient());
    }
}
