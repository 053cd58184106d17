//! How answers are written: the print options, each with its name, its values and what it does. `\pset`, `-P`, the
//! flags and the dot commands all set them here.

use super::pager::Paging;
use super::terminal::Screen;
use super::variables::truth;
use crate::display::{Format, Style};
use crate::error::{Code, Error, Result, closest};

/// Rows of a table that a terminal shows.
pub(super) const MOST_ROWS: usize = 40;

/// When a table is written one column a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expanded {
    On,
    Off,
    /// When it is wider than the terminal.
    Auto,
}

/// How many rows of a table are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MostRows {
    /// 40 on a terminal, all elsewhere.
    Auto,
    All,
    Count(usize),
}

/// Where colour is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colour {
    Never,
    /// On terminals.
    Auto,
    Always,
}

/// How answers are written.
#[derive(Debug, Clone)]
pub(super) struct PrintSettings {
    /// `None`: a table on a terminal, ascii elsewhere.
    pub(super) format: Option<Format>,
    pub(super) expanded: Expanded,
    pub(super) null: Option<String>,
    pub(super) header: bool,
    /// Neither header nor footer.
    pub(super) rows_only: bool,
    pub(super) separator: Option<String>,
    pub(super) record_separator: Option<String>,
    pub(super) title: Option<String>,
    pub(super) widths: Vec<usize>,
    pub(super) most_rows: MostRows,
    pub(super) pager: Paging,
    /// How many rows there were.
    pub(super) footer: bool,
    pub(super) timing: bool,
    /// Tags and footers are shown: somebody is looking.
    pub(super) attended: bool,
    /// Nothing but results.
    pub(super) quiet: bool,
    pub(super) colour: Colour,
    /// A terminal is written to as a file is.
    pub(super) plain: bool,
    /// Nothing is left out or cut for a terminal.
    pub(super) whole: bool,
    /// WATCH and START QUERY open a live view.
    pub(super) live: bool,
}

impl Default for PrintSettings {
    fn default() -> Self {
        PrintSettings {
            format: None,
            expanded: Expanded::Off,
            null: None,
            header: true,
            rows_only: false,
            separator: None,
            record_separator: None,
            title: None,
            widths: Vec::new(),
            most_rows: MostRows::Auto,
            pager: Paging::On,
            footer: true,
            timing: false,
            attended: false,
            quiet: false,
            colour: Colour::Never,
            plain: false,
            whole: false,
            live: true,
        }
    }
}

impl PrintSettings {
    /// The format and its style, for a terminal or for what is none.
    pub(super) fn look(&self, screen: Option<Screen>) -> (Format, Style) {
        let screen = screen.filter(|_| !self.plain);
        let table = screen.is_some_and(|screen| screen.unicode);
        let mut format = self.format.unwrap_or(if table { Format::Table } else { Format::Ascii });
        if self.expanded == Expanded::On && matches!(format, Format::Table | Format::Ascii | Format::Column) {
            format = Format::Vertical;
        }
        let style = Style {
            null: self.null.clone(),
            header: self.header && !self.rows_only,
            separator: self.separator.clone(),
            record_separator: self.record_separator.clone(),
            title: self.title.clone().filter(|_| !self.rows_only),
            widths: self.widths.clone(),
            rows: match self.most_rows {
                _ if self.whole => None,
                MostRows::Auto => screen.map(|_| MOST_ROWS),
                MostRows::All => None,
                MostRows::Count(rows) => Some(rows),
            },
            columns: screen.and_then(|screen| screen.columns).filter(|_| !self.whole),
            vertical_when_wide: self.expanded == Expanded::Auto,
            paint: self.paints(screen.is_some()),
        };
        (format, style)
    }

    /// Whether what goes to a terminal, or to what is none, has colours.
    pub(super) fn paints(&self, terminal: bool) -> bool {
        self.colour == Colour::Always || self.colour == Colour::Auto && terminal && !self.plain
    }

    /// Whether tags, footers and times are shown.
    pub(super) fn has_footers(&self) -> bool {
        self.attended && !self.quiet && !self.rows_only
    }

    /// The format of console sinks: the one that was asked for, or ascii.
    pub(super) fn console_format(&self) -> Format {
        self.format.unwrap_or(Format::Ascii)
    }

    /// Sets a print option, or turns it over; answers what is to be said of it.
    ///
    /// # Errors
    /// There is no such option, or it has no such value.
    pub(super) fn set(&mut self, name: &str, value: Option<&str>) -> Result<String> {
        let Some(option) = OPTIONS.iter().find(|option| option.name == name) else {
            return Err(unknown(name));
        };
        (option.set)(self, value).map_err(|error| match error.help_text().is_some() {
            true => error,
            false => error.help(format!("{name} takes {}", option.takes)),
        })?;
        Ok(format!("{name} is {}", (option.show)(self)))
    }

    /// What `\pset` lists.
    pub(super) fn list(&self) -> String {
        let width = OPTIONS.iter().map(|option| option.name.len()).max().unwrap_or(0);
        let line = |option: &PrintOption| format!("{:width$} {}", option.name, (option.show)(self));
        OPTIONS.iter().map(|option| line(option).trim_end().to_string() + "\n").collect()
    }
}

/// A print option.
pub(super) struct PrintOption {
    pub(super) name: &'static str,
    pub(super) takes: &'static str,
    pub(super) help: &'static str,
    show: fn(&PrintSettings) -> String,
    set: fn(&mut PrintSettings, Option<&str>) -> Result<()>,
}

/// Every print option.
pub(super) const OPTIONS: [PrintOption; 15] = [
    PrintOption {
        name: "format",
        takes: "FORMAT|auto",
        help: "how results are written; auto: a table on a terminal, ascii elsewhere",
        show: |s| s.format.map_or("auto", Format::name).to_string(),
        set: |s, value| {
            if let Some(value) = value {
                s.format = if matches!(value, "auto" | "automatic") { None } else { Some(value.parse()?) };
            }
            Ok(())
        },
    },
    PrintOption {
        name: "expanded",
        takes: "on|off|auto",
        help: "one column a line, in place of a table; auto: where it is wider than the terminal",
        show: |s| match s.expanded {
            Expanded::On => "on".to_string(),
            Expanded::Off => "off".to_string(),
            Expanded::Auto => "auto".to_string(),
        },
        set: |s, value| {
            s.expanded = match value {
                Some("auto") => Expanded::Auto,
                value if turned(value, s.expanded == Expanded::On)? => Expanded::On,
                _ => Expanded::Off,
            };
            Ok(())
        },
    },
    PrintOption {
        name: "null",
        takes: "TEXT",
        help: "what NULL is shown as; without a text, as the format has it",
        show: |s| shown(s.null.as_deref()),
        set: |s, value| {
            s.null = value.map(str::to_string);
            Ok(())
        },
    },
    PrintOption {
        name: "header",
        takes: "on|off",
        help: "the names of columns",
        show: |s| on_off(s.header),
        set: |s, value| turn(&mut s.header, value),
    },
    PrintOption {
        name: "tuples_only",
        takes: "on|off",
        help: "rows alone: neither header nor title nor footer",
        show: |s| on_off(s.rows_only),
        set: |s, value| turn(&mut s.rows_only, value),
    },
    PrintOption {
        name: "fieldsep",
        takes: "TEXT",
        help: "between the fields of csv and list",
        show: |s| shown(s.separator.as_deref()),
        set: |s, value| {
            s.separator = value.map(str::to_string);
            Ok(())
        },
    },
    PrintOption {
        name: "recordsep",
        takes: "TEXT",
        help: "behind the records of csv and list",
        show: |s| shown(s.record_separator.as_deref()),
        set: |s, value| {
            s.record_separator = value.map(str::to_string);
            Ok(())
        },
    },
    PrintOption {
        name: "fieldsep_zero",
        takes: "nothing",
        help: "fieldsep is a zero byte",
        show: |s| on_off(s.separator.as_deref() == Some("\0")),
        set: |s, value| {
            s.separator = nothing(value).map(|()| Some("\0".to_string()))?;
            Ok(())
        },
    },
    PrintOption {
        name: "recordsep_zero",
        takes: "nothing",
        help: "recordsep is a zero byte",
        show: |s| on_off(s.record_separator.as_deref() == Some("\0")),
        set: |s, value| {
            s.record_separator = nothing(value).map(|()| Some("\0".to_string()))?;
            Ok(())
        },
    },
    PrintOption {
        name: "title",
        takes: "TEXT",
        help: "above a table",
        show: |s| shown(s.title.as_deref()),
        set: |s, value| {
            s.title = value.map(str::to_string);
            Ok(())
        },
    },
    PrintOption {
        name: "width",
        takes: "N …",
        help: "columns of a table are at least so wide, from the first on",
        show: |s| s.widths.iter().map(usize::to_string).collect::<Vec<_>>().join(" "),
        set: |s, value| {
            let number = |word: &str| word.parse().map_err(|_| Error::invalid(format!("{word:?} is no width")));
            s.widths = value.unwrap_or_default().split_whitespace().map(number).collect::<Result<_>>()?;
            Ok(())
        },
    },
    PrintOption {
        name: "maxrows",
        takes: "N|inf|auto",
        help: "how many rows of a table are shown, the first and the last; auto: 40 on a terminal",
        show: |s| match s.most_rows {
            MostRows::Auto => "auto".to_string(),
            MostRows::All => "inf".to_string(),
            MostRows::Count(rows) => rows.to_string(),
        },
        set: |s, value| {
            s.most_rows = match value {
                None | Some("auto") => MostRows::Auto,
                Some("inf" | "all") => MostRows::All,
                Some(number) => MostRows::Count(
                    number.parse().map_err(|_| Error::invalid(format!("{number:?} is no number of rows")))?,
                ),
            };
            Ok(())
        },
    },
    PrintOption {
        name: "footer",
        takes: "on|off",
        help: "how many rows there were",
        show: |s| on_off(s.footer),
        set: |s, value| turn(&mut s.footer, value),
    },
    PrintOption {
        name: "pager",
        takes: "on|off|always",
        help: "what is longer than the screen goes through LEVADA_PAGER or PAGER",
        show: |s| s.pager.name().to_string(),
        set: |s, value| {
            s.pager = match value {
                Some("always") => Paging::Always,
                value if turned(value, s.pager != Paging::Off)? => Paging::On,
                _ => Paging::Off,
            };
            Ok(())
        },
    },
    PrintOption {
        name: "live",
        takes: "on|off",
        help: "whether WATCH and START QUERY open a live view, at the prompt of a terminal",
        show: |s| on_off(s.live),
        set: |s, value| turn(&mut s.live, value),
    },
];

fn unknown(name: &str) -> Error {
    // What psql has beside these.
    const LATER: [&str; 9] = [
        "border",
        "columns",
        "csv_fieldsep",
        "linestyle",
        "numericlocale",
        "pager_min_lines",
        "tableattr",
        "unicode_border_linestyle",
        "xheader_width",
    ];
    if LATER.contains(&name) {
        return Error::not_yet(format!("the print option {name}")).help("\\pset lists what there is");
    }
    let error = Error::invalid(format!("there is no print option {name}")).coded(Code::UnknownCommand);
    match closest(name, OPTIONS.iter().map(|option| option.name)) {
        Some(known) => error.help(format!("did you mean {known}? \\pset lists them all")),
        None => error.help("\\pset lists them all"),
    }
}

/// On or off as it was written, or the other way round.
pub(super) fn turned(value: Option<&str>, now: bool) -> Result<bool> {
    let Some(value) = value else { return Ok(!now) };
    truth(value).ok_or_else(|| Error::invalid(format!("{value:?} is neither on nor off")))
}

fn turn(what: &mut bool, value: Option<&str>) -> Result<()> {
    *what = turned(value, *what)?;
    Ok(())
}

fn nothing(value: Option<&str>) -> Result<()> {
    value.map_or(Ok(()), |value| Err(Error::invalid(format!("{value:?} is one word too many"))))
}

pub(super) fn on_off(on: bool) -> String {
    if on { "on" } else { "off" }.to_string()
}

fn shown(text: Option<&str>) -> String {
    text.map_or_else(|| "auto".to_string(), |text| format!("{text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, value: Option<&str>) -> Result<String> {
        PrintSettings::default().set(name, value)
    }

    #[test]
    fn options_are_set_turned_over_and_told() {
        for (name, value, told) in [
            ("format", Some("jsonl"), "format is jsonlines"),
            ("format", None, "format is auto"),
            ("expanded", None, "expanded is on"),
            ("expanded", Some("auto"), "expanded is auto"),
            ("null", Some("-"), "null is \"-\""),
            ("tuples_only", None, "tuples_only is on"),
            ("fieldsep_zero", None, "fieldsep_zero is on"),
            ("width", Some("4 12"), "width is 4 12"),
            ("maxrows", Some("inf"), "maxrows is inf"),
            ("pager", None, "pager is off"),
        ] {
            assert_eq!(set(name, value).unwrap(), told, "{name}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (name, value, message, help) in [
            ("header", Some("maybe"), "\"maybe\" is neither on nor off", "header takes on|off"),
            ("maxrows", Some("-1"), "\"-1\" is no number of rows", "maxrows takes N|inf|auto"),
            ("width", Some("4 x"), "\"x\" is no width", "width takes N …"),
            ("fromat", None, "there is no print option fromat", "did you mean format? \\pset lists them all"),
            ("border", Some("2"), "not supported yet: the print option border", "\\pset lists what there is"),
        ] {
            let error = set(name, value).unwrap_err();
            assert_eq!((error.to_string().as_str(), error.help_text()), (message, Some(help)));
        }
    }

    #[test]
    fn only_a_terminal_cuts_and_colours() {
        let settings = PrintSettings { colour: Colour::Auto, ..PrintSettings::default() };
        let screen = Screen { columns: Some(80), rows: Some(24), unicode: true };
        let (format, style) = settings.look(Some(screen));
        assert_eq!((format, style.rows, style.columns, style.paint), (Format::Table, Some(40), Some(80), true));
        let (format, style) = settings.look(None);
        assert_eq!((format, style), (Format::Ascii, Style::default()));
        let plain = PrintSettings { plain: true, ..settings.clone() };
        assert_eq!(plain.look(Some(screen)), (Format::Ascii, Style::default()));
        let (format, _) = settings.look(Some(Screen { unicode: false, ..screen }));
        assert_eq!(format, Format::Ascii);
        let always = PrintSettings { colour: Colour::Always, ..settings };
        assert!(always.look(None).1.paint);
    }
}
