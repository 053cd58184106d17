//! DataFusion's errors as ours: by who must act, with the place in the SQL and the closest known name.

use std::error::Error as StdError;

use arrow::error::ArrowError;
use datafusion::common::diagnostic::Diagnostic;
use datafusion::common::{Column, DataFusionError, SchemaError};
use datafusion::object_store;
use datafusion::sql::sqlparser::parser::ParserError;

use super::wording;
use super::{Code, Error, Location, Span, closest};

impl From<DataFusionError> for Error {
    /// Takes an error of ours out again, and cuts DataFusion's own by who must act.
    fn from(error: DataFusionError) -> Self {
        of(&error)
    }
}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Self {
        arrow(&error)
    }
}

fn of(error: &DataFusionError) -> Error {
    match error {
        DataFusionError::Diagnostic(diagnostic, inner) => with_diagnostic(of(inner), diagnostic),
        DataFusionError::Context(_, inner) => of(inner),
        DataFusionError::Shared(inner) => of(inner),
        DataFusionError::Collection(errors) => match errors.first() {
            Some(first) => of(first),
            None => Error::internal("an empty list of errors"),
        },
        DataFusionError::External(inner) => external(inner.as_ref()),
        DataFusionError::ArrowError(inner, _) => arrow(inner),
        DataFusionError::ParquetError(inner) => parquet(inner),
        DataFusionError::ObjectStore(inner) => store(inner),
        DataFusionError::IoError(inner) => Error::io("reading or writing a file", inner),
        DataFusionError::SQL(inner, _) => syntax(inner),
        DataFusionError::SchemaError(inner, _) => schema(inner),
        DataFusionError::Plan(message) => plan(message),
        DataFusionError::Configuration(message) => Error::invalid(wording::plain(message)),
        DataFusionError::NotImplemented(message) => not_implemented(message),
        DataFusionError::Execution(message) => execution(message),
        DataFusionError::ResourcesExhausted(message) => {
            Error::computation(format!("out of the memory or disk that the session may use: {message}"))
                .coded(Code::OutOfResources)
        }
        DataFusionError::ExecutionJoin(inner) => Error::internal(inner.to_string()),
        DataFusionError::Internal(message) => match wording::reworded(message) {
            Some(worded) => said(worded),
            None => Error::internal(wording::plain(first_line(message))),
        },
        other => Error::computation(wording::plain(&other.strip_backtrace())),
    }
}

/// An error that came in a box: ours, DataFusion's or arrow's again, or the world's.
fn external(error: &(dyn StdError + Send + Sync + 'static)) -> Error {
    if let Some(ours) = error.downcast_ref::<Error>() {
        ours.clone()
    } else if let Some(ours) = error.downcast_ref::<Box<Error>>() {
        (**ours).clone()
    } else if let Some(inner) = error.downcast_ref::<DataFusionError>() {
        of(inner)
    } else if let Some(inner) = error.downcast_ref::<ArrowError>() {
        arrow(inner)
    } else if let Some(inner) = error.downcast_ref::<std::io::Error>() {
        Error::io("reading or writing a file", inner)
    } else {
        Error::computation(error.to_string())
    }
}

fn arrow(error: &ArrowError) -> Error {
    match error {
        ArrowError::ExternalError(inner) => external(inner.as_ref()),
        ArrowError::IoError(_, inner) => Error::io("reading or writing a file", inner),
        ArrowError::NotYetImplemented(message) => not_implemented(message),
        ArrowError::DivideByZero => Error::computation("division by zero").coded(Code::DivisionByZero),
        ArrowError::ArithmeticOverflow(message) => {
            Error::computation(format!("overflow: {}", wording::of_data(message))).coded(Code::Overflow)
        }
        ArrowError::CastError(message) | ArrowError::ParseError(message) => {
            Error::computation(format!("{} (TRY_CAST gives NULL instead)", wording::of_data(message)))
                .coded(Code::BadCast)
        }
        ArrowError::ComputeError(message) | ArrowError::InvalidArgumentError(message) => execution(message),
        other => Error::computation(wording::plain(&other.to_string())),
    }
}

fn parquet(error: &parquet::errors::ParquetError) -> Error {
    match error {
        parquet::errors::ParquetError::External(inner) => external(inner.as_ref()),
        other => Error::Io {
            context: "reading parquet".into(),
            message: other.to_string(),
            kind: std::io::ErrorKind::InvalidData,
            transient: false,
        },
    }
}

fn store(error: &object_store::Error) -> Error {
    let (kind, transient) = match error {
        object_store::Error::NotFound { .. } => (std::io::ErrorKind::NotFound, false),
        object_store::Error::Generic { .. } => (std::io::ErrorKind::Other, true),
        _ => (std::io::ErrorKind::Other, false),
    };
    Error::Io { context: "object store".into(), message: error.to_string(), kind, transient }
}

fn syntax(error: &ParserError) -> Error {
    let (ParserError::ParserError(message) | ParserError::TokenizerError(message)) = error else {
        return Error::unsupported("the statement is nested too deeply");
    };
    // "Expected: x, found: y at Line: 1, Column: 2"
    let error = match message.rsplit_once(" at Line: ") {
        Some((message, place)) => {
            let mut numbers = place.split(", Column: ").map(|n| n.trim().parse::<u64>());
            match (numbers.next(), numbers.next()) {
                (Some(Ok(line)), Some(Ok(column))) => {
                    let start = Location { line, column };
                    Error::invalid_at(Span { start, end: Location { line, column: column + 1 } }, message)
                }
                _ => Error::invalid(message),
            }
        }
        None => Error::invalid(message),
    };
    error.coded(Code::Syntax)
}

fn schema(error: &SchemaError) -> Error {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let error = Error::invalid(format!("column \"{}\" not found", written(field)))
                .coded(Code::UnknownColumn)
                .at(first_span(field));
            let valid_fields = of_its_table(field, valid_fields);
            match not_found_help(field, &valid_fields) {
                Some(help) => error.help(help),
                None => error,
            }
        }
        SchemaError::AmbiguousReference { field } => {
            let error = Error::invalid(format!("column \"{}\" is ambiguous", field.name)).at(first_span(field));
            error.coded(Code::Ambiguous).help(format!("write the table's name in front: t.{}", field.name))
        }
        SchemaError::DuplicateQualifiedField { qualifier, name } => {
            Error::invalid(format!("two columns are called {}.{name}", qualifier.table()))
                .coded(Code::Ambiguous)
                .help("rename one with AS")
        }
        SchemaError::DuplicateUnqualifiedField { name } => {
            Error::invalid(format!("two columns are called {name}")).coded(Code::Ambiguous).help("rename one with AS")
        }
    }
}

/// Where a table is named and known, its columns alone.
fn of_its_table(field: &Column, valid: &[Column]) -> Vec<Column> {
    let same = |column: &&Column| match (&field.relation, &column.relation) {
        (Some(wanted), Some(known)) => wanted.table() == known.table(),
        _ => false,
    };
    let of_table: Vec<Column> = valid.iter().filter(same).cloned().collect();
    if of_table.is_empty() { valid.to_vec() } else { of_table }
}

/// `did you mean "customer"?  (orders: customer, amount, ts)`
fn not_found_help(field: &Column, valid: &[Column]) -> Option<String> {
    if let Some(table) = &field.relation
        && valid.iter().all(|known| known.relation.as_ref().is_some_and(|known| known.table() != table.table()))
    {
        let mut tables: Vec<&str> = valid.iter().filter_map(|c| Some(c.relation.as_ref()?.table())).collect();
        tables.dedup();
        return (!tables.is_empty())
            .then(|| format!("there is no {} in FROM  (there: {})", table.table(), tables.join(", ")));
    }
    // The SELECT's columns and those below it may be the same.
    let mut seen = std::collections::HashSet::new();
    let names = valid.iter().map(|c| c.name.as_str()).filter(|name| !name.starts_with("__") && seen.insert(*name));
    let names: Vec<&str> = names.collect();
    let first = valid.first()?;
    let one_table = valid.iter().all(|c| c.relation == first.relation);
    let list = match &first.relation {
        Some(table) if one_table => format!("({}: {})", table.table(), names.join(", ")),
        _ => format!("(known: {})", names.join(", ")),
    };
    Some(match closest(&field.name, names.iter().copied()) {
        Some(name) => format!("did you mean \"{name}\"?  {list}"),
        None => list,
    })
}

fn written(column: &Column) -> String {
    match &column.relation {
        Some(table) => format!("{}.{}", table.table(), column.name),
        None => column.name.clone(),
    }
}

/// Where a column stands in the SQL.
pub fn first_span(column: &Column) -> Option<Span> {
    column.spans.first().and_then(span)
}

/// A place of DataFusion's; `None` for its empty one.
fn span(span: datafusion::common::Span) -> Option<Span> {
    let at = |l: datafusion::common::Location| Location { line: l.line, column: l.column };
    (span.start.line > 0).then(|| Span { start: at(span.start), end: at(span.end) })
}

/// Planning errors come as text: the parts that a user does not need are taken off.
fn plan(message: &str) -> Error {
    let message = message.replace("datafusion.public.", "");
    let table = message.strip_prefix("table '").and_then(|rest| rest.strip_suffix("' not found"));
    if let Some(table) = table.or_else(|| message.strip_prefix("No table named '")?.strip_suffix('\'')) {
        return Error::invalid(format!("there is no stream, table or view \"{table}\"")).coded(Code::UnknownTable);
    }
    let (what, name) = message.split_once("\nDid you mean ").map_or((message.as_str(), None), |(w, n)| (w, Some(n)));
    let error = match wording::reworded(what) {
        Some(worded) => said(worded),
        None => Error::invalid(wording::plain(what)),
    };
    match name {
        Some(name) if error.help_text().is_none() => error.help(format!("did you mean {name}")),
        _ => error,
    }
}

fn said((code, (message, help)): (Code, wording::Worded)) -> Error {
    let error = Error::invalid(message).coded(code);
    match help {
        Some(help) => error.help(help),
        None => error,
    }
}

/// What DataFusion knows of and can't do, or a statement that makes no sense.
fn not_implemented(message: &str) -> Error {
    wording::reworded(message).map_or_else(|| Error::not_yet(wording::plain(message)), said)
}

/// A statement that shows only when it runs that it makes no sense, or the data.
fn execution(message: &str) -> Error {
    let of_data = || Error::computation(wording::of_data(message)).coded(wording::kind_of_data(message));
    wording::reworded(message).map_or_else(of_data, said)
}

fn with_diagnostic(error: Error, diagnostic: &Diagnostic) -> Error {
    // Of an operator's two sides only those that are columns have a place.
    let noted = diagnostic.notes.iter().find_map(|note| note.span.and_then(span));
    let error = error.at(diagnostic.span.and_then(span).or(noted));
    let helps = diagnostic.helps.iter().map(|h| &h.message);
    // "has type Int32" is in the message.
    let notes = diagnostic.notes.iter().map(|n| &n.message).filter(|note| !note.starts_with("has type"));
    match helps.chain(notes).next() {
        Some(help) if error.help_text().is_none() => error.help(wording::plain(help)),
        _ => error,
    }
}

fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::common::TableReference;

    use super::*;

    #[test]
    fn an_unknown_column_names_the_closest_and_the_table() {
        let known = |name| Column::new(Some(TableReference::bare("orders")), name);
        let error = SchemaError::FieldNotFound {
            field: Box::new(Column::new_unqualified("custmer")),
            valid_fields: vec![known("customer"), known("amount"), known("ts")],
        };
        let error = Error::from(DataFusionError::SchemaError(Box::new(error), Box::new(None)));
        assert_eq!((error.to_string().as_str(), error.code()), ("column \"custmer\" not found", "E0203"));
        assert_eq!(error.help_text(), Some("did you mean \"customer\"?  (orders: customer, amount, ts)"));
    }

    #[test]
    fn our_own_errors_come_back_as_they_were() {
        let ours = Error::conflict("busy");
        let boxed = ArrowError::ExternalError(Box::new(DataFusionError::External(Box::new(ours))));
        let shared = DataFusionError::Shared(Arc::new(DataFusionError::from(boxed)));
        assert!(matches!(Error::from(shared), Error::Conflict { message } if message == "busy"));
    }

    #[test]
    fn the_remedy_decides_the_kind() {
        let code = |e| Error::from(e).code();
        assert_eq!(code(ArrowError::DivideByZero.into()), "E0701");
        assert_eq!(code(ArrowError::ComputeError("Overflow happened on: 1 + 2".into()).into()), "E0702");
        assert_eq!(code(ArrowError::ComputeError("x".into()).into()), "E0700");
        assert_eq!(code(DataFusionError::NotImplemented("x".into())), "E0201");
        assert_eq!(code(DataFusionError::Plan("x".into())), "E0100");
        let missing = DataFusionError::Plan("table 'datafusion.public.nope' not found".into());
        let missing = Error::from(missing);
        assert_eq!(missing.to_string(), "there is no stream, table or view \"nope\"");
        assert_eq!(missing.code(), "E0202");
        let parser = ParserError::ParserError("Expected: ), found: EOF at Line: 3, Column: 14".into());
        let error = Error::from(DataFusionError::SQL(Box::new(parser), None));
        assert_eq!(error.span().map(|s| s.start), Some(Location { line: 3, column: 14 }));
        assert_eq!((error.to_string().as_str(), error.code()), ("Expected: ), found: EOF", "E0101"));
    }
}
