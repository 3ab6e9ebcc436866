//! One keeper, step by step.

use std::sync::Arc;
use std::time::Duration;

use doorway_node::members::{Answer, Command, Event, Keeper, Now, Output, PutId, SeatId};

use super::{LEASE_MS, RULES, founded};

/// The commands that a keeper puts in this step.
fn puts(keeper: &mut Keeper, ms: u64, event: Event) -> Vec<(PutId, Command)> {
    let at = Duration::from_millis(ms);
    let mut out = Vec::new();
    keeper.step(Now { boot: at, raw: at }, event, &mut out);
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
