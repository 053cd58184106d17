//! The workloads: Levada's rows a second, batch DataFusion's on the same files in the same run, and the ratio; then what small batches, a
//! restart with much state, the process itself and inputs of unusual shape take.
//!
//! `BENCH_DATA=folder cargo bench --bench workloads [-- name …]` — the folder holds `bids-json`, `bids-parquet`, `users-json`,
//! `users-parquet`, of 20 files each; one file is one batch. Levada runs with a durable checkpoint beside the data; batch DataFusion runs the
//! same question, in its own SQL, over an external table. Both are timed in turn, `BENCH_RUNS` times (5); medians are printed. A name picks the
//! parts that begin with it, such as `W2` or `small`. These machines are noisy: quote the ratio.

mod batch;
mod large;
mod levada;
mod memory;
mod nexmark;
mod small;
mod throughput;

use std::path::PathBuf;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What is measured, where, and how often.
pub struct Asked {
    pub data: PathBuf,
    pub runs: usize,
    names: Vec<String>,
}

impl Asked {
    /// Whether the part `name` is to be run.
    pub fn wants(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|asked| name.starts_with(asked.as_str()))
    }
}

fn main() {
    let Some(data) = std::env::var_os("BENCH_DATA").map(PathBuf::from) else {
        println!("BENCH_DATA names no folder: nothing to measure");
        return;
    };
    let runs = std::env::var("BENCH_RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(5);
    let names = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let asked = Asked { data, runs, names };
    throughput::run_all(&asked);
    nexmark::run_all(&asked);
    small::batches(&asked);
    small::restart(&asked);
    small::process(&asked);
    large::run_all(&asked);
}

/// The middle one.
pub fn median(mut seconds: Vec<f64>) -> f64 {
    percentile(&mut seconds, 50)
}

/// The value below which `percent` of the values are.
pub fn percentile(seconds: &mut [f64], percent: usize) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[(seconds.len() * percent / 100).min(seconds.len() - 1)]
}
