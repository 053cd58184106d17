//! The screen of a terminal → an image in SVG: its text in the colours of its cells, each run of equal cells one element, so
//! that it stays small. The same screen gives the same bytes.

use std::fmt::Write;

use vt100::{Cell, Color, Screen};

/// The size of a cell, and of the letters in it.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 18.0;
const LETTERS: u32 = 14;

/// Around the screen.
const MARGIN: f64 = 14.0;

const PAPER: &str = "#0d1117";
const INK: &str = "#e6edf3";

/// The first sixteen colours of a terminal.
const PALETTE: [&str; 16] = [
    "#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4", "#6e7681", "#ffa198",
    "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#ffffff",
];

/// How a cell looks.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Look {
    ink: String,
    /// `None`: that of the screen.
    paper: Option<String>,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
}

/// Cells beside each other that look the same.
struct Run {
    column: u16,
    columns: u16,
    look: Look,
    text: String,
}

/// The image of a screen, without the empty rows at its end.
pub fn svg(screen: &Screen) -> String {
    let (rows, columns) = (screen.size().0.get(), screen.size().1.get());
    let runs: Vec<Vec<Run>> = (0..rows).map(|row| runs(screen, row, columns)).collect();
    let filled = runs.iter().rposition(|runs| !runs.is_empty()).map_or(1, |last| last + 1);
    let width = f64::from(columns) * WIDTH + 2.0 * MARGIN;
    let height = filled as f64 * HEIGHT + 2.0 * MARGIN;
    let mut looks: Vec<Look> = Vec::new();
    let mut body = String::new();
    for (row, runs) in runs.into_iter().take(filled).enumerate() {
        let top = MARGIN + row as f64 * HEIGHT;
        for run in runs {
            let (left, wide) = (MARGIN + f64::from(run.column) * WIDTH, f64::from(run.columns) * WIDTH);
            if let Some(paper) = &run.look.paper {
                _ = writeln!(
                    body,
                    r#"<rect x="{left:.1}" y="{top}" width="{wide:.1}" height="{HEIGHT}" fill="{paper}"/>"#
                );
            }
            if run.text.trim().is_empty() {
                continue;
            }
            let known = looks.iter().position(|look| *look == run.look);
            let class = known.unwrap_or_else(|| {
                looks.push(run.look.clone());
                looks.len() - 1
            });
            let base = top + HEIGHT * 0.75;
            let text = escaped(&run.text);
            // Whatever letters a reader has, each run is as wide as its cells.
            _ = writeln!(
                body,
                r#"<text class="s{class}" x="{left:.1}" y="{base}" textLength="{wide:.1}" lengthAdjust="spacingAndGlyphs">{text}</text>"#
            );
        }
    }
    let mut style = String::new();
    for (class, look) in looks.iter().enumerate() {
        _ = write!(style, ".s{class}{{{}}}", css(look));
    }
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}">
<style>text{{font:{LETTERS}px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}}{style}</style>
<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>
{body}</svg>
"#
    )
}

/// The runs of a row. Where two blanks follow each other, one ends.
fn runs(screen: &Screen, row: u16, columns: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    // Of the run that may go on: where it ends.
    let mut end = None;
    for column in 0..columns {
        let Some(cell) = screen.cell(row, column).filter(|cell| !cell.is_wide_continuation()) else { continue };
        let (look, blank) = (look(cell), cell.contents().trim().is_empty());
        let wide = if cell.is_wide() { 2 } else { 1 };
        let next = screen.cell(row, column + 1).is_none_or(|next| next.contents().trim().is_empty());
        // A blank that is seen is one with paper or a line under it, or one between two words.
        let seen = !blank || look.paper.is_some() || look.underline;
        let text = if blank { " " } else { cell.contents() };
        match runs.last_mut().filter(|run| end == Some(column) && run.look == look && (seen || !next)) {
            Some(run) => {
                run.text.push_str(text);
                run.columns += wide;
            }
            None if seen => runs.push(Run { column, columns: wide, look, text: text.to_string() }),
            None => {
                end = None;
                continue;
            }
        }
        end = Some(column + wide);
    }
    for run in &mut runs {
        // Blanks at its end are seen by their paper or line alone.
        while run.text.ends_with(' ') && run.look.paper.is_none() && !run.look.underline {
            run.text.pop();
            run.columns -= 1;
        }
    }
    runs
}

fn look(cell: &Cell) -> Look {
    let (ink, paper) = (color(cell.fgcolor()), color(cell.bgcolor()));
    let (ink, paper) = match cell.inverse() {
        true => (paper.unwrap_or_else(|| PAPER.into()), Some(ink.unwrap_or_else(|| INK.into()))),
        false => (ink.unwrap_or_else(|| INK.into()), paper),
    };
    Look { ink, paper, bold: cell.bold(), dim: cell.dim(), italic: cell.italic(), underline: cell.underline() }
}

/// A colour; `None`: the terminal's own.
fn color(color: Color) -> Option<String> {
    let rgb = |red: u8, green: u8, blue: u8| format!("#{red:02x}{green:02x}{blue:02x}");
    match color {
        Color::Default => None,
        Color::Rgb(red, green, blue) => Some(rgb(red, green, blue)),
        Color::Idx(at) => Some(match at {
            0..16 => PALETTE[usize::from(at)].to_string(),
            // A cube of six steps a colour, then greys.
            16..232 => {
                let step = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
                let at = at - 16;
                rgb(step(at / 36), step(at / 6 % 6), step(at % 6))
            }
            232.. => {
                let grey = 8 + 10 * (at - 232);
                rgb(grey, grey, grey)
            }
        }),
    }
}

fn css(look: &Look) -> String {
    let mut css = format!("fill:{}", look.ink);
    for (is, rule) in [
        (look.bold, ";font-weight:bold"),
        (look.dim, ";opacity:.6"),
        (look.italic, ";font-style:italic"),
        (look.underline, ";text-decoration:underline"),
    ] {
        if is {
            css += rule;
        }
    }
    css
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use super::*;

    fn drawn(bytes: &str) -> String {
        let size = |n| NonZeroU16::new(n).unwrap();
        let mut parser = vt100::Parser::new(size(3), size(20), 0);
        parser.process(bytes.as_bytes());
        svg(parser.screen())
    }

    fn elements(bytes: &str) -> Vec<String> {
        let svg = drawn(bytes);
        let body = svg.split("fill=\"#0d1117\"/>\n").nth(1).unwrap().trim_end();
        body.trim_end_matches("</svg>").lines().map(str::to_string).collect()
    }

    #[test]
    fn equal_cells_are_one_element_with_the_width_of_its_cells() {
        let svg = drawn("a <b\x1b[1;32mc");
        assert!(
            svg.starts_with(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" xml:space=\"preserve\" width=\"196\" height=\"46\""
            ),
            "{svg}"
        );
        assert!(svg.contains(".s0{fill:#e6edf3}.s1{fill:#3fb950;font-weight:bold}"), "{svg}");
        let expected = [
            r#"<text class="s0" x="14.0" y="27.5" textLength="33.6" lengthAdjust="spacingAndGlyphs">a &lt;b</text>"#,
            r#"<text class="s1" x="47.6" y="27.5" textLength="8.4" lengthAdjust="spacingAndGlyphs">c</text>"#,
        ];
        assert_eq!(elements("a <b\x1b[1;32mc"), expected);
        assert_eq!(svg, drawn("a <b\x1b[1;32mc"));
    }

    #[test]
    fn blanks_wide_letters_and_paper_keep_their_places() {
        let lines = elements("a   b\r\n\x1b[7m日 x \x1b[0m");
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert!(lines[1].contains(r#"x="47.6""#) && lines[1].contains(">b<"), "{lines:?}");
        assert_eq!(lines[2], r##"<rect x="14.0" y="32" width="42.0" height="18" fill="#e6edf3"/>"##);
        assert!(lines[3].contains(r#"textLength="42.0""#) && lines[3].contains(">日 x <"), "{lines:?}");
    }

    #[test]
    fn all_colours_of_a_terminal_are_known() {
        assert_eq!(color(Color::Idx(16)).unwrap(), "#000000");
        assert_eq!(color(Color::Idx(231)).unwrap(), "#ffffff");
        assert_eq!(color(Color::Idx(255)).unwrap(), "#eeeeee");
        assert_eq!(color(Color::Rgb(1, 2, 255)).unwrap(), "#0102ff");
        assert_eq!(color(Color::Idx(9)).unwrap(), "#ffa198");
    }
}
