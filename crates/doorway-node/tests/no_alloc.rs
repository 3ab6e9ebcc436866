//! The memory that the locks of a shard use: nothing for a re-entry, and little when they are idle.
//!
//! There is one test in this file, because allocations are counted for the whole process.

use std::alloc::System;
use std::sync::Arc;
use std::time::Duration;

use doorway_core::{Mode, NodeId};
use doorway_node::Name;
use doorway_node::locks::{
    ClientId, LockRequest, Rule, RuleBook, Seating, Shard, ShardEffects, Slot,
};
use doorway_node::messages::AlgorithmMessage;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How many locks are measured.
const COUNT: usize = 100_000;

const ASK: LockRequest =
    LockRequest { mode: Mode::Exclusive, session: 1, reserve: 0, now: Duration::ZERO };

/// Two nodes, the first of which keeps this many idle locks.
fn pair(keep_idle: usize) -> [Shard; 2] {
    [0, 1].map(|node| {
        let rule = Rule::new("carvalho-roucairol", 2, 1, 0).expect("a rule");
        let rules = RuleBook::of_all(rule);
        let members = vec!["a".to_owned(), "b".to_owned()];
        let seating = Arc::new(Seating { members, me: NodeId(node), rules });
        let mut shard = Shard::new(Arc::clone(&seating), keep_idle);
        shard.start(1, &seating, Vec::new(), Duration::ZERO, &mut ShardEffects::default());
        shard
    })
}

/// The first node acquires a lock, which takes one message in each direction.
fn acquire([near, far]: &mut [Shard; 2], slot: Slot) -> ClientId {
    let (mut asked, mut answered) = (ShardEffects::default(), ShardEffects::default());
    let (client, _) = near.acquire(slot, ASK, &mut asked);
    let arrive = |shard: &mut Shard,
                  from,
                  messages: Vec<(NodeId, AlgorithmMessage)>,
                  out: &mut ShardEffects| {
        for (_, message) in messages {
            shard.receive(from, &message, Duration::ZERO, out);
        }
    };
    arrive(far, NodeId(0), asked.messages, &mut answered);
    arrive(near, NodeId(1), answered.messages, &mut ShardEffects::default());
    client
}

/// How many more bytes are allocated than at first. Reallocated bytes are part of both sums.
fn more(region: &Region<'_, System>) -> usize {
    let change = region.change();
    change.bytes_allocated - change.bytes_deallocated
}

fn a_re_entry_allocates_nothing() {
    let mut pair = pair(10);
    let slot = pair[0].open(&Name::new("orders").expect("a name"));
    let client = acquire(&mut pair, slot);
    let [shard, _] = &mut pair;
    let mut out = ShardEffects::default();
    shard.leave(client, Duration::ZERO, &mut out);
    let again = |shard: &mut Shard, out: &mut ShardEffects| {
        let (client, fence) = shard.acquire(slot, ASK, out);
        assert!(fence.is_some());
        shard.leave(client, Duration::ZERO, out);
    };
    again(shard, &mut out);
    let region = Region::new(ALLOCATOR);
    for _ in 0..100_000 {
        again(shard, &mut out);
    }
    // A few allocations belong to other threads of the process. If re-entries allocated, there
    // would be a hundred thousand.
    let allocations = region.change().allocations;
    assert!(allocations < 10, "{allocations} allocations");
    assert!(out.messages.is_empty());
}

/// The bytes of each of many locks at the first node, all held at once or held one by one.
fn bytes_of_a_lock(at_once: bool) -> usize {
    let mut pair = pair(COUNT);
    // The memory of the other node is not counted: it knows all locks already.
    for name in (0..COUNT).map(name) {
        let step = AlgorithmMessage { view: 1, clock: 0, lock: name, payload: vec![0, 1] };
        pair[1].receive(NodeId(0), &step, Duration::ZERO, &mut ShardEffects::default());
    }
    let mut clients = Vec::with_capacity(COUNT);
    let region = Region::new(ALLOCATOR);
    for name in (0..COUNT).map(name) {
        let slot = pair[0].open(&name);
        let client = acquire(&mut pair, slot);
        if at_once {
            clients.push(client);
        } else {
            pair[0].leave(client, Duration::ZERO, &mut ShardEffects::default());
            pair[0].close(slot);
        }
    }
    assert_eq!(pair[0].counters()[0].1.kept, COUNT as u64);
    more(&region) / COUNT
}

fn name(number: usize) -> Name {
    Name::new(&format!("orders/{number:06}")).expect("a name")
}

#[test]
fn locks_take_little_memory_and_re_entries_none() {
    a_re_entry_allocates_nothing();
    let (held, idle) = (bytes_of_a_lock(true), bytes_of_a_lock(false));
    println!("a lock: {held} bytes held, {idle} bytes idle");
    assert!(held <= 400, "{held} bytes");
    assert!(idle <= 310, "{idle} bytes");
}
