//! Refuses what sqlparser reads and DataFusion's planner then drops without a word.
//!
//! The dialect keeps most of it out of the grammar; here is what it has no switch for.

use std::ops::ControlFlow;

use sqlparser::ast::{GroupByExpr, Query, Select, SetExpr, TableFactor, Visit, Visitor};
use sqlparser::tokenizer;

use super::interval::span_of;
use super::lexer::ours;
use super::walk::{Flow, walk};
use crate::error::{Error, Result, Span};

/// # Errors
/// The first clause that nothing would act on, with its place as near as sqlparser tells it.
pub(super) fn refuse(node: &impl Visit) -> Result<()> {
    match walk(node, &mut Refuser) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

/// `TABLE t`, by itself or as an operand; sqlparser loses the quotes of its name.
fn has_table(body: &SetExpr) -> bool {
    let mut left = vec![body];
    while let Some(body) = left.pop() {
        match body {
            SetExpr::Table(_) => return true,
            SetExpr::SetOperation { left: a, right: b, .. } => left.extend([&**a, &**b]),
            _ => {}
        }
    }
    false
}

struct Refuser;

fn refused(what: &str, help: &str, place: Option<Span>) -> Flow {
    ControlFlow::Break(Box::new(Error::unsupported(format!("{what} is not supported")).at(place).help(help)))
}

fn place(span: tokenizer::Span) -> Option<Span> {
    Some(Span { start: ours(span.start)?, end: ours(span.end)? })
}

impl Visitor for Refuser {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, query: &Query) -> Flow {
        if !query.locks.is_empty() {
            return refused("FOR UPDATE and FOR SHARE", "nothing is locked; leave it out", span_of(query));
        }
        if query.for_clause.is_some() {
            return refused("FOR XML, FOR JSON and FOR BROWSE", "choose the format of the sink", span_of(query));
        }
        if query.settings.is_some() || query.format_clause.is_some() {
            return refused("SETTINGS and FORMAT in a query", "use SET, or the format of the sink", span_of(query));
        }
        if has_table(&query.body) {
            return refused("TABLE as a query", "write SELECT * FROM the table", None);
        }
        match &*query.body {
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                refused("a statement that changes data inside a query", "write it as a statement", span_of(query))
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_select(&mut self, select: &Select) -> Flow {
        let here = place(select.select_token.0.span);
        if let Some(into) = &select.into {
            return refused("SELECT … INTO", "write CREATE TABLE name AS SELECT …", span_of(&into.name).or(here));
        }
        if !select.lateral_views.is_empty() {
            return refused("LATERAL VIEW", "write CROSS JOIN UNNEST(column)", here);
        }
        if matches!(&select.group_by, GroupByExpr::All(with) | GroupByExpr::Expressions(_, with) if !with.is_empty()) {
            return refused("GROUP BY … WITH", "write GROUP BY ROLLUP (…) or CUBE (…)", here);
        }
        if select.top.is_some() {
            return refused("TOP", "write LIMIT", here);
        }
        if !select.cluster_by.is_empty() || !select.sort_by.is_empty() || !select.distribute_by.is_empty() {
            return refused("CLUSTER BY, DISTRIBUTE BY and SORT BY", "write ORDER BY", here);
        }
        if select.value_table_mode.is_some()
            || select.prewhere.is_some()
            || select.exclude.is_some()
            || select.select_modifiers.is_some()
            || !select.connect_by.is_empty()
            || !select.optimizer_hints.is_empty()
        {
            return refused("a clause of this SELECT", "it is read by other databases only", here);
        }
        let mut joins = select.from.iter().flat_map(|from| &from.joins);
        if joins.any(|join| join.global) {
            return refused("GLOBAL JOIN", "leave GLOBAL out", here);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> Flow {
        let here = span_of(factor);
        match factor {
            TableFactor::Table {
                with_hints,
                version,
                partitions,
                with_ordinality,
                json_path,
                sample,
                index_hints,
                args,
                alias,
                ..
            } => {
                if !with_hints.is_empty() || !index_hints.is_empty() {
                    return refused(
                        "a list of hints behind a table",
                        "options of a stream belong to CREATE STREAM, those of a query to the end of START QUERY",
                        here,
                    );
                }
                if sample.is_some() {
                    return refused("TABLESAMPLE", "write WHERE with a condition on a column", here);
                }
                let foreign = version.is_some()
                    || !partitions.is_empty()
                    || *with_ordinality
                    || json_path.is_some()
                    || args.as_ref().is_some_and(|args| args.settings.is_some())
                    || alias.as_ref().is_some_and(|alias| alias.at.is_some());
                if foreign {
                    return refused("a clause behind this table", "it is read by other databases only", here);
                }
            }
            TableFactor::Derived { sample: Some(_), .. } => {
                return refused("TABLESAMPLE", "write WHERE with a condition on a column", here);
            }
            TableFactor::Function { with_ordinality: true, .. } => {
                return refused("WITH ORDINALITY", "number the rows with ROW_NUMBER()", here);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
