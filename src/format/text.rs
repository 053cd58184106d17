//! Text: a line is a record of one column, without its line end. Blank lines are records too.

use super::{BadPlace, BatchBuilder, Block, Keep, OnBad, line_at, whole_lines, without_cr};
use crate::error::Result;

/// Decodes lines as they are.
#[derive(Debug, Default)]
pub struct TextDecoder;

impl TextDecoder {
    pub(super) fn decode(
        &mut self,
        block: Block<'_>,
        batch: &mut BatchBuilder,
        on_bad: &mut OnBad<'_>,
    ) -> Result<usize> {
        let bytes = whole_lines(block);
        let mut at = 0;
        while at < bytes.len() && !batch.is_full() {
            let (line, next) = line_at(bytes, at);
            let line = without_cr(line);
            match std::str::from_utf8(line) {
                Ok(text) => {
                    let columns = batch.columns();
                    let width = columns.width();
                    let taken = match width {
                        0 => Ok(()),
                        _ => columns.column(0).0.append_text(text),
                    };
                    // A text column takes every text.
                    if taken.and_then(|()| columns.close_row(width)).is_ok() {
                        batch.close_row(bytes, at);
                    }
                }
                Err(_) => {
                    let place = BadPlace { at, text: line, reason: "is not UTF-8 text".to_string() };
                    if on_bad(place)? == Keep::Nulls {
                        batch.null_row(bytes, at, line);
                    }
                }
            }
            at = next;
        }
        batch.block_done(bytes, at);
        Ok(at)
    }
}
