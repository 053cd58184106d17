//! display
