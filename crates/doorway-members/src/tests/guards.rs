//! What each guard is for: the same faults with the guard and without it.

use std::time::Duration;

use doorway_node::members::{Command, SeatId, ViewStore as _};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::world::{LEASE, World, join};
use crate::guards::Switches;
use crate::types::Vote;

const FIVE: [&str; 5] = ["a", "b", "c", "d", "e"];

/// How long it takes until a command through one of these nodes is answered.
async fn time_to_put(world: &World, names: &[String], limit: Duration) -> Option<Duration> {
    let begin = Instant::now();
    let seat = world.seat(&names[0], true).id;
    while begin.elapsed() < limit {
        for name in names {
            if world.put(name, join(seat, 1)).await.is_ok() {
                return Some(begin.elapsed());
            }
        }
        sleep(Duration::from_millis(50)).await;
    }
    None
}

/// The leader is gone, and both others stand for election at the same moments because their
/// timeouts are equal. Returns how long they need to elect a leader.
async fn collision(order: bool, election: bool) -> Option<Duration> {
    let mut world = World::new(1);
    world.switches = Switches { order, election, timeout: Some(LEASE / 7), ..Switches::default() };
    world.found(&["a", "b", "c"]).await;
    sleep(LEASE / 3).await;
    let leader = world.wait_for_leader().await;
    world.isolate(&leader);
    time_to_put(&world, &world.others(&[&leader]), LEASE * 6).await
}

/// Without guards 1 and 3, two members with equal timeouts refuse each other for ever. Each of the
/// guards alone is enough here.
#[tokio::test(start_paused = true)]
async fn guards_1_and_3_end_collisions_of_candidates() {
    assert_eq!(collision(false, false).await, None);
    let ordered = collision(true, false).await;
    assert!(ordered.is_some_and(|took| took < LEASE * 6 / 10), "{ordered:?}");
    let drawn = collision(false, true).await;
    assert!(drawn.is_some_and(|took| took < LEASE * 3), "{drawn:?}");
}

/// Guard 1 is how openraft orders votes, unless its feature `single-term-leader` is on.
#[test]
fn votes_of_one_term_are_ordered() {
    assert!(Vote::new(2, 2) > Vote::new(2, 1));
    assert!(Vote::new(2, 1) < Vote::new(2, 2));
}

/// Guard 1 in a group: as soon as the leader is gone, another one is elected.
#[tokio::test(start_paused = true)]
async fn a_dead_leader_is_always_followed_by_another() {
    for seed in 0..10 {
        let mut world = World::new(seed * 100);
        world.found(&["a", "b", "c"]).await;
        sleep(Duration::from_millis(1_000 + 37 * seed % 400)).await;
        let leader = world.wait_for_leader().await;
        world.isolate(&leader);
        let took = time_to_put(&world, &world.others(&[&leader]), LEASE * 6).await;
        assert!(took.is_some_and(|took| took < LEASE * 6 / 10), "seed {seed}: {took:?}");
    }
}

/// A leader that reaches one follower only, which is connected to two more. The fifth is alone.
/// With writes, commands go on coming to the old leader. The election timeouts of the members, in
/// milliseconds, are drawn if none are given. Returns how long the connected majority needs.
async fn bridge(
    seed: u64,
    switches: Switches,
    timeouts: Option<[u64; 5]>,
    writes: bool,
) -> Option<Duration> {
    let mut world = World::new(seed * 100);
    for (place, name) in FIVE.iter().enumerate() {
        let timeout = timeouts.map(|timeouts| Duration::from_millis(timeouts[place]));
        world.switches = Switches { timeout, ..switches };
        world.start(name).await;
    }
    world.found_started(&FIVE).await;
    sleep(Duration::from_millis(1_000 + 37 * seed % 400)).await;
    let leader = world.wait_for_leader().await;
    let others = world.others(&[&leader]);
    for name in &others[1..] {
        world.cut(&leader, name);
    }
    for name in &others[..3] {
        world.cut(&others[3], name);
    }
    let old = world.store(&leader);
    let writing = tokio::spawn(async move {
        loop {
            sleep(Duration::from_millis(200)).await;
            if writes {
                let _ = timeout(LEASE / 20, old.put(join(SeatId(1), 1))).await;
            }
        }
    });
    // The commands of the connected majority would go to the old leader through the bridge, too.
    let majority = others[..3].to_vec();
    let begin = Instant::now();
    let mut took = None;
    while took.is_none() && begin.elapsed() < LEASE * 6 {
        sleep(Duration::from_millis(50)).await;
        let leads = majority.iter().any(|name| world.store(name).leads());
        took = leads.then(|| begin.elapsed());
    }
    if took.is_some() {
        let put = time_to_put(&world, &majority, LEASE * 3).await;
        took = took.zip(put).map(|(elected, put)| elected + put);
    }
    writing.abort();
    took
}

#[tokio::test(start_paused = true)]
async fn guards_2_and_3_let_a_connected_majority_elect_a_leader() {
    for seed in 0..10 {
        let took = bridge(seed, Switches::default(), None, true).await;
        assert!(took.is_some_and(|took| took < LEASE * 3), "seed {seed}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_guard_2_a_connected_majority_waits_for_ever() {
    let without = Switches { silence: false, refusal: false, ..Switches::default() };
    assert_eq!(bridge(1, without, None, false).await, None);
    // It is not enough to stop the heartbeats: commands keep the followers loyal, too.
    let without = Switches { refusal: false, ..Switches::default() };
    assert_eq!(bridge(1, without, None, true).await, None);
}

/// Guard 3 matters with election timeouts that fit badly, which openraft draws now and then. Of
/// random ones, about one in ten fits as badly as these.
#[tokio::test(start_paused = true)]
async fn without_guard_3_members_chase_each_other_for_ever() {
    let timeouts = Some([1246, 1238, 1293, 1121, 816]);
    let without = Switches { election: false, ..Switches::default() };
    for seed in [1, 2] {
        assert_eq!(bridge(seed, without, timeouts, true).await, None, "seed {seed}");
        let took = bridge(seed, Switches::default(), timeouts, true).await;
        assert!(took.is_some_and(|took| took < LEASE * 3), "seed {seed}: {took:?}");
    }
}

/// Guard 4: a follower whose disk has stalled still gets its commands agreed on.
#[tokio::test(start_paused = true)]
async fn a_node_with_a_slow_disk_can_renew() {
    for message in [true, false] {
        let mut world = World::new(1);
        world.switches.message = message;
        world.found(&["a", "b", "c"]).await;
        let leader = world.wait_for_leader().await;
        let slow = world.others(&[&leader])[0].clone();
        let seat = world.seat(&slow, true).id;
        world.disks[&slow].set_delay(Duration::from_secs(6));
        // Something to write, which the slow disk does not finish.
        world.insist(&leader, join(seat, 1)).await;
        sleep(Duration::from_millis(100)).await;
        let begin = Instant::now();
        let answer = world.put(&slow, join(seat, 2)).await;
        if message {
            assert!(answer.is_ok() && begin.elapsed() < LEASE / 20, "{answer:?}");
        } else {
            assert!(answer.is_err(), "{answer:?}");
        }
    }
}

/// The leader is gone, all disks are slow, and every member repeats its commands, as members do
/// while nobody answers. Returns how long it takes until a command is agreed on.
async fn storm(slots: bool) -> Option<Duration> {
    let mut world = World::new(1);
    world.switches.slots = slots;
    world.found(&FIVE).await;
    let leader = world.wait_for_leader().await;
    world.disks.values().for_each(|disk| disk.set_delay(LEASE / 100));
    world.isolate(&leader);
    let others = world.others(&[&leader]);
    let mut repeating = JoinSet::new();
    for name in others.iter().flat_map(|name| [name; 20]) {
        let (store, seat) = (world.store(name), world.seat(name, true).id);
        repeating.spawn(async move {
            loop {
                let _ = store.put(join(seat, 1)).await;
                sleep(LEASE / 1000).await;
            }
        });
    }
    time_to_put(&world, &others, LEASE * 6).await
}

/// Guard 6: a new leader is not kept from leading by the commands that wait for it.
#[tokio::test(start_paused = true)]
async fn a_leader_with_many_commands_and_a_slow_disk_still_leads() {
    let (without, with) = (storm(false).await, storm(true).await);
    println!("without the guard {without:?}, with it {with:?}");
    assert!(with.is_some_and(|took| took < LEASE), "{with:?}");
    assert!(without.is_none_or(|took| took > LEASE), "{without:?}");
}

/// Guard 5: a command that cannot be agreed on ends with an error.
#[tokio::test(start_paused = true)]
async fn every_command_is_answered_in_time() {
    for limit in [true, false] {
        let mut world = World::new(1);
        world.switches.limit = limit;
        world.found(&["a", "b", "c"]).await;
        let leader = world.wait_for_leader().await;
        world.isolate(&leader);
        let store = world.store(&leader);
        let put = timeout(LEASE * 6, store.put(Command::Bump { number: 0 })).await;
        // Without the guard, there is no answer at all.
        let unsure = put.as_ref().is_ok_and(Result::is_err);
        assert_eq!((unsure, put.is_err()), (limit, !limit), "{put:?}");
    }
}

/// Guard 5: when the core of openraft has ended, the store ends.
#[tokio::test(start_paused = true)]
async fn the_store_ends_with_its_core() {
    let world = World::founded(&["a"]).await;
    let store = world.store("a");
    store.core().engine().raft.shutdown().await.unwrap();
    let why = timeout(LEASE, store.ended()).await.unwrap();
    assert!(why.contains("stopped"), "{why}");
}
