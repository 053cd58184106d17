//! Definitions → SQL: CREATE STREAM, SINK and VIEW, START QUERY, and the queries in them. See [`write`](super::write).

use std::fmt::{self, Display, Formatter};

use super::canonical::canonical;
use super::escape::Escaped;
use super::statement::*;
use super::write::{Literal, Quoted};

fn head(f: &mut Formatter<'_>, or_replace: bool, kind: &str, if_not_exists: bool, name: &Name) -> fmt::Result {
    let or_replace = if or_replace { "OR REPLACE " } else { "" };
    let if_not_exists = if if_not_exists { "IF NOT EXISTS " } else { "" };
    write!(f, "CREATE {or_replace}{kind} {if_not_exists}{name}")
}

impl Display for CreateStream {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        head(f, self.or_replace, "STREAM", self.if_not_exists, &self.name)?;
        let columns = self.columns.iter().flatten().map(|column| column as &dyn Display);
        let watermark = self.watermark.iter().map(|watermark| watermark as &dyn Display);
        let elements: Vec<&dyn Display> = columns.chain(watermark).collect();
        if !elements.is_empty() {
            f.write_str(" (")?;
            for (n, element) in elements.iter().enumerate() {
                write!(f, "{}{element}", if n == 0 { "" } else { ", " })?;
            }
            f.write_str(")")?;
        }
        self.options.as_ref().map_or(Ok(()), |options| write!(f, " WITH {options}"))
    }
}

impl Display for ColumnDef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)?;
        if let Some(data_type) = &self.data_type {
            write!(f, " {data_type}")?;
        }
        if self.not_null {
            f.write_str(" NOT NULL")?;
        }
        match &self.kind {
            ColumnKind::Field => Ok(()),
            ColumnKind::Metadata(key) => write!(f, " METADATA FROM {}", Quoted(key)),
            ColumnKind::Computed(expr) => write!(f, " AS ({})", Escaped(&**expr)),
        }
    }
}

impl Display for WatermarkDef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "WATERMARK FOR {0} AS {0} - {1}", self.column, Literal(&self.delay))?;
        if let Some(idle_after) = &self.idle_after {
            write!(f, " IDLE AFTER {}", Literal(idle_after))?;
        }
        self.max_future_skew.as_ref().map_or(Ok(()), |skew| write!(f, " MAX FUTURE SKEW {}", Literal(skew)))
    }
}

impl Display for CreateSink {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        head(f, self.or_replace, "SINK", self.if_not_exists, &self.name)?;
        write!(f, " WITH {}", self.options)
    }
}

impl Display for CreateView {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        head(f, self.or_replace, "VIEW", self.if_not_exists, &self.name)?;
        for (n, column) in self.columns.iter().enumerate() {
            write!(f, "{}{column}", if n == 0 { " (" } else { ", " })?;
        }
        write!(f, "{} AS {}", if self.columns.is_empty() { "" } else { ")" }, self.query)
    }
}

impl Display for QueryText {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&canonical(&self.text))
    }
}

impl Display for WatermarkClause {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (n, name) in self.column.iter().enumerate() {
            write!(f, "{}{name}", if n == 0 { "" } else { "." })?;
        }
        write!(f, " DELAY {}", Literal(&self.delay))
    }
}

impl Display for StartQuery {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let if_not_exists = if self.if_not_exists { "IF NOT EXISTS " } else { "" };
        write!(f, "START QUERY {if_not_exists}{}", self.name)?;
        if let Some(target) = &self.target {
            write!(f, " INTO {target}")?;
        }
        write!(f, " AS {}", self.query)?;
        if let Some((mode, _)) = &self.mode {
            write!(f, " OUTPUT MODE {mode}")?;
        }
        if let Some(trigger) = self.trigger.filter(|trigger| *trigger != Trigger::Asap) {
            write!(f, " {trigger}")?;
        }
        if let Some(batches) = self.stop_after {
            write!(f, " STOP AFTER {batches} BATCHES")?;
        }
        if let Some(location) = &self.checkpoint {
            write!(f, " CHECKPOINT {}", Quoted(location))?;
        }
        if self.options.entries.is_empty() { Ok(()) } else { write!(f, " WITH {}", self.options) }
    }
}
