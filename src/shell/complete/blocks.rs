//! Brackets and clauses of a query's tokens: where a SELECT begins and ends.

use super::around::Tok;

/// The parentheses around the token `at`, from the outside to the inside, each without its brackets; first everything.
pub(super) fn groups(toks: &[Tok<'_>], at: usize) -> Vec<(usize, usize)> {
    let mut open = Vec::new();
    for (n, tok) in toks[..at].iter().enumerate() {
        match tok.text {
            "(" => open.push(n),
            ")" => _ = open.pop(),
            _ => {}
        }
    }
    let inner = open.into_iter().map(|n| (n + 1, closing(toks, n)));
    std::iter::once((0, toks.len())).chain(inner).filter(|(from, to)| (*from..=*to).contains(&at)).collect()
}

/// The part between set operators around the token `at`.
pub(super) fn part(toks: &[Tok<'_>], at: usize) -> (usize, usize) {
    let (mut from, mut depth) = (0, 0_usize);
    for (n, tok) in toks.iter().enumerate() {
        match tok.text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            // `* EXCEPT (…)` is no set operator.
            _ if depth == 0
                && tok.is_any(&["UNION", "EXCEPT", "INTERSECT"])
                && !toks.get(n + 1).is_some_and(|next| next.is_sign("(") && !tok.is("UNION")) =>
            {
                if n >= at {
                    return (from, n);
                }
                from = n + 1;
            }
            _ => {}
        }
    }
    (from, toks.len())
}

pub(super) fn at_depth_zero(toks: &[Tok<'_>], wanted: impl Fn(&Tok<'_>) -> bool) -> Option<usize> {
    let mut depth = 0_usize;
    toks.iter().position(|tok| {
        match tok.text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => return depth == 0 && wanted(tok),
        }
        false
    })
}

/// The token that closes the parenthesis at `open`, or the end.
pub(super) fn closing(toks: &[Tok<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (n, tok) in toks.iter().enumerate().skip(open) {
        match tok.text {
            "(" => depth += 1,
            ")" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return n;
                }
            }
            _ => {}
        }
    }
    toks.len()
}

/// Whether the tokens are a SELECT, or change a table: something that names tables.
pub(super) fn is_block(toks: &[Tok<'_>]) -> bool {
    at_depth_zero(toks, |tok| tok.is("SELECT")).is_some()
        || toks.first().is_some_and(|tok| tok.is_any(&["FROM", "UPDATE", "DELETE", "INSERT"]))
}
