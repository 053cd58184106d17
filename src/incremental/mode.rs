//! What may run in which mode, and what can't run over a stream yet: the refusals.
//!
//! Every refusal names the rule and the clause that would make the query possible.

use std::collections::BTreeSet;

use datafusion::common::JoinType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, Volatility};

use super::TargetTraits;
use crate::error::{Error, Result};
use crate::parser::OutputMode;
use crate::planner::over::Over;
use crate::planner::set_operations::set_operation;
use crate::planner::{any, reads_stream};

/// Refuses what can't run over a stream in a mode.
pub fn check_node(node: &LogicalPlan, mode: OutputMode) -> Result<()> {
    match node {
        LogicalPlan::Window(window) if mode == OutputMode::Append => Over::of(window).map(drop),
        LogicalPlan::Window(window) => Over::changing(window).map(drop),
        LogicalPlan::RecursiveQuery(_) => Err(Error::unsupported("a recursive query can't run over a stream")),
        LogicalPlan::Join(join) => {
            let (left, right) = (reads_stream(&join.left), reads_stream(&join.right));
            match (left, right, join.join_type) {
                // A row may be there more than once, which a join does not count.
                (true, false, JoinType::LeftAnti | JoinType::LeftSemi) | (false, true, JoinType::LeftSemi)
                    if set_operation(join) == Some(true) =>
                {
                    Err(Error::not_yet("EXCEPT ALL and INTERSECT ALL of a stream with a static table")
                        .help("without ALL each row is given once"))
                }
                // What a mode allows of it is said where it is taken apart.
                (true, true, _) => Ok(()),
                (_, _, JoinType::Inner) => Ok(()),
                (true, false, JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark) => Ok(()),
                (false, true, JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark) => {
                    Ok(())
                }
                (_, _, kind) => Err(static_kept(kind)),
            }
        }
        _ => Ok(()),
    }
}

/// Why a static table's rows can't be kept beside a stream.
fn static_kept(kind: JoinType) -> Error {
    match kind {
        JoinType::LeftSemi | JoinType::RightSemi => {
            Error::not_yet("IN or EXISTS over a stream, by another condition than equality, for rows of a static table")
                .help("tie them by = alone, or put the stream outside: FROM stream WHERE EXISTS (SELECT … FROM table)")
        }
        JoinType::LeftMark | JoinType::RightMark => {
            Error::not_yet("IN or EXISTS over a stream within OR or NOT, for rows of a static table")
                .help("ask for it by itself, and for the rest in another query")
        }
        JoinType::LeftAnti | JoinType::RightAnti => Error::unsupported(
            "which rows of a static table a stream has no match for is known only when the stream has ended",
        )
        .help(
            "ask for IN or EXISTS alone, or keep the stream's rows: FROM stream WHERE NOT EXISTS (SELECT … FROM table)",
        ),
        _ => Error::unsupported(format!(
            "a {} join of a stream with a static table would have to keep the table's rows until the stream ends",
            kind.to_string().to_uppercase()
        ))
        .help("put the stream on the side whose rows are kept: stream LEFT JOIN table"),
    }
}

/// Refuses a subquery that reads a stream, where no join stands for it: what it gives would change under rows already judged.
pub fn check_expressions(node: &LogicalPlan, stateful: bool, mode: OutputMode) -> Result<()> {
    for expr in node.expressions() {
        let mut wrong = None;
        let walked = expr.apply(|e| {
            match e {
                Expr::ScalarSubquery(s) | Expr::Exists(datafusion::logical_expr::expr::Exists { subquery: s, .. }) | Expr::InSubquery(datafusion::logical_expr::expr::InSubquery { subquery: s, .. })
                    if any(&s.subquery, |n| crate::planner::stream_of(n).is_some()) =>
                {
                    wrong = Some(subquery_refused(e, mode));
                }
                e if stateful => {
                    wrong = wrong.take().or_else(|| volatile_call(e).map(|name| {
                        Error::unsupported(format!("{name}() gives another value each time, so a batch that is run again would not give the same groups"))
                            .help("compute it outside the aggregated query")
                    }));
                }
                _ => {}
            }
            Ok(TreeNodeRecursion::Continue)
        });
        walked.map_err(Error::from)?;
        if let Some(error) = wrong {
            return Err(error);
        }
    }
    Ok(())
}

fn subquery_refused(subquery: &Expr, mode: OutputMode) -> Error {
    match (subquery, mode) {
        (Expr::ScalarSubquery(_), OutputMode::Append) => Error::unsupported(
            "OUTPUT MODE APPEND can't run a subquery over a stream for its value: that changes with the stream's rows, so no row made of it is ever final",
        )
        .help("use OUTPUT MODE UPDATE, or join with an aggregate by a window of both streams"),
        (Expr::ScalarSubquery(subquery), _) if !subquery.outer_ref_columns.is_empty() => Error::not_yet(
            "a subquery over a stream for its value whose rows belong to the outer row by another condition than equality",
        )
        .help("tie them by = in its WHERE, or join with the stream in FROM and aggregate"),
        (Expr::ScalarSubquery(_), _) => {
            Error::not_yet("a subquery over a stream for its value, other than of one row, in SELECT, WHERE or HAVING of a query over a stream")
                .help("make it an aggregate without GROUP BY, or join with it in FROM")
        }
        _ => Error::not_yet("IN or EXISTS over a stream, other than in WHERE or HAVING")
            .help("join with it in FROM"),
    }
}

/// The functions of a plan that give another value each time they are called, each once.
pub fn volatile_functions(plan: &LogicalPlan) -> Vec<String> {
    let mut names = BTreeSet::new();
    let walked = plan.apply_with_subqueries(|node| {
        for expr in node.expressions() {
            expr.apply(|e| {
                names.extend(volatile_call(e).map(str::to_string));
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(TreeNodeRecursion::Continue)
    });
    if walked.is_ok() { names.into_iter().collect() } else { Vec::new() }
}

/// Whether what a query gives depends on how its rows came in batches: on the clock of each, on which rows were first, or on what
/// an approximate function made of them.
pub fn depends_on_batches(plan: &LogicalPlan) -> bool {
    // Their states say the same however rows are put together.
    const EXACT: &[&str] =
        &["count", "sum", "min", "max", "avg", "median", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor"];
    let depends = |expr: &Expr| match expr {
        Expr::ScalarFunction(call) => is_clock(call.func.name()),
        Expr::AggregateFunction(call) => !EXACT.contains(&call.func.name()),
        _ => false,
    };
    let mut found = false;
    let walked = plan.apply_with_subqueries(|node| {
        // Of rows that are ordered alike the first stays first.
        found |=
            matches!(node, LogicalPlan::Limit(_) | LogicalPlan::Distinct(Distinct::On(_)) | LogicalPlan::Window(_));
        found |= matches!(node, LogicalPlan::Sort(sort) if sort.fetch.is_some());
        for expr in node.expressions() {
            found |= expr.exists(|e| Ok(depends(e)))?;
        }
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found || walked.is_err()
}

fn volatile_call(expr: &Expr) -> Option<&str> {
    let Expr::ScalarFunction(call) = expr else { return None };
    let name = call.func.name();
    (call.func.signature().volatility == Volatility::Volatile && !is_clock(name)).then_some(name)
}

fn is_clock(name: &str) -> bool {
    matches!(name, "now" | "current_date" | "current_time" | "current_timestamp" | "today")
}

/// The mode table's row for queries without an operator that remembers.
/// `others`: it remembers, but nothing that can be sent whole.
pub fn check_stateless(mode: OutputMode, others: bool) -> Result<()> {
    if mode == OutputMode::Complete {
        let error = Error::unsupported(
            "OUTPUT MODE COMPLETE wants an aggregate: without one the result table would be all input ever read",
        );
        return Err(error.help(if others { "use OUTPUT MODE UPDATE" } else { "use OUTPUT MODE APPEND" }));
    }
    Ok(())
}

/// The same for a join on top: also that of a value which a subquery gives.
pub fn check_join_top(mode: OutputMode) -> Result<()> {
    if mode == OutputMode::Complete {
        return Err(Error::unsupported(
            "OUTPUT MODE COMPLETE wants an aggregate on top, and here a join is: of streams, or of the value of a subquery",
        )
        .help("use OUTPUT MODE UPDATE"));
    }
    Ok(())
}

/// The mode table's rows for an aggregate on top. `closes`: it is grouped by a watermarked time; `watermarked`: what it
/// groups by is made of a watermarked time.
pub fn check_aggregate(mode: OutputMode, closes: bool, groups_by_time: bool, watermarked: bool) -> Result<()> {
    if mode != OutputMode::Append || closes {
        return Ok(());
    }
    if groups_by_time && watermarked {
        return Err(Error::unsupported("OUTPUT MODE APPEND wants the watermarked column itself, or a window of it, among what the query groups by: what an expression makes of it carries no watermark")
            .help("group by window(column, '1 hour') in place of date_trunc and its like, or use OUTPUT MODE UPDATE"));
    }
    if groups_by_time {
        return Err(Error::unsupported("OUTPUT MODE APPEND wants a watermark on the time that the query groups by: without one no window ever closes")
            .help("add WITH WATERMARK column DELAY '10 seconds' behind GROUP BY, or use OUTPUT MODE UPDATE"));
    }
    Err(Error::unsupported(
        "OUTPUT MODE APPEND can't run this aggregate: no group is ever final, so nothing would ever be sent",
    )
    .help("group by window(…) of a watermarked time, or use OUTPUT MODE UPDATE or COMPLETE"))
}

/// The same for EXCEPT and INTERSECT.
pub fn check_set_operation(mode: OutputMode, closes: bool) -> Result<()> {
    if mode != OutputMode::Append || closes {
        return Ok(());
    }
    Err(Error::unsupported(
        "OUTPUT MODE APPEND can't run EXCEPT or INTERSECT of streams without a watermarked time among the columns: a row to come of one side \
         would change what was sent of the other",
    )
    .help("SELECT a watermarked column, or a window of it, on both sides, or use OUTPUT MODE UPDATE"))
}

/// The same for grouping sets, some of which leave out a window or a time.
pub fn check_sets(mode: OutputMode, closes: bool, leaves_out: bool) -> Result<()> {
    if mode != OutputMode::Append || closes || !leaves_out {
        return Ok(());
    }
    Err(Error::unsupported(
        "OUTPUT MODE APPEND can't run these grouping sets: a set that leaves the window out (of ROLLUP and CUBE one always does) is never \
         final, so its groups would never be sent",
    )
    .help("keep the window in every set: GROUP BY window(…), CUBE (the other keys); or use OUTPUT MODE UPDATE or COMPLETE"))
}

/// The same for sessions; `watermarked`: their time is made of a watermarked one.
pub fn check_sessions(mode: OutputMode, closes: bool, watermarked: bool) -> Result<()> {
    if mode == OutputMode::Append && !closes && watermarked {
        return Err(Error::unsupported("OUTPUT MODE APPEND wants sessions of a watermarked column itself: what an expression makes of it, or the start of its window, carries no watermark")
            .help("session_window(column, …), or session_window(window_time(window), …), or use OUTPUT MODE UPDATE"));
    }
    check_aggregate(mode, closes, true, false)
}

/// Sorting and limits that no Top-N stands for.
pub fn check_top(mode: OutputMode, sorts: bool, limits: bool, aggregates: bool) -> Result<()> {
    if mode == OutputMode::Complete || (!sorts && !limits) {
        return Ok(());
    }
    if sorts && limits {
        return Err(Error::unsupported("ORDER BY with OFFSET and no LIMIT can't be kept over a stream: nearly all rows would change their place with each that comes")
            .help("add LIMIT n, of whole numbers"));
    }
    if limits && mode == OutputMode::Update {
        return Err(Error::unsupported(
            "LIMIT without ORDER BY runs in OUTPUT MODE APPEND only: the first n rows are never replaced",
        )
        .help("add ORDER BY, use OUTPUT MODE COMPLETE, or leave LIMIT out"));
    }
    if limits {
        return Ok(());
    }
    let error = Error::unsupported("ORDER BY can't be kept over a stream whose rows are sent as they change");
    Err(if aggregates {
        error.help("add LIMIT n, use OUTPUT MODE COMPLETE, or leave ORDER BY out")
    } else {
        error.help("add LIMIT n, or leave ORDER BY out")
    })
}

/// The mode table's row for a Top-N. `partitioned`: by anything; `closes`: by a watermarked time.
pub fn check_top_n(mode: OutputMode, partitioned: bool, closes: bool) -> Result<()> {
    if mode != OutputMode::Append || closes {
        return Ok(());
    }
    if !partitioned {
        return Err(Error::unsupported(
            "OUTPUT MODE APPEND can't run ORDER BY … LIMIT over a stream: a row that sorts before those already sent may always come",
        )
        .help("use OUTPUT MODE UPDATE or COMPLETE"));
    }
    Err(Error::unsupported(
        "OUTPUT MODE APPEND can't run this Top-N: no partition is ever final, so nothing would ever be sent",
    )
    .help("PARTITION BY a window of a watermarked time, number by one (ORDER BY time, ascending), or use OUTPUT MODE UPDATE or COMPLETE"))
}

/// What the target takes of a Top-N.
pub fn check_top_target(mode: OutputMode, target: &TargetTraits, retracts: bool) -> Result<()> {
    check_target(mode, target, false)?;
    if retracts && !target.deletes {
        return Err(Error::unsupported(format!(
            "this query can take rows back (those that fall out of the first n), and {} only appends",
            target.name
        ))
        .help(
            "send it INTO TABLE or CONSOLE, or PARTITION BY a window of a watermarked time and use OUTPUT MODE APPEND",
        ));
    }
    Ok(())
}

/// What the target takes of a join of two streams.
pub fn check_join_target(mode: OutputMode, target: &TargetTraits, retracts: bool) -> Result<()> {
    check_target(mode, target, false)?;
    if retracts && !target.deletes {
        return Err(Error::unsupported(format!(
            "this query can take rows back (what was sent of a row without a partner, when it finds one), and {} only appends",
            target.name
        ))
        .help("send it INTO TABLE or CONSOLE, or use OUTPUT MODE APPEND with watermarks and a bound in time"));
    }
    Ok(())
}

/// What the target takes.
pub fn check_target(mode: OutputMode, target: &TargetTraits, retracts: bool) -> Result<()> {
    if !target.modes.contains(&mode) {
        let names: Vec<String> = target.modes.iter().map(|m| format!("{m:?}").to_uppercase()).collect();
        return Err(Error::unsupported(format!(
            "{} can't take OUTPUT MODE {}",
            target.name,
            format!("{mode:?}").to_uppercase()
        ))
        .help(format!("it takes {}", names.join(", "))));
    }
    if retracts { check_takes_back(target, "a group may cease to be, or to fulfil HAVING") } else { Ok(()) }
}

/// What takes rows back for a reason of its own wants a target that takes deletes.
pub fn check_takes_back(target: &TargetTraits, why: &str) -> Result<()> {
    if target.deletes {
        return Ok(());
    }
    Err(Error::unsupported(format!("this query can take rows back ({why}), and {} only appends", target.name))
        .help("send it INTO TABLE or CONSOLE, or use OUTPUT MODE APPEND with a watermark"))
}
