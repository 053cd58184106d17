//! A grid cut to a terminal: which columns are shown, how wide, and a text cut to its column.
//!
//! Texts are narrowed first, numbers never; when that is not enough, whole columns are left out of the middle, where
//! a column of `…` stands for them.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Stands for what is left out.
pub(super) const CUT: &str = "…";

/// A text column keeps at least so much.
const LEAST: usize = 8;

/// A column before it is fitted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Natural {
    pub(super) width: usize,
    /// A number means nothing when it is cut.
    pub(super) whole: bool,
}

/// The columns that edges and separators take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) edges: usize,
    pub(super) between: usize,
}

/// How a grid fits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fitted {
    /// Of every column, those that are left out too.
    pub(super) widths: Vec<usize>,
    /// The columns that are left out.
    pub(super) hidden: Range<usize>,
}

impl Fitted {
    /// Every column as wide as it is.
    pub(super) fn whole(columns: &[Natural]) -> Self {
        Fitted { widths: columns.iter().map(|column| column.width).collect(), hidden: 0..0 }
    }
}

/// The width of the whole grid.
pub(super) fn total(widths: &[usize], hidden: &Range<usize>, frame: Frame) -> usize {
    let shown = widths.iter().enumerate().filter(|(at, _)| !hidden.contains(at)).map(|(_, width)| width);
    let (mut count, mut sum) = (0, 0);
    for width in shown.chain((!hidden.is_empty()).then_some(&1)) {
        count += 1;
        sum += width;
    }
    sum + frame.edges + frame.between * usize::saturating_sub(count, 1)
}

/// Fits the columns into so many of the terminal's.
pub(super) fn fit(columns: &[Natural], screen: usize, frame: Frame) -> Fitted {
    let whole = Fitted::whole(columns);
    if total(&whole.widths, &(0..0), frame) <= screen || columns.is_empty() {
        return whole;
    }
    let mut widths: Vec<usize> = columns.iter().map(|c| if c.whole { c.width } else { c.width.min(LEAST) }).collect();
    let middle = columns.len().div_ceil(2);
    let mut hidden = middle..middle;
    // From the middle to both sides, the first column last.
    while total(&widths, &hidden, frame) > screen && hidden.len() + 1 < columns.len() {
        let behind = columns.len() - hidden.end;
        if hidden.start > behind || behind <= 1 && hidden.start > 1 { hidden.start -= 1 } else { hidden.end += 1 }
    }
    let over = total(&widths, &hidden, frame).saturating_sub(screen);
    if over > 0 {
        // One column alone is too wide, a number even.
        widths[0] = widths[0].saturating_sub(over).max(1);
    }
    grow(&mut widths, columns, &hidden, screen, frame);
    Fitted { widths, hidden }
}

/// Gives what room is left to the columns that are cut, the narrowest first.
fn grow(widths: &mut [usize], columns: &[Natural], hidden: &Range<usize>, screen: usize, frame: Frame) {
    let mut room = screen.saturating_sub(total(widths, hidden, frame));
    while room > 0 {
        let cut = |at: &usize| !hidden.contains(at) && widths[*at] < columns[*at].width;
        let Some(narrowest) = (0..widths.len()).filter(cut).min_by_key(|at| widths[*at]) else { return };
        widths[narrowest] += 1;
        room -= 1;
    }
}

/// The text, or what of it leaves room for `…`: never a part of a character.
pub(super) fn clip(text: &str, width: usize) -> (&str, bool) {
    if text.width() <= width {
        return (text, false);
    }
    let mut used = 0;
    let mut end = 0;
    for (at, cluster) in text.grapheme_indices(true) {
        let wide = cluster.width();
        if used + wide + 1 > width {
            break;
        }
        used += wide;
        end = at + cluster.len();
    }
    (&text[..end], true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOX: Frame = Frame { edges: 4, between: 3 };

    fn columns(widths: &[(usize, bool)]) -> Vec<Natural> {
        widths.iter().map(|(width, whole)| Natural { width: *width, whole: *whole }).collect()
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        let two = columns(&[(10, false), (63, false)]);
        assert_eq!(fit(&two, 80, BOX), Fitted { widths: vec![10, 63], hidden: 0..0 });
    }

    #[test]
    fn texts_are_narrowed_before_columns_are_left_out() {
        let three = columns(&[(6, true), (100, false), (30, false)]);
        let fitted = fit(&three, 60, BOX);
        assert!(fitted.hidden.is_empty(), "{fitted:?}");
        assert_eq!((fitted.widths[0], total(&fitted.widths, &fitted.hidden, BOX)), (6, 60));
        assert!(fitted.widths[2].abs_diff(fitted.widths[1]) <= 1, "{fitted:?}");
    }

    #[test]
    fn columns_are_left_out_of_the_middle() {
        let many = columns(&[(10, true); 20]);
        for screen in 30..200 {
            let Fitted { widths, hidden } = fit(&many, screen, BOX);
            assert!(total(&widths, &hidden, BOX) <= screen, "{screen}: {hidden:?}");
            assert!(hidden.start >= 1, "{screen}: {hidden:?}");
            assert!(hidden.start.abs_diff(20 - hidden.end) <= 1, "{screen}: {hidden:?}");
        }
    }

    #[test]
    fn a_tiny_terminal_still_shows_something() {
        for screen in 0..12 {
            let Fitted { widths, hidden } = fit(&columns(&[(30, true), (5, false)]), screen, BOX);
            assert!(widths[0] >= 1 && !hidden.contains(&0), "{screen}");
        }
    }

    #[test]
    fn a_character_is_never_cut_in_two() {
        assert_eq!(clip("日本語", 5), ("日本", true));
        assert_eq!(clip("日本語", 4), ("日", true));
        assert_eq!(clip("a👩‍👩‍👧b", 3), ("a", true));
        assert_eq!(clip("e\u{301}e\u{301}e\u{301}", 2), ("e\u{301}", true));
        assert_eq!(clip("abc", 3), ("abc", false));
        assert_eq!(clip("abc", 1), ("", true));
    }
}
