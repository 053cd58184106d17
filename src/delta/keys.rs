//! Keys as bytes.
