//! What somebody has chosen to look at, and what their keys change of that.

use super::grid::Widths;
use super::keys::{Action, Key, action};
use super::model::{Model, Row};

/// Paintings a second that can be chosen.
pub(super) const RATES: [f64; 5] = [10.0, 5.0, 2.0, 1.0, 0.2];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Page {
    Table,
    /// The table as bars of one of its columns.
    Chart,
    Changelog,
    Batches,
}

/// What lies over the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Overlay {
    Help,
    /// The row of this id.
    Detail(u64),
    Text(Vec<String>),
}

/// By so many columns a page is moved to a side.
const SIDEWAYS: usize = 20;

/// What a line is typed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Typing {
    Filter,
    FileName,
}

/// What is for others to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    Leave,
    Stop,
    Suspend,
    Step,
    FullScreen,
    Explain,
    /// To the file of this name.
    Save(String),
    /// This text.
    Copy(String),
}

/// The state of a view.
#[derive(Debug)]
pub(super) struct View {
    pub(super) page: Page,
    pub(super) overlay: Option<Overlay>,
    /// The first line of what lies over the page.
    pub(super) overlay_top: usize,
    /// So many columns of it are left of the screen.
    pub(super) overlay_left: usize,
    /// The row that keys act on, by its id.
    pub(super) chosen: Option<u64>,
    /// The first row of the page.
    pub(super) top: usize,
    /// The first column.
    pub(super) left: usize,
    /// The column that rows are ordered by, and whether downwards.
    pub(super) order: Option<(usize, bool)>,
    pub(super) filter: String,
    pub(super) typing: Option<(Typing, String)>,
    /// What comes at the end is shown.
    pub(super) follow: bool,
    pub(super) metrics: bool,
    /// A statement is looked at that is run again and again, and no query.
    pub(super) repeats: bool,
    rate: usize,
    /// The picture is held: what was there to see then.
    pub(super) held: Option<Box<Model>>,
    /// What a key has brought about.
    pub(super) message: Option<String>,
    pub(super) widths: Widths,
    /// Rows that were drawn.
    pub(super) height: usize,
}

impl View {
    pub(super) fn new() -> Self {
        View {
            page: Page::Table,
            overlay: None,
            overlay_top: 0,
            overlay_left: 0,
            chosen: None,
            top: 0,
            left: 0,
            order: None,
            filter: String::new(),
            typing: None,
            follow: true,
            metrics: true,
            repeats: false,
            rate: 0,
            held: None,
            message: None,
            widths: Widths::default(),
            height: 1,
        }
    }

    /// Of a statement that is run again and again.
    pub(super) fn of_repeats() -> Self {
        View { metrics: false, repeats: true, ..View::new() }
    }

    /// How often to paint.
    pub(super) fn paints_a_second(&self) -> f64 {
        RATES[self.rate]
    }

    /// The rows of the table as they are chosen and ordered.
    pub(super) fn rows<'a>(&self, model: &'a Model) -> Vec<&'a Row> {
        model.rows(self.order, &self.filter)
    }

    /// Takes a key. `live`: the query as it is now.
    pub(super) fn press(&mut self, key: Key, live: &Model) -> Effect {
        self.message = None;
        match key {
            Key::Ctrl('c') => return Effect::Stop,
            Key::Ctrl('z') => return Effect::Suspend,
            _ => {}
        }
        if self.typing.is_some() {
            return self.type_key(key);
        }
        if self.overlay.is_some() {
            return self.over(key, live);
        }
        let Some(action) = action(key).filter(|action| !self.repeats || action.is_of_results()) else {
            return Effect::None;
        };
        match action {
            // First all rows are shown again.
            Action::Leave if key == Key::Escape && !self.filter.is_empty() => {
                self.filter.clear();
                self.top = 0;
            }
            Action::Leave => return Effect::Leave,
            Action::Stop => return Effect::Stop,
            Action::Suspend => return Effect::Suspend,
            Action::Step => return Effect::Step,
            Action::FullScreen => return Effect::FullScreen,
            Action::Explain => return Effect::Explain,
            Action::Pause if self.held.is_some() => self.held = None,
            Action::Pause => self.held = Some(Box::new(live.clone())),
            Action::NextPage => self.turn(),
            Action::Faster => self.repaint(self.rate.saturating_sub(1)),
            Action::Slower => self.repaint((self.rate + 1).min(RATES.len() - 1)),
            Action::Left => self.left = self.left.saturating_sub(1),
            Action::Right => self.left = (self.left + 1).min(live.columns.len().saturating_sub(1)),
            Action::Filter => self.typing = Some((Typing::Filter, self.filter.clone())),
            Action::Save => self.typing = Some((Typing::FileName, String::new())),
            Action::Metrics => self.metrics = !self.metrics,
            Action::Help => self.lay(Overlay::Help),
            Action::SortBy(at) if at < live.columns.len() => self.order_by(at, live),
            Action::SortBy(_) => {}
            Action::SortRight => self.order_beside(1, live),
            Action::SortLeft => self.order_beside(-1, live),
            Action::Reverse => self.order = self.order_now(live).map(|(at, down)| (at, !down)),
            Action::Up | Action::PreviousRow => self.walk(-1, live),
            Action::Down | Action::NextRow => self.walk(1, live),
            Action::PageUp => self.walk(-(self.height.max(1) as isize), live),
            Action::PageDown => self.walk(self.height.max(1) as isize, live),
            Action::First => self.walk(isize::MIN, live),
            Action::Last => {
                self.walk(isize::MAX, live);
                self.follow = true;
            }
            Action::Detail => {
                if let Some(row) = self.row(live) {
                    self.lay(Overlay::Detail(row));
                }
            }
            Action::Copy => return self.copied(live),
        }
        Effect::None
    }

    /// What is seen: the query as it is, or as it was when the picture was held.
    pub(super) fn seen<'a>(&'a self, live: &'a Model) -> &'a Model {
        self.held.as_deref().unwrap_or(live)
    }

    pub(super) fn lay(&mut self, overlay: Overlay) {
        (self.overlay, self.overlay_top, self.overlay_left) = (Some(overlay), 0, 0);
    }

    fn over(&mut self, key: Key, live: &Model) -> Effect {
        match action(key) {
            Some(Action::Right) => self.overlay_left += SIDEWAYS,
            Some(Action::Left) => self.overlay_left = self.overlay_left.saturating_sub(SIDEWAYS),
            Some(Action::Copy) if matches!(self.overlay, Some(Overlay::Detail(_))) => return self.copied(live),
            Some(Action::Up) => self.overlay_top = self.overlay_top.saturating_sub(1),
            Some(Action::Down) => self.overlay_top += 1,
            Some(Action::PageUp) => self.overlay_top = self.overlay_top.saturating_sub(self.height.max(1)),
            Some(Action::PageDown) => self.overlay_top += self.height.max(1),
            Some(Action::First) => self.overlay_top = 0,
            Some(Action::Last) => self.overlay_top = usize::MAX,
            _ => self.overlay = None,
        }
        Effect::None
    }

    fn type_key(&mut self, key: Key) -> Effect {
        let Some((what, mut text)) = self.typing.take() else { return Effect::None };
        match (key, what) {
            (Key::Enter, Typing::FileName) if !text.trim().is_empty() => {
                return Effect::Save(text.trim().to_string());
            }
            (Key::Enter, Typing::FileName) | (Key::Escape, Typing::FileName) => return Effect::None,
            (Key::Enter, Typing::Filter) => return Effect::None,
            // As it was before.
            (Key::Escape, Typing::Filter) => {
                self.filter.clear();
                return Effect::None;
            }
            (Key::Backspace, _) => _ = text.pop(),
            (Key::Ctrl('u'), _) => text.clear(),
            (Key::Char(c), _) => text.push(c),
            _ => {}
        }
        if what == Typing::Filter {
            (self.filter, self.top) = (text.clone(), 0);
        }
        self.typing = Some((what, text));
        Effect::None
    }

    fn turn(&mut self) {
        self.page = match self.page {
            Page::Table => Page::Chart,
            Page::Chart => Page::Changelog,
            Page::Changelog if self.repeats => Page::Table,
            Page::Changelog => Page::Batches,
            Page::Batches => Page::Table,
        };
        (self.top, self.follow) = (0, true);
        self.widths.clear();
    }

    fn repaint(&mut self, rate: usize) {
        self.rate = rate;
        self.message = Some(format!("painted {} times a second at the most", RATES[rate]));
    }

    fn order_by(&mut self, at: usize, live: &Model) {
        self.order = Some(match self.order_now(live) {
            Some((now, down)) if now == at => (at, !down),
            // The largest number first, texts from A.
            _ => (at, live.columns.get(at).is_some_and(|column| column.number || column.time)),
        });
        self.top = 0;
    }

    fn order_beside(&mut self, by: isize, live: &Model) {
        let count = live.columns.len();
        let next = match self.order {
            None if by > 0 => Some(0),
            None => count.checked_sub(1),
            Some((at, _)) => at.checked_add_signed(by).filter(|at| *at < count),
        };
        let largest_first = |at: usize| live.columns.get(at).is_some_and(|column| column.number || column.time);
        (self.order, self.top) = (next.map(|at| (at, largest_first(at))), 0);
    }

    /// The column that the chart shows: the one that rows are sorted by, or else the last that is a number.
    pub(super) fn charted(&self, model: &Model) -> Option<usize> {
        let number = |at: &usize| model.columns.get(*at).is_some_and(|column| column.number);
        let sorted = self.order.map(|(at, _)| at).filter(number);
        sorted.or_else(|| (0..model.columns.len()).rev().find(number))
    }

    /// The order of the rows, chosen or usual.
    pub(super) fn order_now(&self, live: &Model) -> Option<(usize, bool)> {
        self.order.or_else(|| live.usual_order())
    }

    /// Goes so many rows on.
    fn walk(&mut self, by: isize, live: &Model) {
        self.follow = false;
        if self.page != Page::Table {
            // As far as there are rows: what is too far is put right when it is drawn.
            self.top = self.top.saturating_add_signed(by);
            return;
        }
        let ids: Vec<u64> = self.rows(self.seen(live)).iter().map(|row| row.id).collect();
        let Some(last) = ids.len().checked_sub(1) else { return };
        let at = match self.chosen.and_then(|chosen| ids.iter().position(|id| *id == chosen)) {
            Some(at) => at.saturating_add_signed(by).min(last),
            // The first step chooses what is there to see.
            None if by == isize::MAX => last,
            None if by == isize::MIN => 0,
            None if by > 0 => self.top.min(last),
            None => (self.top + self.height.saturating_sub(1)).min(last),
        };
        self.chosen = Some(ids[at]);
    }

    /// The row that is chosen, or else the first that is shown.
    fn row(&self, live: &Model) -> Option<u64> {
        if self.page != Page::Table {
            return None;
        }
        let rows = self.rows(self.seen(live));
        let chosen = rows.iter().find(|row| Some(row.id) == self.chosen);
        chosen.or_else(|| rows.get(self.top)).map(|row| row.id)
    }

    fn copied(&mut self, live: &Model) -> Effect {
        let id = self.row(live);
        let model = self.seen(live);
        let rows = model.rows(None, "");
        let Some(row) = rows.into_iter().find(|row| Some(row.id) == id) else { return Effect::None };
        let text: Vec<&str> = row.cells.iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect();
        Effect::Copy(text.join("\t"))
    }
}
