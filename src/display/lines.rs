//! Numbers as a line over their rows, in a frame of so many lines.

use unicode_width::UnicodeWidthStr;

/// The dots of a Braille character, by row and column.
const DOTS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

/// A line through the numbers of rows, a label and a number each, that stand side by side in so many columns and lines. At
/// the left are the largest and the smallest number as they are written, below it the first and the last label. What is no
/// number is a gap.
pub fn line_chart(rows: &[(String, String)], columns: usize, height: usize, unicode: bool) -> Vec<String> {
    let number = |text: &String| text.parse().ok().filter(|n: &f64| n.is_finite());
    let numbers: Vec<Option<f64>> = rows.iter().map(|(_, text)| number(text)).collect();
    let known = || numbers.iter().enumerate().filter_map(|(at, number)| number.map(|number| (at, number)));
    let (Some(least), Some(most)) =
        (known().min_by(|a, b| a.1.total_cmp(&b.1)), known().max_by(|a, b| a.1.total_cmp(&b.1)))
    else {
        return Vec::new();
    };
    let text = |at: usize| rows[at].1.as_str();
    let gutter = text(least.0).width().max(text(most.0).width());
    // Numbers that are all equal need no height.
    let height = if most.1 > least.1 { height.max(2) } else { 2 };
    let mut canvas = Canvas::new(columns.saturating_sub(gutter + 2).max(1), height, unicode);
    canvas.draw(&numbers, least.1, most.1);
    let [tick, wall] = if unicode { ["┤", "│"] } else { ["+", "|"] };
    let mut lines = Vec::with_capacity(height + 1);
    for row in 0..height {
        let named = match row {
            0 if most.1 > least.1 => Some(text(most.0)),
            _ if row + 1 == height => Some(text(least.0)),
            _ => None,
        };
        let name = named.unwrap_or_default();
        let gap = " ".repeat(gutter - name.width());
        let line = format!("{gap}{name} {}{}", if named.is_some() { tick } else { wall }, canvas.line(row));
        lines.push(line.trim_end().to_string());
    }
    let (first, last) = (rows.first().map_or("", |row| &row.0), rows.last().map_or("", |row| &row.0));
    let between = canvas.width.saturating_sub(first.width() + last.width());
    let last = if rows.len() > 1 && between > 0 { " ".repeat(between) + last } else { String::new() };
    lines.push(format!("{}{first}{last}", " ".repeat(gutter + 2)).trim_end().to_string());
    lines
}

/// Dots, eight in a character, or one where there is only ASCII.
struct Canvas {
    /// In characters.
    width: usize,
    /// Dots of a character, across and down.
    fine: (usize, usize),
    /// In dots.
    size: (usize, usize),
    cells: Vec<u8>,
}

impl Canvas {
    fn new(width: usize, height: usize, unicode: bool) -> Self {
        let fine = if unicode { (2, 4) } else { (1, 1) };
        Canvas { width, fine, size: (width * fine.0, height * fine.1), cells: vec![0; width * height] }
    }

    fn draw(&mut self, numbers: &[Option<f64>], least: f64, most: f64) {
        let (right, bottom) = ((self.size.0 - 1) as f64, (self.size.1 - 1) as f64);
        let steps = numbers.len().saturating_sub(1).max(1) as f64;
        // Halves: the whole span may be larger than a float holds.
        let span = most / 2.0 - least / 2.0;
        let mut before = None;
        for (at, number) in numbers.iter().enumerate() {
            let Some(number) = number else {
                before = None;
                continue;
            };
            let part = if span > 0.0 { (number / 2.0 - least / 2.0) / span } else { 0.0 };
            let dot = ((at as f64 / steps * right).round() as usize, ((1.0 - part) * bottom).round() as usize);
            self.stroke(before.unwrap_or(dot), dot);
            before = Some(dot);
        }
    }

    /// A straight line of dots.
    fn stroke(&mut self, from: (usize, usize), to: (usize, usize)) {
        let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1));
        let between = |a: usize, b: usize, step: usize| {
            let part = if steps > 0 { step as f64 / steps as f64 } else { 0.0 };
            (a as f64 + (b as f64 - a as f64) * part).round() as usize
        };
        for step in 0..=steps {
            self.set(between(from.0, to.0, step), between(from.1, to.1, step));
        }
    }

    fn set(&mut self, x: usize, y: usize) {
        let cell = y / self.fine.1 * self.width + x / self.fine.0;
        if let Some(cell) = self.cells.get_mut(cell) {
            *cell |= DOTS[y % self.fine.1][x % self.fine.0];
        }
    }

    fn line(&self, row: usize) -> String {
        let cells = self.cells.iter().skip(row * self.width).take(self.width);
        let sign = |cell: &u8| match (*cell, self.fine) {
            (0, _) => ' ',
            (_, (1, 1)) => '*',
            (dots, _) => char::from_u32(0x2800 + u32::from(dots)).unwrap_or('*'),
        };
        cells.map(sign).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(numbers: &[&str], columns: usize, height: usize, unicode: bool) -> String {
        let row = |(at, text): (usize, &&str)| (format!("t{}", at + 1), text.to_string());
        let rows: Vec<_> = numbers.iter().enumerate().map(row).collect();
        line_chart(&rows, columns, height, unicode).into_iter().map(|line| line + "\n").collect()
    }

    #[test]
    fn a_line_goes_from_number_to_number() {
        let expected = " \
30 +         *
   |       **
   |  *****
 0 +**
    t1      t4
";
        assert_eq!(chart(&["0", "10", "15", "30"], 14, 4, false), expected.trim_start_matches(' '));
        let expected = "\
2 ┤ ⡰⢣
1 ┤⡰⠁ ⢣
   t1
";
        assert_eq!(chart(&["1", "2", "1"], 7, 2, true), expected);
    }

    #[test]
    fn what_is_no_number_is_a_gap() {
        assert_eq!(chart(&["5", "NULL", "5"], 8, 2, false), "  |\n5 +*   *\n   t1 t3\n");
        assert_eq!(chart(&["NULL", "NaN"], 20, 5, true), "");
        assert_eq!(chart(&[], 20, 5, true), "");
    }

    #[test]
    fn no_size_and_no_number_is_too_much() {
        for (columns, height) in [(0, 0), (1, 1), (3, 9), (200, 1)] {
            for unicode in [true, false] {
                let lines = chart(&["1e308", "-1e308", "0", "0", "7"], columns, height, unicode);
                assert_eq!(lines.lines().count(), height.max(2) + 1);
            }
        }
    }
}
