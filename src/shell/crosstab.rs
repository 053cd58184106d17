//! `\crosstabview`: the last result anew, with the values of one of its columns as rows and those of another as columns.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray, UInt32Array};
use arrow::compute::{concat_batches, take};
use arrow::datatypes::{Field, Schema, SchemaRef};

use super::execute::Texts;
use super::live::{columns, compare};
use super::runner::Shell;
use super::terminal::Screen;
use crate::clock::Stopwatch;
use crate::display::row_texts;
use crate::error::{Code, Error, Result, closest};
use crate::session::Answer;

/// As many as psql makes.
const MOST_COLUMNS: usize = 1600;

/// Which columns of the result become what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Roles {
    /// Its values are the rows.
    vertical: usize,
    /// Its values are the columns.
    horizontal: usize,
    /// Its values are the cells.
    data: usize,
    /// Its values order the columns.
    order: Option<usize>,
}

impl Shell {
    /// Shows the last result as a table of two headers. `words`: colV, colH, colD and sortcolH.
    pub(super) fn crosstab(&mut self, words: &[String]) -> Result<()> {
        let (schema, batches) = self.last.result.kept("pivot what a GROUP BY makes of it")?;
        let roles = read(words, schema)?;
        let (format, style) = self.settings.look(self.output.is_terminal.then(Screen::now));
        let people = format.is_for_people().then(|| style.null.unwrap_or_else(|| "NULL".to_string()));
        let (table, blank) = pivot(schema, batches, roles, people.as_deref())?;
        self.last.crossed = Some((table.clone(), blank));
        self.print_crossed(table, blank)
    }

    /// Prints a cross table; `blank`: its NULLs are cells without a row.
    pub(super) fn print_crossed(&mut self, table: RecordBatch, blank: bool) -> Result<()> {
        self.session.cancel_token().clear();
        let answer =
            Answer::Rows { schema: table.schema(), rows: Box::new(std::iter::once(Ok(table))), notices: Vec::new() };
        let before = self.settings.clone();
        if blank {
            self.settings.null = Some(String::new());
        }
        let printed = self.print(answer, false, &Stopwatch::start());
        self.settings = before;
        printed.map(|_| ())
    }
}

/// The columns that were named, or those that psql takes where none are.
fn read(words: &[String], schema: &Schema) -> Result<Roles> {
    let count = schema.fields().len();
    if count < 3 {
        let error = Error::invalid(format!("\\crosstabview wants three columns, and the last result has {count}"));
        return Err(error.help("one whose values become rows, one for the columns, and one for the cells"));
    }
    let column = |at: usize| words.get(at).map(|word| find(word, schema)).transpose();
    let (vertical, horizontal) = (column(0)?.unwrap_or(0), column(1)?.unwrap_or(1));
    if vertical == horizontal {
        let name = schema.field(vertical).name();
        let error = Error::invalid(format!("the rows and the columns can't both be the values of {name:?}"));
        return Err(error.help("\\crosstabview colV colH names two columns"));
    }
    let rest = (0..count).find(|at| *at != vertical && *at != horizontal).filter(|_| count == 3);
    let Some(data) = column(2)?.or(rest) else {
        let error = Error::invalid(format!("the last result has {count} columns: which of them fills the cells?"));
        return Err(error.help("\\crosstabview colV colH colD names it"));
    };
    Ok(Roles { vertical, horizontal, data, order: column(3)? })
}

/// A column by its number, counted from 1, or by its name, which is written as in SQL.
///
/// # Errors
/// There is none, or more than one.
pub(super) fn find(word: &str, schema: &Schema) -> Result<usize> {
    let count = schema.fields().len();
    if word.chars().all(|c| c.is_ascii_digit()) && !word.is_empty() {
        let at = word.parse().ok().and_then(|number: usize| number.checked_sub(1)).filter(|at| *at < count);
        return at.ok_or_else(|| Error::invalid(format!("there is no column {word}: they are 1 to {count}")));
    }
    let quoted = word.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).map(|name| name.replace("\"\"", "\""));
    let named = |name: &str| {
        let all = schema.fields().iter().enumerate();
        all.filter(|(_, field)| field.name() == name).map(|(at, _)| at).collect::<Vec<_>>()
    };
    let mut found = named(quoted.as_deref().unwrap_or(word));
    if found.is_empty() && quoted.is_none() {
        found = named(&word.to_lowercase());
    }
    match found.as_slice() {
        [at] => Ok(*at),
        [] => {
            let error = Error::invalid(format!("the last result has no column {word:?}")).coded(Code::UnknownColumn);
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            Err(match closest(word, names.iter().copied()) {
                Some(name) => error.help(format!("did you mean {name}?")),
                None => error.help(format!("it has {}", names.join(", "))),
            })
        }
        [first, ..] => {
            let error = Error::invalid(format!("more than one column is called {word}")).coded(Code::Ambiguous);
            Err(error.help(format!("its number says which, such as {}", first + 1)))
        }
    }
}

/// Values in the order in which they come, each once.
#[derive(Default)]
struct Header<'a> {
    known: HashMap<Option<&'a str>, usize>,
    /// The first row of each.
    rows: Vec<usize>,
}

impl<'a> Header<'a> {
    /// The number of a value.
    fn place(&mut self, value: Option<&'a str>, row: usize) -> usize {
        let next = self.rows.len();
        let place = *self.known.entry(value).or_insert(next);
        if place == next {
            self.rows.push(row);
        }
        place
    }
}

/// The table, and whether its NULLs are cells that no row was for. `people`: what NULL is shown as where cells without a row
/// are to be told from it.
fn pivot(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    roles: Roles,
    people: Option<&str>,
) -> Result<(RecordBatch, bool)> {
    let all = concat_batches(schema, batches)?;
    let texts: Texts = row_texts(&all)?;
    let text = |row: usize, column: usize| texts.get(row).and_then(|cells| cells.get(column)?.as_deref());
    let (mut down, mut across) = (Header::default(), Header::default());
    let mut cells: HashMap<(usize, usize), usize> = HashMap::new();
    for row in 0..texts.len() {
        let (y, x) = (text(row, roles.vertical), text(row, roles.horizontal));
        let place = (down.place(y, row), across.place(x, row));
        if across.rows.len() > MOST_COLUMNS {
            let name = schema.field(roles.horizontal).name();
            let error = Error::invalid(format!("{name:?} has more than {MOST_COLUMNS} values: too many for columns"));
            return Err(error.help("\\crosstabview colV colH: another column, or fewer rows"));
        }
        if cells.insert(place, row).is_some() {
            let shown = |text: Option<&str>| text.map_or("NULL".to_string(), |text| format!("{text:?}"));
            let error = Error::invalid(format!("more than one value for row {}, column {}", shown(y), shown(x)));
            return Err(error.help("GROUP BY both columns gives one row for each cell"));
        }
    }
    let mut order: Vec<usize> = (0..across.rows.len()).collect();
    if let Some(column) = roles.order {
        let number = columns(schema).get(column).is_some_and(|column| column.number);
        let key = |place: &usize| text(across.rows[*place], column);
        order.sort_by(|a, b| compare(key(a), key(b), number));
    }
    let missing = cells.len() < down.rows.len() * across.rows.len();
    let nulls = (0..texts.len()).any(|row| text(row, roles.data).is_none() || text(row, roles.vertical).is_none());
    let as_texts = people.filter(|_| missing && nulls);
    let index = |row: usize| u32::try_from(row).map_err(|_| Error::invalid("the last result has too many rows"));
    let column = |column: usize, rows: &[Option<usize>]| -> Result<ArrayRef> {
        if let Some(null) = as_texts {
            let shown = rows.iter().map(|row| row.map_or("", |row| text(row, column).unwrap_or(null)));
            return Ok(Arc::new(shown.map(Some).collect::<StringArray>()));
        }
        let rows = rows.iter().map(|row| row.map(index).transpose()).collect::<Result<UInt32Array>>()?;
        Ok(take(all.column(column), &rows, None)?)
    };
    let mut names = vec![schema.field(roles.vertical).name().clone()];
    let mut arrays = vec![column(roles.vertical, &down.rows.iter().copied().map(Some).collect::<Vec<_>>())?];
    for x in order {
        let rows: Vec<Option<usize>> = (0..down.rows.len()).map(|y| cells.get(&(y, x)).copied()).collect();
        names.push(text(across.rows[x], roles.horizontal).unwrap_or(people.unwrap_or("NULL")).to_string());
        arrays.push(column(roles.data, &rows)?);
    }
    let fields = names.iter().zip(&arrays).map(|(name, array)| Field::new(name, array.data_type().clone(), true));
    let fields: Vec<Field> = fields.collect();
    let options = RecordBatchOptions::new().with_row_count(Some(down.rows.len()));
    let table = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)?;
    Ok((table, people.is_some() && missing && !nulls))
}

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;

    use super::*;

    fn result(rows: &[(Option<&str>, &str, Option<i64>, i64)]) -> RecordBatch {
        let text = |values: Vec<Option<&str>>| Arc::new(StringArray::from(values)) as ArrayRef;
        let number = |values: Vec<Option<i64>>| Arc::new(Int64Array::from(values)) as ArrayRef;
        let columns = [
            ("page", text(rows.iter().map(|row| row.0).collect())),
            ("month", text(rows.iter().map(|row| Some(row.1)).collect())),
            ("n", number(rows.iter().map(|row| row.2).collect())),
            ("place", number(rows.iter().map(|row| Some(row.3)).collect())),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
    }

    fn roles(words: &str) -> Result<Roles> {
        let words: Vec<String> = words.split_whitespace().map(str::to_string).collect();
        read(&words, &result(&[]).schema())
    }

    /// The names, then each row, and whether NULL is to be shown as nothing.
    fn shown(rows: &[(Option<&str>, &str, Option<i64>, i64)], words: &str) -> Result<(Vec<String>, bool)> {
        let batch = result(rows);
        let (table, blank) = pivot(&batch.schema(), std::slice::from_ref(&batch), roles(words)?, Some("NULL"))?;
        let names = table.schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>().join(" ");
        let cells = |row: Vec<Option<String>>| row.into_iter().map(|c| c.unwrap_or("-".into())).collect::<Vec<_>>();
        let rows = row_texts(&table)?.into_iter().map(|row| cells(row).join(" "));
        Ok((std::iter::once(names).chain(rows).collect(), blank))
    }

    #[test]
    fn columns_are_named_or_numbered() {
        let found =
            |words| roles(words).map(|r| (r.vertical, r.horizontal, r.data, r.order)).map_err(|e| e.to_string());
        assert_eq!(found("page month n"), Ok((0, 1, 2, None)));
        assert_eq!(found("2 PAGE \"n\" 4"), Ok((1, 0, 2, Some(3))));
        for (words, message) in [
            ("", "the last result has 4 columns: which of them fills the cells?"),
            ("month", "the rows and the columns can't both be the values of \"month\""),
            ("5", "there is no column 5: they are 1 to 4"),
            ("0", "there is no column 0: they are 1 to 4"),
            ("pages", "the last result has no column \"pages\""),
            ("\"PAGE\"", "the last result has no column \"\\\"PAGE\\\"\""),
        ] {
            assert_eq!(found(words), Err(message.to_string()), "{words}");
        }
        let two = Schema::new(vec![Field::new("a", arrow::datatypes::DataType::Int64, true); 2]);
        assert!(read(&[], &two).unwrap_err().to_string().contains("wants three columns"));
        let three = Schema::new(vec![Field::new("a", arrow::datatypes::DataType::Int64, true); 3]);
        assert_eq!(read(&[], &three).unwrap().data, 2);
        assert!(read(&["a".to_string()], &three).unwrap_err().to_string().contains("more than one column"));
    }

    #[test]
    fn values_become_headers_as_they_come_or_in_an_order() {
        let rows = [(Some("/b"), "mar", Some(3), 3), (Some("/a"), "jan", Some(10), 1), (Some("/b"), "jan", Some(2), 1)];
        let (lines, blank) = shown(&rows, "page month n").unwrap();
        assert_eq!((lines, blank), (vec!["page mar jan".into(), "/b 3 2".into(), "/a - 10".into()], true));
        let (lines, _) = shown(&rows, "page month n place").unwrap();
        assert_eq!(lines[0], "page jan mar");
        let (lines, blank) = shown(&rows[..1], "page month n").unwrap();
        assert_eq!((lines[1].as_str(), blank), ("/b 3", false));
    }

    #[test]
    fn a_cell_of_null_is_told_from_one_without_a_row() {
        let rows = [(None, "jan", None, 1), (Some("/a"), "feb", Some(2), 2)];
        let (lines, blank) = shown(&rows, "page month n").unwrap();
        assert_eq!((lines, blank), (vec!["page jan feb".into(), "NULL NULL ".into(), "/a  2".into()], false));
    }

    #[test]
    fn two_values_for_one_cell_and_too_many_columns_are_errors() {
        let rows = [(Some("/a"), "jan", Some(1), 1), (Some("/a"), "jan", Some(2), 1)];
        let error = shown(&rows, "page month n").unwrap_err();
        assert_eq!(error.to_string(), "more than one value for row \"/a\", column \"jan\"");
        let months: Vec<String> = (0..=MOST_COLUMNS).map(|n| n.to_string()).collect();
        let rows: Vec<_> = months.iter().map(|month| (Some("/a"), month.as_str(), Some(1), 1)).collect();
        assert!(shown(&rows, "page month n").unwrap_err().to_string().contains("more than 1600 values"));
        assert_eq!(shown(&rows[1..], "page month n").unwrap().0.len(), 2);
    }
}
