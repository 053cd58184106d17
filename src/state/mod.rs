//! What operators remember: versioned, keyed tables, held in memory and kept in delta and snapshot files.
//!
//! A [`StateTable`] is one partition of one operator. It knows keys, values and versions; it does not know what
//! they mean. How a version is written and found again is in [`file`] and [`store`].

mod table;

pub use table::{Slot, StateTable};
