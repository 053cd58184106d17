//! Which files make up a version of an operator's state, and which are no longer needed.
//!
//! Version N is the newest intact snapshot S ≤ N and the deltas S+1 … N; without a snapshot, the deltas 0 … N:
//!
//! ```text
//! 0.delta 1.delta 2.delta 3.delta 4.delta 5.delta        version 5: 3.snapshot, 4.delta, 5.delta
//!                         3.snapshot                     and, should that be lost, 0.delta … 5.delta
//! ```
//! So a lost snapshot only lengthens the recovery, while a lost delta that no snapshot covers ends it.

use std::collections::BTreeSet;

use super::file::{self, Kind, Owner, StateContents};
use crate::checkpoint::{Store, parse_number};
use crate::error::{Error, Result};

/// The files of one operator, by version.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Versions {
    pub deltas: BTreeSet<u64>,
    pub snapshots: BTreeSet<u64>,
}

/// What a version is made of.
#[derive(Debug, Clone, Default)]
pub struct Recovery {
    /// To begin with; `None`: with nothing.
    pub snapshot: Option<StateContents>,
    /// To be read and applied in this order.
    pub deltas: Vec<u64>,
    /// Damaged snapshots that were not needed: for a notice to the user.
    pub passed_over: Vec<Error>,
}

/// Lists the state files in an operator's folder.
///
/// # Errors
/// Corrupt: a name that no file of ours has.
pub fn list_versions(store: &dyn Store, folder: &str) -> Result<Versions> {
    let mut versions = Versions::default();
    for name in store.list(folder)?.into_iter().filter(|name| name != "schema") {
        let (number, ending) = name.split_once('.').unwrap_or((&name, ""));
        match (parse_number(number), ending) {
            (Some(n), "delta") => versions.deltas.insert(n),
            (Some(n), "snapshot") => versions.snapshots.insert(n),
            _ => {
                let path = store.describe(&format!("{folder}/{name}"));
                return Err(Error::corrupt(
                    path,
                    "not a file of Levada: names here are N.delta and N.snapshot; move it away",
                ));
            }
        };
    }
    Ok(versions)
}

/// Finds what `version` is made of and reads its snapshot.
///
/// # Errors
/// Corrupt, by path: a delta that no intact snapshot covers is missing. (One that is damaged is found when it is read.)
pub fn recover(store: &dyn Store, folder: &str, owner: &Owner, version: u64) -> Result<Recovery> {
    let versions = list_versions(store, folder)?;
    let mut recovery = Recovery::default();
    for snapshot in versions.snapshots.range(..=version).rev().copied() {
        recovery.deltas = deltas(store, folder, &versions, snapshot + 1, version, &recovery)?;
        match file::read(store, folder, owner, Kind::Snapshot, snapshot) {
            Ok(contents) => {
                recovery.snapshot = Some(contents);
                return Ok(recovery);
            }
            Err(damaged @ Error::Corrupt { .. }) => recovery.passed_over.push(damaged),
            Err(error) => return Err(error),
        }
    }
    recovery.deltas = deltas(store, folder, &versions, 0, version, &recovery)?;
    Ok(recovery)
}

/// How many bytes the files of `version` have, as far as the store knows: what is read where none is damaged.
///
/// # Errors
/// Those of [`list_versions`].
pub fn length(store: &dyn Store, folder: &str, version: u64) -> Result<u64> {
    let versions = list_versions(store, folder)?;
    let snapshot = versions.snapshots.range(..=version).next_back().copied();
    let first = snapshot.map_or(0, |snapshot| snapshot + 1);
    let deltas = versions.deltas.iter().filter(|n| (first..=version).contains(*n)).map(|n| (Kind::Delta, *n));
    let files = snapshot.map(|n| (Kind::Snapshot, n)).into_iter().chain(deltas);
    Ok(files.filter_map(|(kind, n)| store.length(&file::path(folder, kind, n))).sum())
}

/// The deltas `first ..= last`, all of which must be there.
fn deltas(
    store: &dyn Store,
    folder: &str,
    versions: &Versions,
    first: u64,
    last: u64,
    so_far: &Recovery,
) -> Result<Vec<u64>> {
    let Some(missing) = (first..=last).find(|n| !versions.deltas.contains(n)) else {
        return Ok((first..=last).collect());
    };
    // A damaged snapshot would have covered it: that is the file to put back.
    if let Some(damaged) = so_far.passed_over.first() {
        return Err(damaged.clone());
    }
    let path = store.describe(&file::path(folder, Kind::Delta, missing));
    let message =
        format!("the file is missing, and no snapshot from {missing} on replaces it: version {last} can't be rebuilt");
    Err(Error::corrupt(path, message))
}

/// Removes what no version from `keep_from` on needs: deltas and snapshots below the newest intact snapshot that is
/// not younger, and snapshots above it but for the two newest. Answers how many files went.
///
/// The snapshot that is relied upon is read before anything below it is removed: best done outside a batch.
///
/// # Errors
/// Io. Corrupt: a foreign file.
pub fn purge(store: &dyn Store, folder: &str, keep_from: u64) -> Result<usize> {
    let versions = list_versions(store, folder)?;
    let mut removed = 0;
    for base in versions.snapshots.range(..=keep_from).rev().copied() {
        let deltas = versions.deltas.range(..=base).map(|n| (Kind::Delta, *n));
        let below: Vec<_> = deltas.chain(versions.snapshots.range(..base).map(|n| (Kind::Snapshot, *n))).collect();
        if !below.is_empty() && !file::is_intact(store, folder, Kind::Snapshot, base)? {
            continue;
        }
        let above = versions.snapshots.range(base + 1..).rev().skip(2).map(|n| (Kind::Snapshot, *n));
        for (kind, n) in below.into_iter().chain(above) {
            store.delete(&file::path(folder, kind, n))?;
            removed += 1;
        }
        break;
    }
    Ok(removed)
}

/// Discards the files of versions above `version` (of all, without one): what a run left that died, or was killed,
/// between its state and its commit. Their batches are run again. A snapshot is only written of what is committed; one
/// above it is left from a version of Levada that wrote it earlier, and goes.
///
/// # Errors
/// Io. Corrupt: a foreign file.
pub fn discard_above(store: &dyn Store, folder: &str, version: Option<u64>) -> Result<()> {
    let versions = list_versions(store, folder)?;
    let from = version.map_or(0, |version| version + 1);
    // Snapshots first and the newest delta first: what is left after a crash is a beginning without gaps.
    for n in versions.snapshots.range(from..).rev() {
        store.delete(&file::path(folder, Kind::Snapshot, *n))?;
    }
    for n in versions.deltas.range(from..).rev() {
        store.discard(&file::path(folder, Kind::Delta, *n))?;
    }
    Ok(())
}
