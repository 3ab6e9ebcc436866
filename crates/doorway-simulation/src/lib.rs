//! The whole product under one seed.
//!
//! A run has nodes, sessions, ledgers and clients as they are shipped. Network, disks, clocks and
//! processes are simulated, and time is virtual. One seed draws everything: the group, its
//! settings, what clients do, which faults are in play, and when they happen. The same seed gives
//! the same run.
//!
//! A run has four phases. First clients compete while faults happen, and every step is checked.
//! Then all faults end, and every client must enter within a stated time. Then clients make no new
//! requests, and every request must be answered. At last all clients leave, and nothing may be left
//! of them. `docs/simulation.md` describes faults and checks.

mod book;
mod client;
mod clock;
mod context;
mod diagram;
mod disk;
mod log;
mod network;
mod node;
mod queue;
mod random;
mod register;
mod settings;
mod story;
mod world;

use context::Context;
use random::Random;
use settings::Settings;
use story::Story;
use world::World;

pub use context::Counts;
pub use settings::Fault;
pub use world::LIVENESS;

/// How a run has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What the run has counted.
    pub counts: Counts,
    /// What must never happen and did, if anything.
    pub violation: Option<String>,
    /// The log of the run, if it was wanted.
    pub log: String,
}

/// What a seed draws for a run, besides much else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    /// The list of members is fixed.
    FixedMembers,
    /// The group agrees on its members.
    AgreedMembers,
    /// Clients keep locks until others want them.
    KeptLocks,
    /// Clients hold locks without end.
    EndlessLocks,
    /// One node stays away when the faults end.
    Outage,
}

/// What the seed of a run draws.
pub fn features(seed: u64) -> Vec<Feature> {
    let settings = Settings::draw(&mut Random::new(seed));
    let agreed = settings.agreed.is_some();
    let features = [
        (Feature::FixedMembers, !agreed),
        (Feature::AgreedMembers, agreed),
        (Feature::KeptLocks, settings.clients.iter().any(|client| client.keep)),
        (Feature::EndlessLocks, settings.endless),
        (Feature::Outage, settings.outage.is_some()),
    ];
    features.into_iter().filter(|(_, drawn)| *drawn).map(|(feature, _)| feature).collect()
}

/// Make the run of a seed. With `logs`, everything that happens is written into its log.
pub fn run(seed: u64, logs: bool) -> Outcome {
    let context = play(seed, logs, false);
    Outcome {
        counts: context.counts,
        violation: context.violation,
        log: context.log.text.unwrap_or_default(),
    }
}

/// Draw the end of the run of a seed as an SVG, with the locks that its violation concerns, or with
/// all locks.
pub fn draw(seed: u64) -> String {
    let context = play(seed, false, true);
    let story = context.story.unwrap_or_default();
    let violation = context.violation.as_deref();
    diagram::draw(&story, &context.settings, seed, context.now, violation)
}

fn play(seed: u64, logs: bool, draws: bool) -> Context {
    let mut world = World::new(seed, logs);
    world.context.story = draws.then(Story::default);
    while world.step() {}
    world.context
}
