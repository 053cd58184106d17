//! Which combinations of a scenario's matrix are run.
//!
//! A fault that needs two things at once (a crash here, with so many partitions) is found by any set of combinations in
//! which every two values of two axes meet. Such a set is about as large as the product of the two longest axes, where all
//! combinations are the product of all axes.

use std::collections::BTreeSet;
use std::str::FromStr;

/// Of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Combinations {
    /// So many that every two values of two axes are met together.
    #[default]
    Pairs,
    All,
    /// So many, spread evenly.
    Some(usize),
}

impl FromStr for Combinations {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "pairs" => Ok(Combinations::Pairs),
            "all" => Ok(Combinations::All),
            _ => match text.parse() {
                Ok(n) if n > 0 => Ok(Combinations::Some(n)),
                _ => Err("expected pairs, all or a number from 1".into()),
            },
        }
    }
}

impl Combinations {
    /// Places of values on the axes, for each combination that is run, in the order of all: the last axis turns fastest.
    /// `axes` are the numbers of values.
    pub fn of(self, axes: &[usize]) -> Vec<Vec<usize>> {
        let mut all = vec![Vec::new()];
        for axis in axes {
            all = all
                .iter()
                .flat_map(|start: &Vec<usize>| (0..*axis).map(|n| [start.as_slice(), &[n]].concat()))
                .collect();
        }
        match self {
            Combinations::All => all,
            Combinations::Some(wanted) => spread(all, wanted),
            Combinations::Pairs => pairs(all),
        }
    }
}

/// Each `n`-th is taken off the diagonal, so that no axis is left out where its length divides the distance.
fn spread(all: Vec<Vec<usize>>, wanted: usize) -> Vec<Vec<usize>> {
    if wanted >= all.len() {
        return all;
    }
    let distance = all.len() / wanted;
    let places: BTreeSet<usize> = (0..wanted).map(|n| n * distance + n % distance).collect();
    all.into_iter().enumerate().filter(|(n, _)| places.contains(n)).map(|(_, one)| one).collect()
}

/// An axis, a value of it; another axis, a value of that.
type Pair = (usize, usize, usize, usize);

fn pairs_of(one: &[usize]) -> impl Iterator<Item = Pair> + '_ {
    one.iter().enumerate().flat_map(move |(a, x)| (a + 1..one.len()).map(move |b| (a, *x, b, one[b])))
}

/// Takes what meets the most pairs that were not met yet, the first of several, until all are.
fn pairs(all: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    let mut missing: BTreeSet<Pair> = all.iter().flat_map(|one| pairs_of(one)).collect();
    let mut chosen = BTreeSet::new();
    while !missing.is_empty() {
        let meets = |one: &Vec<usize>| pairs_of(one).filter(|pair| missing.contains(pair)).count();
        let best = all.iter().map(meets).enumerate().max_by_key(|(n, met)| (*met, std::cmp::Reverse(*n)));
        let Some((best, _)) = best else { break };
        missing.retain(|pair| !pairs_of(&all[best]).any(|met| met == *pair));
        chosen.insert(best);
    }
    // With one axis there are no pairs.
    if chosen.is_empty() {
        return all;
    }
    chosen.into_iter().map(|n| all[n].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_two_values_of_two_axes_meet_in_a_fraction_of_all() {
        let axes = [20, 3, 3, 2];
        let all = Combinations::All.of(&axes);
        assert_eq!((all.len(), &all[1][..]), (360, &[0, 0, 0, 1][..]));
        let some = Combinations::Pairs.of(&axes);
        let met = |of: &[Vec<usize>]| of.iter().flat_map(|one| pairs_of(one)).collect::<BTreeSet<Pair>>();
        assert_eq!(met(&some), met(&all));
        assert!((60..=70).contains(&some.len()), "{}", some.len());
        assert!(some.is_sorted());
    }

    #[test]
    fn one_axis_is_run_whole_and_none_is_one_combination() {
        assert_eq!(Combinations::Pairs.of(&[3]), [[0], [1], [2]]);
        assert_eq!(Combinations::Pairs.of(&[1, 1, 1, 1]), [[0, 0, 0, 0]]);
        assert_eq!(Combinations::Some(2).of(&[2, 2]), [[0, 0], [1, 1]]);
    }

    #[test]
    fn what_is_asked_for_is_a_word_or_a_number() {
        assert_eq!("all".parse(), Ok(Combinations::All));
        assert_eq!("7".parse(), Ok(Combinations::Some(7)));
        assert!("0".parse::<Combinations>().is_err() && "pair".parse::<Combinations>().is_err());
    }
}
