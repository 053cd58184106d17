//! A row of numbers as a row of small bars.

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII: [char; 8] = [' ', '.', ':', '-', '=', '+', '*', '#'];

/// One bar for each of the numbers, the largest of which is the highest. What is no number, or below zero, is a gap.
pub fn sparkline(values: &[f64], unicode: bool) -> String {
    let bars = if unicode { BARS } else { ASCII };
    let most = values.iter().copied().filter(|value| value.is_finite()).fold(0.0, f64::max);
    let bar = |value: &f64| match value {
        value if !value.is_finite() || *value < 0.0 => ' ',
        value if most > 0.0 => bars[((value * 7.0 / most).ceil() as usize).min(7)],
        _ => bars[0],
    };
    values.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_is_the_highest() {
        assert_eq!(sparkline(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], true), "▁▂▃▄▅▆▇█");
        assert_eq!(sparkline(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], false), " .:-=+*#");
        assert_eq!(sparkline(&[1e18, 1.0, 0.0], true), "█▂▁");
    }

    #[test]
    fn what_is_no_number_is_a_gap() {
        assert_eq!(sparkline(&[f64::NAN, f64::INFINITY, -1.0, 1.0], true), "   █");
        assert_eq!(sparkline(&[0.0, -0.0], true), "▁▁");
        assert_eq!(sparkline(&[], true), "");
    }
}
