//! What is put into streams.

use super::answer::Failure;
use super::matrix::value_rows;
use super::record::Feed;
use super::run::FileRun;
use super::world::quoted;
use crate::error::{Error, Location, closest};
use crate::parser::{ColumnKind, CreateStream, Splitter, Statement, parse_one};

impl FileRun<'_> {
    /// Feeds a stream.
    ///
    /// # Errors
    /// It takes no such rows.
    pub(super) fn feed(&self, stream: &str, what: &Feed) -> Result<(), Failure> {
        let sql = match what {
            Feed::Close => format!("CLOSE STREAM {}", quoted(stream)),
            Feed::Values(rows) => {
                let insert = format!("INSERT INTO {} VALUES {rows}", quoted(stream));
                refuse_more(stream, rows, &insert)?;
                // A stream of files has no place for a row; it is given a file.
                let as_lines = |failure: Failure| match failure.text.contains("only a memory stream") {
                    true => Failure {
                        text: format!(
                            "{}\nhelp: feed {stream} as json, or as csv, gives a stream of files one more",
                            failure.text
                        ),
                        ..failure
                    },
                    false => failure,
                };
                return self.world.execute(&insert).map(drop).map_err(as_lines);
            }
            Feed::Lines { format, lines } => return self.feed_lines(stream, format, lines),
        };
        self.world.execute(&sql).map(drop)
    }

    /// Rows in a format: decoded by a stream over a file of them, with the columns of the stream that they are for.
    fn feed_lines(&self, stream: &str, format: &str, lines: &[String]) -> Result<(), Failure> {
        let shown = parse_one(&format!("SHOW CREATE STREAM {}", quoted(stream)), Location { line: 1, column: 1 })?;
        let crate::session::Answer::Text(sql) = self.world.session().execute(&shown)? else {
            return Err(Error::internal("SHOW CREATE STREAM answered no text").into());
        };
        let Statement::CreateStream(mut create) = parse_one(&sql, Location { line: 1, column: 1 })?.statement else {
            return Err(Error::internal("SHOW CREATE STREAM is no CREATE STREAM").into());
        };
        let number = self.world.next_file();
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let path = create.options.as_ref().and_then(|options| options.text("path")).map(str::to_string);
        let written = create.options.as_ref().and_then(|options| options.text("format")).unwrap_or_default();
        // Of a stream of text each line is a row, whatever it holds.
        if path.is_some() && !written.eq_ignore_ascii_case(format) && !written.eq_ignore_ascii_case("text") {
            let help = match written.to_ascii_lowercase().as_str() {
                own @ ("json" | "csv") => format!("feed {stream} as {own}"),
                _ => "write the file with system".to_string(),
            };
            let message = format!("{stream} is a stream of {written} files, which would not read one of {format}");
            return Err(Failure::new(format!("{message}\nhelp: {help}")));
        }
        let folder = match &path {
            // A stream of files is given one more.
            Some(path) => std::path::PathBuf::from(path.trim_start_matches("file://")),
            None => self.world.folder().join("feeds").join(number.to_string()),
        };
        let file = folder.join(format!("feed-{number:06}.{format}"));
        let io = |e: std::io::Error| Failure::from(Error::io(format!("writing {}", file.display()), &e));
        std::fs::create_dir_all(&folder).map_err(io)?;
        std::fs::write(&file, text).map_err(io)?;
        if let Some(clock) = self.world.clock.map(|_| self.world.session().now()) {
            // Files are read in the order of their times: the test's clock, and one after the other.
            let (epoch, since) = (std::time::UNIX_EPOCH, std::time::Duration::from_millis(clock.unsigned_abs()));
            let now = if clock < 0 { epoch - since } else { epoch + since };
            let time = now + std::time::Duration::from_micros(number);
            std::fs::File::options().append(true).open(&file).and_then(|f| f.set_modified(time)).map_err(io)?;
        }
        if path.is_some() {
            return Ok(());
        }
        let reader = format!("levada_feed_{number}");
        create.name.value.clone_from(&reader);
        create.options = None;
        create.watermark = None;
        // Computed columns come by themselves.
        if let Some(columns) = &mut create.columns {
            columns.retain(|column| !matches!(column.kind, ColumnKind::Computed(_)));
        }
        if format == "json" {
            refuse_unknown(&create, lines)?;
        }
        let columns = Statement::CreateStream(create).to_string();
        let with = format!(" WITH (connector = 'file', format = '{format}', path = '{}')", file.display());
        self.world.execute(&(columns + &with))?;
        let inserted = self.world.execute(&format!("INSERT INTO {} SELECT * FROM {reader}", quoted(stream)));
        self.world.execute(&format!("DROP STREAM {reader}"))?;
        // The reader is nothing that the test knows of.
        inserted.map(drop).map_err(|failure| Failure { text: failure.text.replace(&reader, stream), ..failure })
    }
}

/// Behind the rows no other statement may stand, and nothing else of this one.
fn refuse_more(stream: &str, rows: &str, insert: &str) -> Result<(), Failure> {
    let mut texts = Splitter::new(insert);
    texts.next_text();
    match texts.next_text() {
        // What can't be read is for the statement itself to say.
        None if parse_one(insert, Location { line: 1, column: 1 }).is_err() => Ok(()),
        None => value_rows(stream, rows).map(drop),
        Some(more) => {
            let more = more.map(|more| more.text.lines().next().unwrap_or_default().to_string()).unwrap_or_default();
            Err(Failure::new(format!(
                "behind the rows stands something else: {more}\nhelp: write a record of its own for it"
            )))
        }
    }
}

/// A field that no column takes would be passed over without a word.
fn refuse_unknown(create: &CreateStream, lines: &[String]) -> Result<(), Failure> {
    let Some(columns) = &create.columns else { return Ok(()) };
    let names: Vec<&str> = columns.iter().map(|column| column.name.value.as_str()).collect();
    for line in lines {
        // What is no object is for the decoder to refuse.
        let Ok(serde_json::Value::Object(fields)) = serde_json::from_str(line) else { continue };
        if let Some(field) = fields.keys().find(|field| !names.contains(&field.as_str())) {
            let help = match closest(field, names.iter().copied()) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("its columns are {}", names.join(", ")),
            };
            return Err(Failure::new(format!("no column takes the field {field:?} of {line}\nhelp: {help}")));
        }
    }
    Ok(())
}
