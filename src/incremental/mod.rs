//! incremental
