//! Leases that are held, left behind, taken over and lost.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::Runtime;

use super::*;
use crate::checkpoint::{RemoteStore, Store};
use crate::storage::pretend::{self, Bucket, Failure};
use crate::storage::{Location, Settings};

/// A bucket, and the root of a checkpoint in it.
struct Place {
    bucket: Arc<Bucket>,
    root: Root,
    _runtime: Runtime,
}

fn place(name: &str) -> Place {
    let (bucket, runtime) = (pretend::bucket(name), Runtime::new().unwrap());
    let root = {
        let _entered = runtime.enter();
        match Location::parse(&format!("s3://{name}/ck"), "a checkpoint").unwrap() {
            Location::Remote(url) => Root::open(&url, &Settings::default()).unwrap(),
            Location::Local(_) => unreachable!(),
        }
    };
    Place { bucket, root, _runtime: runtime }
}

impl Place {
    fn take(&self, terms: &LeaseTerms) -> Result<Arc<RemoteLease>> {
        RemoteLease::take(self.root.clone(), "s3://b/ck", terms)
    }

    fn take_elsewhere(&self, terms: &LeaseTerms) -> Arc<RemoteLease> {
        RemoteLease::take_as("elsewhere", self.root.clone(), "s3://b/ck", terms).unwrap()
    }

    /// What the lease holds, changed.
    fn rewrite(&self, change: impl Fn(&mut Holder)) {
        let mut holder: Holder = serde_json::from_str(&self.bucket.text("ck/lease")).unwrap();
        change(&mut holder);
        self.bucket.overwrite("ck/lease", serde_json::to_string(&holder).unwrap().into_bytes());
    }
}

fn terms(timeout: Duration) -> LeaseTerms {
    LeaseTerms { timeout, ..LeaseTerms::default() }
}

/// Nothing beats by itself while a test lasts.
fn quiet() -> LeaseTerms {
    terms(Duration::from_secs(3600))
}

#[test]
fn a_second_query_of_this_process_is_refused_at_once_and_a_released_lease_is_free() {
    let place = place("lease-here");
    let first = place.take(&quiet()).unwrap();
    let message = place.take(&quiet()).unwrap_err().to_string();
    assert!(message.starts_with("checkpoint s3://b/ck is in use by another query of this process (run "), "{message}");
    assert!(message.contains(first.run()), "{message}");
    first.check().unwrap();
    first.end();
    assert!(first.check().unwrap_err().to_string().contains("the run that held s3://b/ck has ended"));
    let second = place.take(&quiet()).unwrap();
    assert_eq!(second.epoch(), first.epoch() + 1);
}

#[test]
fn a_living_holder_elsewhere_is_noticed_by_its_heartbeat() {
    let place = place("lease-lives");
    let holder = place.take_elsewhere(&terms(Duration::from_secs(10)));
    let told = Arc::new(AtomicUsize::new(0));
    let telling = told.clone();
    let notices: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(move |line: &str| {
        assert!(line.contains("waiting 10 s for a sign of life"), "{line}");
        telling.fetch_add(1, Ordering::SeqCst);
    });
    let refused = place.take(&LeaseTerms { notices, ..quiet() }).unwrap_err();
    assert!(matches!(refused, Error::Conflict { .. }), "{refused:?}");
    assert!(refused.to_string().contains(&format!("(run {}, since", holder.run())), "{refused}");
    assert_eq!(told.load(Ordering::SeqCst), 1);
    holder.check().unwrap();
}

#[test]
fn a_silent_holder_is_followed_by_the_next_epoch_and_learns_of_it() {
    let place = place("lease-silent");
    let dead = place.take_elsewhere(&quiet());
    place.rewrite(|holder| holder.timeout_ms = 50);
    let next = place.take(&quiet()).unwrap();
    assert_eq!(next.epoch(), dead.epoch() + 1);
    dead.check().expect("nobody has told it yet");
    let lost = dead.shared.beat().unwrap_err().to_string();
    assert!(lost.starts_with("checkpoint s3://b/ck was taken over by another query of this process"), "{lost}");
    assert!(lost.contains(next.run()) && lost.contains(dead.run()), "{lost}");
    assert_eq!(dead.check().unwrap_err().to_string(), lost);
    assert_eq!(dead.known().unwrap_err().to_string(), lost);
    dead.end();
    next.shared.beat().expect("the end of the one before is nothing to it");
}

#[test]
fn a_holder_that_was_stopped_asks_before_it_writes() {
    let place = place("lease-stopped");
    let stopped = place.take_elsewhere(&terms(Duration::from_millis(500)));
    let ours = RemoteStore::leased(place.root.clone(), stopped);
    // Its heart stands still in the middle of a beat.
    place.bucket.hold("lease");
    place.bucket.await_held("lease");
    let next = place.take(&quiet()).unwrap();
    let theirs = RemoteStore::leased(place.root.clone(), next.clone());
    let late = std::thread::spawn(move || ours.put_new("offsets/7", &mut |out| out.write_all(b"ours")));
    place.bucket.release();
    let error = late.join().unwrap().unwrap_err();
    assert!(error.to_string().contains(&format!("query of this process (run {}", next.run())), "{error}");
    theirs.put_new("offsets/7", &mut |out| out.write_all(b"theirs")).unwrap();
}

#[test]
fn what_a_later_epoch_has_written_is_not_replaced() {
    let place = place("lease-epochs");
    let dead = place.take_elsewhere(&quiet());
    let before = RemoteStore::leased(place.root.clone(), dead);
    before.put_new("state/a/7.delta", &mut |out| out.write_all(b"unfinished")).unwrap();
    place.rewrite(|holder| holder.timeout_ms = 50);
    let now = RemoteStore::leased(place.root.clone(), place.take(&quiet()).unwrap());
    before.discard("state/a/7.delta").unwrap();
    now.discard("state/a/7.delta").unwrap();
    now.put_new("state/a/7.delta", &mut |out| out.write_all(b"done")).unwrap();
    let late = before.put_new("state/a/7.delta", &mut |out| out.write_all(b"late")).unwrap_err();
    assert!(matches!(late, Error::Conflict { .. }), "{late:?}");
    assert_eq!(place.bucket.text("ck/state/a/7.delta"), "done");
}

#[test]
fn a_beat_whose_answer_was_lost_is_known_again() {
    let place = place("lease-lost-answer");
    let lease = place.take(&quiet()).unwrap();
    place.bucket.fail("lease", 1, Failure::AnswerLost);
    assert!(lease.shared.beat().unwrap_err().is_transient());
    lease.shared.beat().unwrap();
    lease.shared.beat().unwrap();
    let holder: Holder = serde_json::from_str(&place.bucket.text("ck/lease")).unwrap();
    assert_eq!((holder.run.as_str(), holder.released), (lease.run(), false));
    lease.end();
    let holder: Holder = serde_json::from_str(&place.bucket.text("ck/lease")).unwrap();
    assert!(holder.released);
}

#[test]
fn damage_and_loss_are_no_lasting_harm() {
    let place = place("lease-damaged");
    place.bucket.overwrite("ck/lease", "rubbish");
    let lease = place.take(&terms(Duration::from_millis(50))).unwrap();
    let epoch = lease.epoch();
    place.bucket.remove("ck/lease");
    // Its heart may have been faster.
    let lost = lease.shared.beat().unwrap_err().to_string();
    assert!(lost.contains("has lost its lease: s3://lease-damaged/ck/lease was removed"), "{lost}");
    let next = place.take(&quiet()).unwrap();
    assert!(next.epoch() >= epoch, "{} after {epoch}", next.epoch());
}

#[test]
fn a_store_that_heeds_no_conditions_is_refused() {
    let place = place("lease-heedless");
    place.bucket.ignore_conditions();
    let error = place.take(&quiet()).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error:?}");
    assert!(error.help_text().is_some_and(|help| help.contains("If-None-Match")), "{error}");
}

#[test]
fn waiting_can_be_given_up() {
    let place = place("lease-given-up");
    let _holder = place.take_elsewhere(&quiet());
    let error = place.take(&LeaseTerms { given_up: Arc::new(|| true), ..quiet() }).unwrap_err();
    assert!(matches!(error, Error::Cancelled { .. }), "{error:?}");
}
