//! What windows look like: where they begin and end.
//!
//! ```text
//! sliding      10 s every 5 s      [00, 10) [05, 15) [10, 20) …
//! cumulating   5 s up to 15 s      [00, 05) [00, 10) [00, 15) [15, 20) …
//! calendar     1 month             [January) [February) …
//!              3 months by one     [January … March) [February … April) …
//! ```

use datafusion::common::{Result, plan_err};

use crate::delta::calendar::{Calendar, Lasts};
use crate::delta::time::Unit;

/// The windows of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Windows {
    /// One begins every slide. Known by its start.
    Sliding(WindowShape),
    /// They begin every size, and grow by the slide up to the size. Known by its end.
    Cumulating(WindowShape),
    /// Known by its start.
    Calendar(Calendar),
}

impl Windows {
    /// Whether a row can be in more than one.
    pub fn overlaps(&self) -> bool {
        match self {
            Windows::Sliding(shape) | Windows::Cumulating(shape) => shape.slide < shape.size,
            Windows::Calendar(calendar) => calendar.stretches > 1,
        }
    }

    /// How long after its start a window has ended, in microseconds; of those that begin together the last.
    pub fn lasts(&self) -> Lasts {
        match self {
            Windows::Sliding(shape) | Windows::Cumulating(shape) => Lasts::Units(shape.size),
            Windows::Calendar(calendar) => Lasts::Calendar(*calendar),
        }
    }

    /// The same in the unit of a time column.
    ///
    /// # Errors
    /// As of [`Windows::check_unit`].
    pub fn lasts_in(&self, unit: Unit) -> Result<Lasts> {
        Ok(match self.lasts() {
            Lasts::Units(micros) => Lasts::Units(in_unit(micros, unit, "size")?),
            calendar => calendar,
        })
    }

    /// Whether they can be made over times of a unit.
    ///
    /// # Errors
    /// When a length is no whole number of the unit.
    pub fn check_unit(&self, unit: Unit) -> Result<()> {
        match self {
            Windows::Sliding(shape) => shape.in_unit(unit).map(drop),
            Windows::Cumulating(shape) => {
                in_unit(shape.slide, unit, "step")?;
                shape.in_unit(unit).map(drop)
            }
            Windows::Calendar(calendar) if calendar.fits(unit) => Ok(()),
            Windows::Calendar(calendar) if unit == Unit::Days && calendar.micros == 0 => {
                plan_err!("a DATE is a day in every time zone: time_zone wants a TIMESTAMP")
            }
            Windows::Calendar(calendar) => in_unit(calendar.micros, unit, "offset").map(drop),
        }
    }
}

/// Windows of one length in microseconds, or in the unit of a time column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WindowShape {
    pub size: i64,
    /// From one start to the next; of cumulating windows from one end to the next.
    pub slide: i64,
    pub offset: i64,
}

impl WindowShape {
    /// The same in the unit of a time column.
    ///
    /// # Errors
    /// When a length is no whole number of the unit.
    pub fn in_unit(&self, unit: Unit) -> Result<WindowShape> {
        Ok(WindowShape {
            size: in_unit(self.size, unit, "size")?,
            slide: in_unit(self.slide, unit, "slide")?,
            offset: in_unit(self.offset, unit, "offset")?,
        })
    }

    /// The start of the newest sliding window that holds `time`, all in one unit.
    pub fn last_start(&self, time: i64) -> Option<i64> {
        floor(time, self.offset, self.slide)
    }

    /// The start of the cumulating windows that hold `time`.
    pub fn first_start(&self, time: i64) -> Option<i64> {
        floor(time, self.offset, self.size)
    }

    /// The first and the last end of the cumulating windows that hold `time`; the others are whole slides between them.
    pub fn ends(&self, time: i64) -> Option<(i64, i64)> {
        let start = self.first_start(time)?;
        let first = floor(time, start, self.slide)?.checked_add(self.slide)?;
        Some((first, start.checked_add(self.size)?))
    }
}

/// The last point at or before `time` that is whole steps away from `origin`.
fn floor(time: i64, origin: i64, step: i64) -> Option<i64> {
    time.checked_sub(time.checked_sub(origin)?.rem_euclid(step))
}

fn in_unit(micros: i64, unit: Unit, what: &str) -> Result<i64> {
    let (per, name) = match unit {
        Unit::Nanos => {
            return match micros.checked_mul(1_000) {
                Some(nanos) => Ok(nanos),
                None => plan_err!("the window's {what} is too long for a time in nanoseconds"),
            };
        }
        Unit::Micros => return Ok(micros),
        Unit::Millis => (1_000, "milliseconds"),
        Unit::Seconds => (1_000_000, "seconds"),
        Unit::Days => (86_400_000_000, "days"),
    };
    if micros % per != 0 {
        return plan_err!("the window's {what} must be a whole number of {name}, the unit of its time column");
    }
    Ok(micros / per)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_cumulating_windows() {
        let shape = WindowShape { size: 15, slide: 5, offset: 0 };
        assert_eq!(shape.ends(0), Some((5, 15)));
        assert_eq!(shape.ends(4), Some((5, 15)));
        assert_eq!(shape.ends(5), Some((10, 15)));
        assert_eq!(shape.ends(14), Some((15, 15)));
        assert_eq!(shape.ends(-1), Some((0, 0)));
        assert_eq!(shape.ends(-15), Some((-10, 0)));
        let later = WindowShape { offset: 2, ..shape };
        assert_eq!((later.first_start(1), later.ends(1)), (Some(-13), Some((2, 2))));
        assert_eq!((later.first_start(2), later.ends(2)), (Some(2), Some((7, 17))));
        let earlier = WindowShape { offset: -13, ..shape };
        assert_eq!(earlier.ends(2), later.ends(2));
        assert_eq!(shape.ends(i64::MAX), None);
    }

    #[test]
    fn starts_at_the_edges_of_the_range() {
        let shape = WindowShape { size: 10, slide: 10, offset: 3 };
        assert_eq!(shape.last_start(i64::MIN), None);
        assert_eq!(shape.last_start(-7), Some(-7));
        assert_eq!(shape.last_start(i64::MAX), Some(i64::MAX - 4));
        assert_eq!(WindowShape { offset: -9, ..shape }.last_start(i64::MAX), None);
    }
}
