//! One keeper, step by step.

use std::sync::Arc;
use std::time::Duration;

use doorway_node::members::{Answer, ClockTimes, Command, Event, Keeper, Output, PutId, SeatId};

use super::{LEASE_MS, RULES, founded};

/// The commands that a keeper puts in this step.
fn puts(keeper: &mut Keeper, ms: u64, event: Event) -> Vec<(PutId, Command)> {
    let at = Duration::from_millis(ms);
    let mut out = Vec::new();
    keeper.step(ClockTimes { boot: at, raw: at }, event, &mut out);
    let put = |output| match output {
        Output::Put(put, command) => Some((put, command)),
        _ => None,
    };
    out.into_iter().filter_map(put).collect()
}

#[test]
fn a_process_joins_and_leaves_although_every_answer_is_late() {
    let mut record = founded(1);
    let mut keeper = Keeper::new(SeatId(1), RULES, 5, Arc::new(record.clone()));
    // Each command is sent again before the answer to the one before it has come.
    let mut answers: Vec<(u64, PutId, Answer)> = Vec::new();
    let late = u64::from(LEASE_MS) / 10;
    let mut left = false;
    for tick in 0..1000 {
        let ms = tick * 100;
        let mut events = vec![Event::Tick];
        let due = answers.extract_if(.., |(at, ..)| *at <= ms);
        events.extend(due.map(|(_, put, answer)| Event::Answer(put, Some(answer))));
        if ms == 50_000 {
            assert!(keeper.id().is_some(), "it has joined");
            events.push(Event::Leave);
        }
        for event in events {
            for (put, command) in puts(&mut keeper, ms, event) {
                answers.push((ms + late, put, record.apply(&command)));
            }
        }
        left = keeper.id().is_none();
    }
    assert!(left && record.members.is_empty(), "it has left: {record:?}");
}

/// The group agrees on a lease that is thirty times as long. The membership is renewed with it
/// before the old lease has run out, and in time for the promises to clients, which last for seven
/// tenths.
#[test]
fn a_longer_lease_begins_before_the_shorter_one_ends() {
    let mut record = founded(1);
    let mut keeper = Keeper::new(SeatId(1), RULES, 5, Arc::new(record.clone()));
    let most = Duration::from_millis(u64::from(LEASE_MS) * 7 / 10);
    let mut joined = None;
    // The second time, the membership has had the longer lease before.
    let changes = [(50_000, 30 * LEASE_MS), (100_000, LEASE_MS), (700_000, 30 * LEASE_MS)];
    for ms in (0..1_000_000).step_by(100) {
        if let Some((_, lease)) = changes.iter().find(|(at, _)| *at == ms) {
            record.apply(&Command::Lease(*lease));
        }
        let mut events = vec![Event::Record(Arc::new(record.clone())), Event::Tick];
        while let Some(event) = events.pop() {
            for (put, command) in puts(&mut keeper, ms, event) {
                events.push(Event::Answer(put, Some(record.apply(&command))));
            }
        }
        joined = joined.or(keeper.id());
        if ms > 10_000 {
            let left = keeper.deadline().expect("a lease").checked_sub(Duration::from_millis(ms));
            assert!(left.is_some_and(|left| left >= most), "{left:?} at {ms} ms");
        }
    }
    assert_eq!(keeper.id(), joined, "it is the same membership");
    let end = keeper.deadline().expect("a lease");
    assert!(
        end > Duration::from_millis(1_000_000 + 20 * u64::from(LEASE_MS)),
        "the longer lease was given: {end:?}"
    );
}
