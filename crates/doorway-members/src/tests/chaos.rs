//! Random faults: nodes lose power and come back, networks are cut and heal, disks stall.
//!
//! Whatever happens, all replicas apply the same entries in the same order, no command that was
//! answered is lost, and in the end the group works again. The faults are drawn from a seed. The
//! runs are not repeatable to the last message, because openraft draws its timeouts elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use doorway_node::members::{Answer, Command, GroupState, Record, ViewStore as _};
use parking_lot::Mutex;
use tokio::time::sleep;

use super::world::World;
use crate::RaftStore;
use crate::types::LogId;

const NODES: [&str; 5] = ["a", "b", "c", "d", "e"];
const SEEDS: u64 = 50;
const STEPS: usize = 25;

/// What the referee knows.
#[derive(Default)]
struct Referee {
    /// What was applied at each place of the log.
    applied: BTreeMap<u64, (LogId, Option<GroupState>)>,
    /// The answers to commands that begin a new view.
    views: Arc<Mutex<Vec<u64>>>,
}

impl Referee {
    /// Compare what a node has applied with what others have.
    fn look_at(&mut self, store: &RaftStore) {
        for (place, record) in std::mem::take(&mut *store.machine().applied.lock()) {
            let entry = (place, record);
            let known = self.applied.entry(place.index).or_insert_with(|| entry.clone());
            assert_eq!(*known, entry, "two replicas differ at {place}");
        }
    }

    /// Begin a new view through this node, now and then.
    fn write(&self, store: Arc<RaftStore>) {
        let views = Arc::clone(&self.views);
        tokio::spawn(async move {
            let number = store.watch().borrow().as_ref().map_or(0, |record| record.number);
            if let Ok(Answer::Done(number)) = store.put(Command::Bump { number }).await {
                views.lock().push(number);
            }
        });
    }

    /// Every answered command has begun a view of its own, and none of them is lost.
    fn judge(&self, record: &Record) {
        let views = self.views.lock();
        let distinct: BTreeSet<u64> = views.iter().copied().collect();
        assert_eq!(distinct.len(), views.len(), "two commands began the same view: {views:?}");
        let highest = distinct.last().copied().unwrap_or(0);
        assert!(record.number >= highest, "view {highest} is lost: {record:?}");
    }
}

async fn fault(world: &mut World, rng: &mut fastrand::Rng, nodes: &[&str], referee: &mut Referee) {
    let name = nodes[rng.usize(..nodes.len())];
    let other = nodes[rng.usize(..nodes.len())];
    let runs = world.running().iter().any(|it| it == name);
    match rng.u32(..10) {
        0..=2 if runs => {
            referee.look_at(&world.store(name));
            world.kill(name).await;
        }
        0..=4 if !runs => world.start(name).await,
        5 if name != other => world.cut(name, other),
        6 if name != other => world.cut_way(name, other),
        7 if runs => world.isolate(name),
        8 => world.disks[name].set_delay(Duration::from_millis(rng.u64(..3_000))),
        _ => world.heal(),
    }
}

async fn run(seed: u64) -> u64 {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut world = World::new(seed * 1_000);
    let nodes = &NODES[..if rng.bool() { 3 } else { 5 }];
    world.found(nodes).await;
    let mut referee = Referee::default();
    for _ in 0..STEPS {
        fault(&mut world, &mut rng, nodes, &mut referee).await;
        for _ in 0..rng.u32(1..6) {
            sleep(Duration::from_millis(rng.u64(..500))).await;
            let running = world.running();
            if let Some(name) = running.get(rng.usize(..nodes.len())) {
                referee.write(world.store(name));
            }
        }
        for name in world.running() {
            referee.look_at(&world.store(&name));
        }
    }
    world.heal();
    for name in nodes {
        world.disks[*name].set_delay(Duration::ZERO);
        if !world.running().iter().any(|it| it == name) {
            world.start(name).await;
        }
    }
    for name in nodes {
        // An old view is refused, but that is an answer: the group works.
        world.insist(name, Command::Bump { number: u64::MAX }).await;
    }
    world.agree().await;
    for name in nodes {
        referee.look_at(&world.store(name));
    }
    assert!(referee.applied.len() > STEPS, "hardly anything was applied");
    let record = world.record("a").unwrap();
    referee.judge(&record);
    for name in nodes {
        world.kill(name).await;
    }
    record.number
}

#[tokio::test(start_paused = true)]
async fn replicas_agree_and_nothing_that_was_answered_is_lost() {
    let mut views = 0;
    for seed in 0..SEEDS {
        println!("seed {seed}");
        views += run(seed).await;
    }
    assert!(views > SEEDS * 5, "the group has hardly worked: {views} views");
}
