//! How a group agrees on its rules for locks, and what a keeper does about rules that its process
//! cannot run.

use std::sync::Arc;
use std::time::Duration;

use doorway_node::members::{
    AgreedRules, Answer, ClockTimes, Command, Event, GroupState, Keeper, Loss, Output, RULES_LIMIT,
    RecordError, RuleTables, SeatId,
};
use doorway_protocol::RuleTable;

use super::founded;
use super::record::{enter, join, refused};

/// Rules with one algorithm for all locks.
fn rules(algorithm: &str) -> RuleTables {
    RuleTables(vec![RuleTable::from([("algorithm".to_owned(), algorithm.to_owned())])])
}

#[test]
fn other_rules_begin_with_a_view() {
    let mut state = GroupState::new(founded(2)).with_rules(rules("lamport"));
    let first = state.record.rules;
    assert_eq!(first, rules("lamport").digest());
    let (number, next) = (state.record.number, rules("maekawa"));
    let early = Command::Rules { number: number + 1, rules: next.clone() };
    assert_eq!(refused(state.apply(&early)), RecordError::Changed);
    assert_eq!((state.record.rules, &*state.rules), (first, &rules("lamport")));
    let change = Command::Rules { number, rules: next.clone() };
    assert_eq!(state.apply(&change), Answer::Done(number + 1));
    assert_eq!((state.record.number, state.record.rules), (number + 1, next.digest()));
    assert_eq!(*state.rules, next);
    // The command was sent again.
    assert_eq!(refused(state.apply(&change)), RecordError::Changed);
    let long = rules(&"x".repeat(RULES_LIMIT));
    let change = Command::Rules { number: number + 1, rules: long };
    assert!(refused(state.apply(&change)).to_string().contains("at most 32768 are allowed"));
    assert_eq!(*state.rules, next, "nothing has changed");
    // A process that cannot run the rules cannot join.
    let stranger = Command::Join { seat: SeatId(1), nonce: 1, rules: first };
    assert_eq!(refused(state.apply(&stranger)), RecordError::OtherRules);
}

#[test]
fn rules_that_cannot_be_run_are_refused_with_a_reason() {
    AgreedRules::read(&rules("maekawa")).expect("good rules");
    assert!(AgreedRules::read(&rules("lampard")).unwrap_err().contains("lampard"));
    let mut newer = rules("maekawa");
    newer.0[0].insert("weights".to_owned(), "1 2 3".to_owned());
    assert!(AgreedRules::read(&newer).unwrap_err().contains("`weights`"));
}

/// A member whose version does not know the new rules leaves the others alone.
#[test]
fn a_member_that_cannot_run_the_rules_gives_up_its_membership() {
    let mut record = founded(2);
    let now = ClockTimes { boot: Duration::from_secs(1), raw: Duration::from_secs(1) };
    let mut keeper = Keeper::new(SeatId(1), record.rules, 5, Arc::new(record.clone()));
    let mut out = Vec::new();
    keeper.step(now, Event::Tick, &mut out);
    let Some(Output::Put(put, command)) = out.pop() else { panic!("it joins: {out:?}") };
    keeper.step(now, Event::Answer(put, Some(record.apply(&command))), &mut out);
    let id = keeper.id().expect("a member");
    record.apply(&enter(&record, id));
    join(&mut record, 2, 1);
    // The rules come before the record, which says that they count.
    let next = rules("lampard");
    out.clear();
    keeper.step(now, Event::Record(Arc::new(record.clone())), &mut out);
    keeper.step(now, Event::Rules { digest: next.digest(), usable: false }, &mut out);
    assert!(!out.iter().any(|output| matches!(output, Output::Discard(_))), "not yet: {out:?}");
    record.apply(&Command::Rules { number: record.number, rules: next });
    keeper.step(now, Event::Record(Arc::new(record.clone())), &mut out);
    assert!(out.contains(&Output::Discard(Loss::Rules)), "{out:?}");
    out.clear();
    let later = ClockTimes { boot: Duration::from_secs(9), raw: Duration::from_secs(9) };
    keeper.step(later, Event::Tick, &mut out);
    assert_eq!(out, [Output::Blocked(RecordError::OtherRules)], "it does not join again");
    // A newer version of the rules, which it can run.
    let good = rules("lamport");
    record.apply(&Command::Rules { number: record.number, rules: good.clone() });
    out.clear();
    keeper.step(later, Event::Rules { digest: good.digest(), usable: true }, &mut out);
    keeper.step(later, Event::Record(Arc::new(record)), &mut out);
    let joins = |output: &Output| matches!(output, Output::Put(_, Command::Join { .. }));
    assert!(out.iter().any(joins), "{out:?}");
}

/// A view that a node needs is asked for again until there is one.
#[test]
fn a_view_is_asked_for_until_there_is_a_newer_one() {
    let mut record = founded(1);
    let at =
        |ms: u64| ClockTimes { boot: Duration::from_millis(ms), raw: Duration::from_millis(ms) };
    let mut keeper = Keeper::new(SeatId(1), record.rules, 5, Arc::new(record.clone()));
    let mut out = Vec::new();
    keeper.step(at(0), Event::Tick, &mut out);
    let Some(Output::Put(put, command)) = out.pop() else { panic!("it joins: {out:?}") };
    keeper.step(at(0), Event::Answer(put, Some(record.apply(&command))), &mut out);
    let number = record.number;
    keeper.step(at(10), Event::Bump(number), &mut out);
    let mut bumps = 0;
    for ms in (10..6_000).step_by(100) {
        out.clear();
        keeper.step(at(ms), Event::Tick, &mut out);
        let is_bump = |it: &&Output| matches!(it, Output::Put(_, Command::Bump { .. }));
        bumps += out.iter().filter(is_bump).count();
    }
    assert!((3..=12).contains(&bumps), "{bumps} times, because nobody answers");
    record.apply(&Command::Bump { number });
    out.clear();
    keeper.step(at(6_100), Event::Record(Arc::new(record)), &mut out);
    keeper.step(at(8_000), Event::Tick, &mut out);
    let is_bump = |it: &Output| matches!(it, Output::Put(_, Command::Bump { .. }));
    assert!(!out.iter().any(is_bump), "{out:?}");
}
