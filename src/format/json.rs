//! JSON: one object a line, its fields found by exact name.
//!
//! A missing field is NULL, one that the columns don't name is passed over, of a field given twice the last
//! counts. Whole arrays and pretty-printed files are refused record by record: a record is a line.

use super::column::{Column, Reason, Taken, Values};
use super::cursor::Cursor;
use super::object::Object;
use super::{BadPlace, BatchBuilder, Block, Keep, OnBad, line_at, whole_lines, without_cr};
use crate::error::Result;

/// Decodes lines of JSON.
#[derive(Debug, Default)]
pub struct JsonDecoder {
    /// Holds a text while its escapes are undone.
    scratch: Vec<u8>,
}

impl JsonDecoder {
    pub(super) fn decode(
        &mut self,
        block: Block<'_>,
        batch: &mut BatchBuilder,
        on_bad: &mut OnBad<'_>,
    ) -> Result<usize> {
        let bytes = whole_lines(block);
        let mut cursor = Cursor { bytes, at: 0 };
        while !batch.is_full() {
            cursor.skip_blanks();
            if cursor.peek() == b'\n' {
                if cursor.at >= bytes.len() {
                    break;
                }
                cursor.at += 1;
                continue;
            }
            let (start, rows) = (cursor.at, batch.rows());
            match self.record(&mut cursor, batch.columns()) {
                Ok(()) => batch.close_row(bytes, start),
                Err(reason) => {
                    let (text, next) = line_at(bytes, start);
                    let text = without_cr(text);
                    batch.truncate(rows);
                    let place = BadPlace { at: start, text, reason: reason.to_string() };
                    if on_bad(place)? == Keep::Nulls {
                        batch.null_row(bytes, start, text);
                    }
                    cursor.at = next;
                }
            }
        }
        let taken = cursor.at.min(bytes.len());
        batch.block_done(bytes, taken);
        Ok(taken)
    }

    /// One record and the end of its line.
    #[inline]
    fn record(&mut self, cursor: &mut Cursor<'_>, columns: &mut Object) -> Taken {
        if cursor.peek() != b'{' {
            return Err(no_object(cursor));
        }
        self.object(cursor, columns)?;
        cursor.skip_blanks();
        if cursor.peek() != b'\n' {
            return Err(cursor.unexpected("the end of the line behind the object"));
        }
        cursor.at += 1;
        Ok(())
    }

    /// The object whose brace is here, as one row of `columns`.
    fn object(&mut self, cursor: &mut Cursor<'_>, columns: &mut Object) -> Taken {
        cursor.at += 1;
        cursor.skip_blanks();
        let (mut place, mut given) = (0, 0);
        if cursor.peek() == b'}' {
            cursor.at += 1;
            return columns.close_row(0);
        }
        loop {
            match self.key(cursor, columns, place)? {
                Some(at) => {
                    let (column, first) = columns.column(at);
                    self.value(cursor, column)?;
                    given += usize::from(first);
                }
                None => cursor.skip_value()?,
            }
            cursor.skip_blanks();
            match cursor.peek() {
                b',' => cursor.at += 1,
                b'}' => break,
                _ => return Err(cursor.unexpected("a comma or a closing brace")),
            }
            cursor.skip_blanks();
            place += 1;
        }
        cursor.at += 1;
        columns.close_row(given)
    }

    /// The key that begins here, and the colon behind it: the column it names.
    #[inline]
    fn key(
        &mut self,
        cursor: &mut Cursor<'_>,
        columns: &mut Object,
        place: usize,
    ) -> std::result::Result<Option<usize>, Box<Reason>> {
        if let Some((written, column)) = columns.seen(place)
            && cursor.bytes[cursor.at..].starts_with(written)
        {
            cursor.at += written.len();
            cursor.expect(b':', "a colon")?;
            return Ok(column);
        }
        if cursor.peek() != b'"' {
            return Err(cursor.unexpected("a field's name"));
        }
        let start = cursor.at;
        let name = cursor.text(&mut self.scratch)?;
        let written = &cursor.bytes[start..cursor.at];
        let column = columns.find(place, name.as_bytes(), written);
        cursor.expect(b':', "a colon")?;
        Ok(column)
    }

    /// The value that begins here, appended to `column`.
    #[inline]
    fn value(&mut self, cursor: &mut Cursor<'_>, column: &mut Column) -> Taken {
        match cursor.peek() {
            b'"' => {
                let text = cursor.text(&mut self.scratch).map_err(|reason| reason.inside(column.name()))?;
                match column.values {
                    Values::Bool(_) => Err(column.wants(&format!("the text {text:?}"))),
                    _ => column.append_text(text),
                }
            }
            b'-' | b'0'..=b'9' => match cursor.small_integer() {
                Some(value) => column.append_int(value),
                None => column.append_number(cursor.number()?),
            },
            b'n' => cursor.word("null").and_then(|()| column.append_null("found null")),
            b't' => cursor.word("true").and_then(|()| column.append_bool(true)),
            b'f' => cursor.word("false").and_then(|()| column.append_bool(false)),
            b'{' | b'[' => self.nested(cursor, column),
            _ => Err(cursor.unexpected("a value")),
        }
    }

    fn nested(&mut self, cursor: &mut Cursor<'_>, column: &mut Column) -> Taken {
        let inside = |column: &Column, reason: Box<Reason>| reason.inside(column.name());
        let taken = match (&mut column.values, cursor.peek()) {
            (Values::Struct(object), b'{') => self.object(cursor, object),
            (Values::List { element, .. }, b'[') => self.list(cursor, element),
            (Values::Map { keys, values, .. }, b'{') => self.map(cursor, keys, values),
            _ => return Err(column.wants(&cursor.value_text())),
        };
        taken.map_err(|reason| inside(column, reason))?;
        column.close();
        Ok(())
    }

    fn list(&mut self, cursor: &mut Cursor<'_>, element: &mut Column) -> Taken {
        cursor.expect(b'[', "a list")?;
        if cursor.peek() == b']' {
            cursor.at += 1;
            return Ok(());
        }
        loop {
            self.value(cursor, element)?;
            cursor.skip_blanks();
            match cursor.peek() {
                b',' => cursor.expect(b',', "a comma")?,
                b']' => break,
                _ => return Err(cursor.unexpected("a comma or a closing bracket")),
            }
        }
        cursor.at += 1;
        Ok(())
    }

    fn map(&mut self, cursor: &mut Cursor<'_>, keys: &mut Column, values: &mut Column) -> Taken {
        cursor.expect(b'{', "a map")?;
        if cursor.peek() == b'}' {
            cursor.at += 1;
            return Ok(());
        }
        loop {
            if cursor.peek() != b'"' {
                return Err(cursor.unexpected("a key"));
            }
            keys.append_text(cursor.text(&mut self.scratch)?)?;
            cursor.expect(b':', "a colon")?;
            self.value(cursor, values)?;
            cursor.skip_blanks();
            match cursor.peek() {
                b',' => cursor.expect(b',', "a comma")?,
                b'}' => break,
                _ => return Err(cursor.unexpected("a comma or a closing brace")),
            }
        }
        cursor.at += 1;
        Ok(())
    }
}

fn no_object(cursor: &Cursor<'_>) -> Box<Reason> {
    match cursor.peek() {
        b'[' => Reason::form("begins a JSON array: expected one object per line"),
        _ => Reason::form("is not a JSON object: expected one object per line"),
    }
}
