//! Numbers as horizontal bars, a line each.

use unicode_width::UnicodeWidthStr;

/// A bar's last column, in eighths.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// Lines of a label, a bar and the number as it is written, in so many columns. Bars begin at zero: those of numbers below
/// it go to the left. What is no number has no bar. Labels are to be shorter than half the columns.
pub fn bar_chart(rows: &[(String, String)], columns: usize, unicode: bool) -> Vec<String> {
    let numbers: Vec<Option<f64>> =
        rows.iter().map(|(_, text)| text.parse().ok().filter(|n: &f64| n.is_finite())).collect();
    let widest = |of: &dyn Fn(&(String, String)) -> usize| rows.iter().map(of).max().unwrap_or(0);
    let (label, value) = (widest(&|row| row.0.width()), widest(&|row| row.1.width()));
    let room = columns.saturating_sub(label + value + 2);
    let known = || numbers.iter().flatten().copied();
    let (least, most) = (known().fold(0.0, f64::min), known().fold(0.0, f64::max));
    let span = most - least;
    let zero = if span > 0.0 { (room as f64 * (-least / span)).round() as usize } else { 0 };
    let line = |((name, text), number): (&(String, String), &Option<f64>)| {
        let mut line = name.clone() + &" ".repeat(label - name.width() + 1);
        let bar = match number {
            Some(number) if span > 0.0 && room > 0 => bar(number / span, room, zero, unicode),
            _ => String::new(),
        };
        line += &bar;
        line += &" ".repeat((room + 1).saturating_sub(bar.width()) + value - text.width());
        line + text
    };
    rows.iter().zip(&numbers).map(line).collect()
}

/// The columns whose values are the label of a row's bar: those that are no numbers, or else the numbers before the one
/// that is drawn.
pub fn label_columns(numbers: &[bool], drawn: usize) -> Vec<usize> {
    let others: Vec<usize> = (0..numbers.len()).filter(|at| !numbers[*at]).collect();
    if others.is_empty() { (0..drawn).collect() } else { others }
}

/// The bar of a number that is so large a part of the whole span.
fn bar(part: f64, room: usize, zero: usize, unicode: bool) -> String {
    let full = if unicode { "█" } else { "#" };
    let length = part.abs() * room as f64;
    if part < 0.0 {
        let length = (length.round() as usize).min(zero);
        return " ".repeat(zero - length) + &full.repeat(length);
    }
    if !unicode {
        return " ".repeat(zero) + &full.repeat((length.round() as usize).min(room - zero));
    }
    let eighths = ((length * 8.0).round() as usize).min((room - zero) * 8);
    " ".repeat(zero) + &full.repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(rows: &[(&str, &str)], columns: usize, unicode: bool) -> String {
        let rows: Vec<_> = rows.iter().map(|(label, text)| (label.to_string(), text.to_string())).collect();
        bar_chart(&rows, columns, unicode).into_iter().map(|line| line + "\n").collect()
    }

    #[test]
    fn the_largest_fills_the_room() {
        let rows = [("/a", "8"), ("/日本", "5"), ("", "0"), ("x", "NULL")];
        let expected = "\
/a    ████████    8
/日本 █████       5
                  0
x              NULL
";
        assert_eq!(chart(&rows, 19, true), expected);
        assert!(chart(&rows, 19, false).starts_with("/a    ########    8\n"));
        assert_eq!(chart(&[("a", "16"), ("b", "3")], 14, true), "a █████████ 16\nb █▊         3\n");
    }

    #[test]
    fn a_label_is_what_is_no_number() {
        assert_eq!(label_columns(&[true, false, true, false], 2), [1, 3]);
        assert_eq!(label_columns(&[true, true, true], 2), [0, 1]);
        assert_eq!(label_columns(&[true], 0), [0; 0]);
    }

    #[test]
    fn bars_below_zero_go_to_the_left() {
        assert_eq!(chart(&[("a", "3"), ("b", "-1")], 14, false), "a   #######  3\nb ##        -1\n");
    }

    #[test]
    fn what_has_no_room_is_no_bar() {
        for columns in 0..10 {
            assert_eq!(chart(&[("a", "1e300"), ("b", "NaN")], columns, true).lines().count(), 2);
        }
    }
}
