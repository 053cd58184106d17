//! Failpoints that `crash` records arm, and whether they were reached: a crash that did not happen has tested nothing.

use super::answer::Failure;
use super::place::Place;
use super::script::Node;
use super::world::{World, quoted};
use crate::checkpoint::failpoint::Action;

/// A failpoint that the next step arms.
#[derive(Debug, Clone)]
pub struct Armed {
    pub point: String,
    pub hit: u64,
    pub action: Action,
}

impl Armed {
    /// Arms it in a query.
    ///
    /// # Errors
    /// There is no such query, or the point can't do that.
    pub fn arm(&self, world: &World, query: &str) -> Result<(), Failure> {
        let Armed { point, hit, action } = self;
        world.execute(&format!("CRASH QUERY {} AT '{point}' HIT {hit} AS {action}", quoted(query))).map(drop)
    }

    /// Whether it waits in a query.
    pub fn waits(&self, world: &World, query: &str) -> bool {
        world.armed(query).iter().any(|armed| armed.point == self.point && armed.action == self.action)
    }
}

/// What `crash` records have asked for.
#[derive(Debug, Default)]
pub struct Crashes {
    /// For the next step, of whichever query.
    next: Vec<Crash>,
    /// Armed in a query, and not reached yet.
    waiting: Vec<(String, Crash)>,
}

#[derive(Debug, Clone)]
struct Crash {
    place: Place,
    head: String,
    armed: Armed,
}

impl Crashes {
    /// A record asks for one more.
    ///
    /// # Errors
    /// The next step arms another one at the same point.
    pub fn add(&mut self, node: &Node, armed: Armed) -> Result<(), String> {
        if let Some(other) = self.next.iter().find(|other| other.armed.point == armed.point) {
            let (point, line) = (&armed.point, other.place.line);
            return Err(format!(
                "the next step arms failpoint {point} already (line {line}): one of the two would never be reached"
            ));
        }
        self.next.push(Crash { place: node.place.clone(), head: node.head.clone(), armed });
        Ok(())
    }

    /// Arms in a query what was asked for.
    ///
    /// # Errors
    /// Of the first that can't be armed.
    pub fn arm(&mut self, world: &World, query: &str) -> Result<(), Failure> {
        for crash in std::mem::take(&mut self.next) {
            crash.armed.arm(world, query)?;
            self.waiting.push((query.to_string(), crash));
        }
        Ok(())
    }

    /// A query was stepped: forgets what was reached. Answers what this step should have reached; a later hit may still come.
    pub fn stepped(&mut self, world: &World, query: &str) -> Option<String> {
        self.waiting.retain(|(of, crash)| of != query || crash.armed.waits(world, query));
        let missed = self.take(|of, crash| of == query && crash.armed.hit == 1);
        (!missed.is_empty()).then(|| format!("the step did not reach what was armed for it: {}", points(&missed)))
    }

    /// A query, or all of them, will be begun anew. Answers what was not reached.
    pub fn restarted(&mut self, world: &World, query: Option<&str>) -> Option<String> {
        self.waiting.retain(|(of, crash)| crash.armed.waits(world, of));
        let mut missed = self.take(|of, _| query.is_none_or(|query| of == query));
        if query.is_none() {
            missed.append(&mut self.next);
        }
        (!missed.is_empty()).then(|| format!("what was armed was not reached before this: {}", points(&missed)))
    }

    /// What was never reached: where it was asked for, and why it was not.
    pub fn unreached(self, world: &World) -> Vec<(Place, String, String)> {
        let never = self.next.into_iter().map(|crash| {
            let why = format!("failpoint {} was never armed: no step came behind this record", crash.armed.point);
            (crash.place, crash.head, why)
        });
        let waiting = self.waiting.into_iter().filter(|(of, crash)| crash.armed.waits(world, of));
        let missed = waiting.map(|(of, crash)| {
            let why = format!("failpoint {} of query {of} was armed and not reached", crash.armed.point);
            (crash.place, crash.head, why)
        });
        never.chain(missed).collect()
    }

    fn take(&mut self, which: impl Fn(&str, &Crash) -> bool) -> Vec<Crash> {
        let (taken, left) = std::mem::take(&mut self.waiting).into_iter().partition(|(of, crash)| which(of, crash));
        self.waiting = left;
        let taken: Vec<(String, Crash)> = taken;
        taken.into_iter().map(|(_, crash)| crash).collect()
    }
}

fn points(crashes: &[Crash]) -> String {
    let one = |crash: &Crash| format!("{} (line {})", crash.armed.point, crash.place.line);
    crashes.iter().map(one).collect::<Vec<_>>().join(", ")
}
