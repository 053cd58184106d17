//! Rows under their columns, in so many columns of the terminal.

use unicode_width::UnicodeWidthStr;

use super::line::{Line, Look, clip, padded};
use super::model::Change;
use super::value::Column;
use crate::display::visible;

/// A column is made narrower only after so many frames.
const PATIENCE: u32 = 20;

/// A text that is wider is cut where there is no room for all.
const WIDE_TEXT: usize = 40;

/// One row as it is drawn.
#[derive(Debug, Clone, Default)]
pub(super) struct GridRow {
    pub(super) cells: Vec<Option<String>>,
    /// Values that have just changed.
    pub(super) changes: Vec<(usize, Change)>,
    /// Behind the row: `+` new, `✓` its last word, `×` taken away.
    pub(super) mark: Option<char>,
    pub(super) look: Option<Look>,
    pub(super) chosen: bool,
}

/// The widths of columns, over frames.
#[derive(Debug, Clone, Default)]
pub(super) struct Widths {
    widths: Vec<usize>,
    /// For so many frames less would have done, and how much at the most.
    spare: Vec<(u32, usize)>,
}

impl Widths {
    /// Grows at once, and shrinks when less has done for a while.
    fn settle(&mut self, needed: &[usize]) -> Vec<usize> {
        if self.widths.len() != needed.len() {
            (self.widths, self.spare) = (needed.to_vec(), vec![(0, 0); needed.len()]);
        }
        for ((width, spare), needed) in self.widths.iter_mut().zip(&mut self.spare).zip(needed) {
            if *needed >= *width {
                (*width, *spare) = (*needed, (0, 0));
                continue;
            }
            *spare = (spare.0 + 1, spare.1.max(*needed));
            if spare.0 > PATIENCE {
                (*width, *spare) = (spare.1, (0, 0));
            }
        }
        self.widths.clone()
    }

    /// Forgets what it has seen: other columns come.
    pub(super) fn clear(&mut self) {
        self.widths.clear();
    }
}

/// How a grid is drawn.
pub(super) struct Looks {
    /// Columns of the terminal.
    pub(super) room: usize,
    /// The first column that is shown.
    pub(super) left: usize,
    pub(super) names: bool,
    pub(super) kinds: bool,
    pub(super) unicode: bool,
}

/// A column as it is drawn.
struct Drawn<'a> {
    column: &'a Column,
    at: usize,
    width: usize,
    /// What stands behind the point of its numbers, the point too.
    behind_point: usize,
}

/// The lines of names and types, then one for each row.
pub(super) fn grid(columns: &[Column], rows: &[GridRow], widths: &mut Widths, looks: &Looks) -> Vec<Line> {
    let texts: Vec<Vec<String>> = rows.iter().map(|row| row.cells.iter().map(shown).collect()).collect();
    let (drawn, hidden) = fit(columns, &texts, widths, looks);
    let gap = |line: &mut Line, n: usize, names: bool| {
        let Some(hidden) = hidden.as_ref().filter(|hidden| hidden.start == n) else { return };
        let (more, dots) = hidden.signs(looks.unicode);
        line.push(Look::Dim, padded(if names { more.as_str() } else { dots }, hidden.width(looks.unicode), false));
    };
    let head = |look: Look, names: bool, text: &dyn Fn(&Column) -> String| {
        let mut line = Line::of(Look::Plain, " ");
        for (n, drawn) in drawn.iter().enumerate() {
            gap(&mut line, n, names);
            let text = clip(&text(drawn.column), drawn.width, false);
            line.push(look, padded(&text, drawn.width, drawn.column.number));
            line.push(Look::Plain, "  ");
        }
        line.fit(looks.room)
    };
    let mut lines = Vec::new();
    if looks.names {
        lines.push(head(Look::Title, true, &|column| column.name.clone()));
    }
    if looks.kinds {
        lines.push(head(Look::Dim, false, &|column| column.kind.clone()));
    }
    for (row, texts) in rows.iter().zip(&texts) {
        let mut line = Line::of(Look::Plain, " ");
        for (n, drawn) in drawn.iter().enumerate() {
            gap(&mut line, n, false);
            push_cell(&mut line, row, texts, drawn, looks.unicode);
        }
        if let Some(mark) = row.mark {
            line.push(row.look.unwrap_or(Look::Bold), format!(" {mark}"));
        }
        line.chosen = row.chosen;
        lines.push(line.fit(looks.room));
    }
    lines
}

fn shown(cell: &Option<String>) -> String {
    cell.as_deref().map_or("NULL".to_string(), |text| visible(text).into_owned())
}

fn push_cell(line: &mut Line, row: &GridRow, texts: &[String], drawn: &Drawn<'_>, unicode: bool) {
    let change = row.changes.iter().find(|(at, _)| *at == drawn.at).map(|(_, change)| *change);
    let null = row.cells.get(drawn.at).is_none_or(Option::is_none);
    let look = match (row.look, change) {
        (Some(look), _) => look,
        (None, Some(Change::Up)) => Look::Up,
        (None, Some(Change::Down)) => Look::Down,
        (None, Some(Change::Other)) => Look::Changed,
        (None, None) if null => Look::Dim,
        (None, None) => Look::Plain,
    };
    let text = texts.get(drawn.at).map_or("", String::as_str);
    let mark = match change {
        None => " ",
        Some(Change::Up) if unicode => "▲",
        Some(Change::Down) if unicode => "▼",
        Some(Change::Up) => "^",
        Some(Change::Down) => "v",
        Some(Change::Other) => "*",
    };
    let mark_look = if change.is_some() { look } else { Look::Plain };
    let text = if drawn.column.number && !null {
        // The points stand below each other.
        let behind = text.find('.').map_or(0, |point| text.len() - point);
        clip(&(text.to_string() + &" ".repeat(drawn.behind_point.saturating_sub(behind))), drawn.width, false)
    } else {
        clip(text, drawn.width, false)
    };
    let gap = " ".repeat(drawn.width.saturating_sub(text.width()));
    if drawn.column.number {
        line.push(Look::Plain, gap);
        line.push(look, text);
        line.push(mark_look, mark);
        line.push(Look::Plain, " ");
    } else {
        line.push(look, text);
        line.push(mark_look, mark);
        line.push(Look::Plain, gap + " ");
    }
}

/// Which columns are shown and how wide, and where (among those that are shown) so many are left out.
fn fit<'a>(
    columns: &'a [Column],
    texts: &[Vec<String>],
    widths: &mut Widths,
    looks: &Looks,
) -> (Vec<Drawn<'a>>, Option<Hidden>) {
    let measured: Vec<(usize, usize)> =
        columns.iter().enumerate().map(|(at, column)| measure(at, column, texts, looks)).collect();
    let settled = widths.settle(&measured.iter().map(|(width, _)| *width).collect::<Vec<_>>());
    let drawn = |cap: usize| {
        let from = looks.left.min(columns.len().saturating_sub(1));
        let all = columns.iter().enumerate().skip(from);
        let one = |(at, column): (usize, &'a Column)| Drawn {
            column,
            at,
            width: if column.number { settled[at] } else { settled[at].min(cap) },
            behind_point: measured[at].1,
        };
        all.map(one).collect::<Vec<_>>()
    };
    // A blank before, a mark and a blank behind each column, and a blank and a mark behind the row.
    let total = |drawn: &[Drawn<'_>]| 3 + drawn.iter().map(|drawn| drawn.width + 2).sum::<usize>();
    let mut shown = drawn(usize::MAX);
    if total(&shown) <= looks.room {
        return (shown, None);
    }
    shown = drawn(WIDE_TEXT);
    let mut hidden = Hidden { start: shown.len().div_ceil(2), count: 0 };
    let total = |shown: &[Drawn<'_>], hidden: &Hidden| total(shown) + hidden.width(looks.unicode);
    while total(&shown, &hidden) > looks.room && shown.len() > 2 {
        let behind = shown.len() - hidden.start;
        if behind < hidden.start || behind == 1 {
            hidden.start -= 1;
        }
        shown.remove(hidden.start);
        hidden.count += 1;
    }
    let over = total(&shown, &hidden).saturating_sub(looks.room);
    if let Some(widest) = shown.iter_mut().filter(|_| over > 0).max_by_key(|drawn| drawn.width) {
        widest.width = widest.width.saturating_sub(over).max(1);
    }
    (shown, Some(hidden).filter(|hidden| hidden.count > 0))
}

/// Columns that are left out.
struct Hidden {
    /// Among those that are shown, the one that they stand before.
    start: usize,
    count: usize,
}

impl Hidden {
    /// What stands in their place, in the line of names and in the others.
    fn signs(&self, unicode: bool) -> (String, &'static str) {
        let dots = if unicode { "⋯" } else { "..." };
        (format!("{dots} +{}", self.count), dots)
    }

    fn width(&self, unicode: bool) -> usize {
        if self.count == 0 { 0 } else { self.signs(unicode).0.width() + 2 }
    }
}

/// How wide a column has to be, and how much of that is behind the point.
fn measure(at: usize, column: &Column, texts: &[Vec<String>], looks: &Looks) -> (usize, usize) {
    let head = [(looks.names, &column.name), (looks.kinds, &column.kind)];
    let head = head.iter().filter(|(shown, _)| *shown).map(|(_, text)| text.width()).max().unwrap_or(0);
    let cells = || texts.iter().filter_map(|texts| texts.get(at));
    if !column.number {
        return (cells().map(|text| text.width()).max().unwrap_or(0).max(head).max(1), 0);
    }
    let parts = || cells().map(|text| text.find('.').map_or((text.width(), 0), |point| (point, text.len() - point)));
    let (before, behind) = parts().fold((0, 0), |most, part| (most.0.max(part.0), most.1.max(part.1)));
    ((before + behind).max(head).max(1), behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, kind: &str) -> Column {
        let data_type = arrow::datatypes::DataType::Utf8;
        Column { name: name.into(), kind: kind.into(), data_type, number: kind != "utf8", time: false }
    }

    fn row(cells: &[&str]) -> GridRow {
        let cell = |text: &&str| (*text != "NULL").then(|| text.to_string());
        GridRow { cells: cells.iter().map(cell).collect(), ..GridRow::default() }
    }

    fn text(lines: &[Line]) -> String {
        lines.iter().map(|line| line.text() + "\n").collect()
    }

    fn looks(room: usize) -> Looks {
        Looks { room, left: 0, names: true, kinds: true, unicode: true }
    }

    #[test]
    fn points_stand_below_each_other() {
        let columns = [column("page", "utf8"), column("count", "int64"), column("sum", "decimal")];
        let mut rows = [row(&["/a", "7", "120.50"]), row(&["/日本", "1", "3.1"]), row(&["NULL", "NULL", "-1"])];
        rows[0].changes = vec![(1, Change::Up), (2, Change::Down)];
        rows[1].mark = Some('+');
        rows[2].changes = vec![(0, Change::Other)];
        let lines = grid(&columns, &rows, &mut Widths::default(), &looks(60));
        let expected = " \
 page   count      sum
 utf8   int64  decimal
 /a         7▲  120.50▼
 /日本      1     3.1    +
 NULL*   NULL    -1
";
        let expected = expected.trim_start();
        assert_eq!(text(&lines).trim_start(), expected);
    }

    #[test]
    fn columns_leave_from_the_middle() {
        let columns: Vec<Column> = (1..=9).map(|n| column(&format!("column{n}"), "int64")).collect();
        let rows = [row(&["1", "2", "3", "4", "5", "6", "7", "8", "9"])];
        let lines = grid(&columns, &rows, &mut Widths::default(), &Looks { kinds: false, ..looks(48) });
        assert_eq!(
            text(&lines),
            " column1  column2  ⋯ +5  column8  column9\n       1        2  ⋯           8        9\n"
        );
        let lines = grid(&columns, &rows, &mut Widths::default(), &Looks { kinds: false, left: 6, ..looks(48) });
        assert_eq!(text(&lines), " column7  column8  column9\n       7        8        9\n");
    }

    #[test]
    fn nothing_is_wider_than_its_room() {
        let columns = [column("a", "utf8"), column("日本", "utf8"), column("number", "float64"), column("b", "utf8")];
        let rows = [row(&["👩‍👩‍👧", "x\ty\u{1b}[2J\nz", "1234567890.25", &"long ".repeat(30)])];
        for room in 0..120 {
            for left in 0..6 {
                for line in grid(&columns, &rows, &mut Widths::default(), &Looks { left, ..looks(room) }) {
                    assert!(line.width() <= room, "{room}: {line:?}");
                    assert!(!line.ansi(false).contains(char::is_control), "{line:?}");
                }
            }
        }
    }

    #[test]
    fn a_column_grows_at_once_and_shrinks_late() {
        let mut widths = Widths::default();
        assert_eq!(widths.settle(&[3]), [3]);
        assert_eq!(widths.settle(&[9]), [9]);
        for _ in 0..PATIENCE {
            assert_eq!(widths.settle(&[4]), [9]);
        }
        assert_eq!(widths.settle(&[5]), [5]);
    }
}
