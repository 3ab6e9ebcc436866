//! What commands do to holds, and how a keeper cares for those of its clients and for orphans.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use doorway_node::members::{
    Answer, ClockTimes, Command, Event, GroupState, HOLDS_LIMIT, Hold, HoldId, Keeper, MemberId,
    Output, PutId, RecordError, SeatId,
};
use doorway_node::{Fence, Name};
use proptest::prelude::*;

use super::founded;
use super::record::{any_command, enter, join, refused, up_to_date};

fn id(name: &str, fence: u64, member: MemberId) -> HoldId {
    HoldId { name: Name::new(name).expect("a name"), fence: Fence::new(1, fence), member }
}

fn hold(id: &HoldId, length_ms: Option<u64>) -> Command {
    Command::Hold { id: id.clone(), length_ms }
}

/// A group with a seated member of the first seat.
fn seated() -> (GroupState, MemberId) {
    let mut record = founded(2);
    let member = join(&mut record, 1, 1);
    let command = enter(&record, member);
    record.apply(&command);
    (GroupState::new(record), member)
}

fn orphans(state: &GroupState) -> BTreeSet<HoldId> {
    state.holds.orphans(&state.record).map(|(id, _)| id.clone()).collect()
}

#[test]
fn a_hold_is_an_orphan_once_its_member_is_gone() {
    let (mut state, member) = seated();
    let promised = id("a", 1, member);
    assert_eq!(state.apply(&hold(&promised, Some(60_000))), Answer::Done(1));
    assert_eq!((state.record.holds, state.holds.added()), (1, 1));
    assert!(orphans(&state).is_empty());
    state.apply(&Command::Leave { id: member });
    assert_eq!(orphans(&state), BTreeSet::from([promised.clone()]));
    let late = state.apply(&hold(&id("b", 1, member), None));
    assert_eq!(refused(late), RecordError::NotAMember(member), "it comes after the removal");
    // A drop of another grant, or of another member's promise, changes nothing.
    for other in [id("a", 2, member), id("a", 1, MemberId(9)), id("b", 1, member)] {
        state.apply(&Command::Drop(other));
        assert_eq!(orphans(&state).len(), 1);
    }
    state.apply(&Command::Drop(promised));
    assert_eq!(state.holds.iter().count(), 0);
}

#[test]
fn the_next_process_of_a_seat_takes_over_what_is_no_orphan_yet() {
    let (mut state, member) = seated();
    state.apply(&hold(&id("a", 1, member), Some(60_000)));
    let joining = Command::Join { seat: SeatId(1), nonce: 2, rules: super::RULES };
    let Answer::Joined(heir) = state.apply(&joining) else { panic!("it may join") };
    state.apply(&hold(&id("a", 1, heir), Some(50_000)));
    let kept = Hold { seat: SeatId(1), length_ms: Some(60_000) };
    assert_eq!(state.holds.iter().collect::<Vec<_>>(), [(&id("a", 1, heir), &kept)]);
    let command = enter(&state.record, heir);
    state.apply(&command);
    assert!(orphans(&state).is_empty(), "the heir keeps the promise");
    state.apply(&Command::Leave { id: heir });
    let joining = Command::Join { seat: SeatId(1), nonce: 3, rules: super::RULES };
    let Answer::Joined(late) = state.apply(&joining) else { panic!("it may join") };
    for number in [1, 2] {
        let answer = state.apply(&hold(&id("a", number, late), None));
        assert_eq!(refused(answer), RecordError::Orphan, "it has granted nothing yet");
    }
    assert_eq!(orphans(&state).len(), 1);
}

#[test]
fn an_evicted_member_promises_nothing_and_their_number_is_limited() {
    let (mut state, member) = seated();
    for number in 0..HOLDS_LIMIT {
        state.apply(&hold(&id(&format!("lock-{number}"), 1, member), None));
    }
    let more = state.apply(&hold(&id("more", 1, member), None));
    assert_eq!(
        refused(more).to_string(),
        "the group keeps 2000 locks for longer than a lease already; release some, or ask for a \
         shorter time"
    );
    let again = state.apply(&hold(&id("lock-7", 1, member), None));
    assert_eq!(again, Answer::Done(1), "a command that was sent again needs no room");
    state.apply(&Command::Evict { id: member, number: 1 });
    let evicted = state.apply(&hold(&id("lock-7", 1, member), None));
    assert_eq!(refused(evicted), RecordError::Evicted(member));
}

/// A command about holds, or about seats and members.
fn any_change() -> impl Strategy<Value = Command> {
    let any_id = || {
        ("[ab]", 1..3_u64, 1..8_u64)
            .prop_map(|(name, fence, member)| id(&name, fence, MemberId(member)))
    };
    let length = proptest::option::of(1..4_u64);
    prop_oneof![
        2 => any_command(),
        1 => (any_id(), length).prop_map(|(id, length_ms)| Command::Hold { id, length_ms }),
        1 => any_id().prop_map(Command::Drop),
    ]
}

proptest! {
    #[test]
    fn the_rules_of_holds_hold(commands in proptest::collection::vec(any_change(), 1..120)) {
        let mut state = GroupState::new(founded(3));
        for command in commands {
            let command = up_to_date(&state.record, command);
            let before = state.clone();
            let answer = state.apply(&command);
            prop_assert_eq!(state.holds.added(), state.record.holds);
            if matches!(answer, Answer::Refused(_)) {
                prop_assert_eq!(&state, &before, "a refused command changes nothing");
                continue;
            }
            let after = orphans(&state);
            for orphan in orphans(&before) {
                let dropped = command == Command::Drop(orphan.clone());
                prop_assert!(dropped || after.contains(&orphan), "only a drop ends an orphan");
            }
            let mut grants = BTreeSet::new();
            for (id, hold) in state.holds.iter() {
                let grant = (id.name.clone(), id.fence, hold.seat);
                prop_assert!(grants.insert(grant), "each seat promises a grant once");
                if let Ok(member) = state.record.member(id.member) {
                    prop_assert_eq!(member.seat, hold.seat);
                }
                if let Some(known) = before.holds.get(id) {
                    let grows = hold.length_ms.is_none()
                        || known.length_ms.is_some() && hold.length_ms >= known.length_ms;
                    prop_assert!(grows, "promises become longer only");
                }
            }
        }
    }
}

/// A keeper beside a store that answers at once, unless it is silent. Its boot clock runs 8 % fast.
struct KeeperWithStore {
    keeper: Keeper,
    state: GroupState,
    time: Duration,
    silent: bool,
    /// The store refuses to drop holds.
    keeps: bool,
    /// What the keeper has said about holds.
    said: Vec<Output>,
}

impl KeeperWithStore {
    /// A process of the second seat that has just entered.
    fn new(state: GroupState) -> Self {
        let mut kept = Self::waiting(state);
        kept.tell(Event::Reclaimed);
        kept.pass(Duration::from_secs(2));
        assert!(kept.is_seated());
        kept
    }

    /// A process of the second seat that waits until its former clients are back.
    fn waiting(state: GroupState) -> Self {
        let keeper = Keeper::new(SeatId(2), super::RULES, 9, Arc::clone(&state.record));
        let time = Duration::from_secs(100);
        let (silent, keeps, said) = (false, false, Vec::new());
        let mut kept = Self { keeper, state, time, silent, keeps, said };
        for event in [Event::Leads(true), Event::Up(SeatId(1))] {
            kept.tell(event);
        }
        kept
    }

    fn is_seated(&self) -> bool {
        let member = self.keeper.id().map(|id| self.state.record.member(id));
        member.is_some_and(|member| member.is_ok_and(|it| it.since.is_some()))
    }

    fn tell(&mut self, event: Event) {
        let now = ClockTimes { boot: self.time * 108 / 100, raw: self.time };
        let mut out = Vec::new();
        self.keeper.step(now, event, &mut out);
        let mut answers: Vec<(PutId, Answer)> = Vec::new();
        for output in out {
            match output {
                Output::Put(put, Command::Drop(_)) if self.keeps => {
                    answers.push((put, Answer::Refused(RecordError::UnknownSeat)));
                }
                Output::Put(put, command) if !self.silent => {
                    answers.push((put, self.state.apply(&command)));
                }
                Output::Held { .. } | Output::Dropped { .. } | Output::Blocked(_) => {
                    self.said.push(output);
                }
                _ => {}
            }
        }
        for (put, answer) in answers {
            self.tell(Event::Answer(put, Some(answer)));
        }
    }

    fn show(&mut self) {
        self.tell(Event::Holds(Arc::clone(&self.state.holds)));
        self.tell(Event::Record(Arc::clone(&self.state.record)));
    }

    /// Let time pass, in ticks.
    fn pass(&mut self, time: Duration) {
        let end = self.time + time;
        while self.time < end {
            self.time += Duration::from_millis(100);
            self.tell(Event::Tick);
            self.show();
        }
    }

    fn member(&self) -> MemberId {
        self.keeper.id().expect("it has joined")
    }
}

#[test]
fn an_orphan_is_dropped_when_its_full_length_has_passed_by_the_slower_clock() {
    let (mut state, member) = seated();
    let minute = id("a", 1, member);
    state.apply(&hold(&minute, Some(60_000)));
    state.apply(&hold(&id("b", 1, member), None));
    let mut kept = KeeperWithStore::new(state);
    kept.pass(Duration::from_secs(5)); // The time before it is an orphan does not count.
    let command = Command::Leave { id: member };
    kept.state.apply(&command);
    kept.show();
    kept.pass(Duration::from_mins(1));
    assert!(kept.state.holds.get(&minute).is_some(), "its clock has seen 64.8 s by now");
    kept.pass(Duration::from_secs(1));
    assert!(kept.state.holds.get(&minute).is_none());
    kept.pass(Duration::from_hours(1));
    assert_eq!(orphans(&kept.state), BTreeSet::from([id("b", 1, member)]), "it is without end");
}

#[test]
fn an_orphan_is_not_counted_before_its_length_is_known() {
    let (mut state, member) = seated();
    state.apply(&hold(&id("a", 1, member), Some(1_000)));
    let mut kept = KeeperWithStore::new(state.clone());
    kept.state.apply(&hold(&id("a", 1, member), Some(60_000)));
    kept.state.apply(&Command::Leave { id: member });
    // The record comes from a peer, and the store shows older holds.
    kept.tell(Event::Record(Arc::clone(&kept.state.record)));
    for _ in 0..100 {
        kept.time += Duration::from_millis(100);
        kept.tell(Event::Tick);
    }
    assert_eq!(orphans(&kept.state).len(), 1);
}

#[test]
fn a_keeper_asks_until_the_group_keeps_a_hold_and_drops_what_came_late() {
    let mut kept = KeeperWithStore::new(seated().0);
    let own = id("a", 7, kept.member());
    let (name, fence) = (own.name.clone(), own.fence);
    kept.silent = true;
    let event = Event::Hold { name: name.clone(), fence, length_ms: Some(60_000) };
    kept.tell(event);
    assert!(kept.said.is_empty());
    kept.silent = false;
    kept.pass(Duration::from_secs(2));
    let held = Output::Held { name: name.clone(), fence, refused: None };
    assert_eq!(kept.said, [held]);
    assert!(kept.state.holds.get(&own).is_some());

    kept.said.clear();
    kept.tell(Event::Drop { name: name.clone(), fence });
    assert_eq!(kept.said, [Output::Dropped { name, fence }]);
    // A command without an answer is applied after all.
    kept.state.apply(&hold(&own, Some(60_000)));
    kept.pass(Duration::from_secs(3));
    assert_eq!(kept.state.holds.iter().count(), 0);
}

#[test]
fn a_release_is_reported_only_when_the_group_has_dropped_the_hold() {
    let mut kept = KeeperWithStore::new(seated().0);
    let own = id("a", 7, kept.member());
    let (name, fence) = (own.name.clone(), own.fence);
    kept.tell(Event::Hold { name: name.clone(), fence, length_ms: None });
    kept.show();
    kept.said.clear();
    // An operator removes the machine. The leader does not know yet whose hold it is.
    kept.state.apply(&Command::DropSeat(SeatId(2)));
    kept.keeps = true;
    kept.pass(Duration::from_secs(5));
    kept.tell(Event::Drop { name: name.clone(), fence });
    kept.pass(Duration::from_secs(30));
    assert!(kept.state.record.member(own.member).is_err(), "the membership is over");
    assert!(orphans(&kept.state).contains(&own));
    let dropped = Output::Dropped { name, fence };
    assert!(!kept.said.contains(&dropped), "{:?}", kept.said);
    kept.keeps = false;
    kept.pass(Duration::from_secs(3));
    assert!(kept.said.contains(&dropped), "{:?}", kept.said);
    assert_eq!(kept.state.holds.iter().count(), 0);
}

#[test]
fn a_hold_is_of_the_seat_whose_process_has_made_it() {
    let (mut state, member) = seated();
    let (kept, gone) = (id("a", 1, member), id("b", 1, member));
    for promised in [&kept, &gone] {
        state.apply(&hold(promised, None));
    }
    let of = |state: &GroupState, id: &HoldId, seat: u64| {
        state.holds.is_of_seat(&state.record, id, SeatId(seat))
    };
    let unknown = id("c", 1, MemberId(member.0 + 1));
    for seat in [1, 2] {
        assert_eq!(of(&state, &kept, seat), seat == 1, "its member is in the record");
        assert_eq!(of(&state, &id("c", 1, member), seat), seat == 1, "it may still make it");
        assert!(!of(&state, &unknown, seat), "nobody knows yet whose member it will be");
    }
    state.apply(&Command::Drop(gone.clone()));
    state.apply(&Command::Leave { id: member });
    for seat in [1, 2] {
        assert_eq!(of(&state, &kept, seat), seat == 1, "it is an orphan");
        assert!(of(&state, &gone, seat), "there will be no such hold again");
        assert!(!of(&state, &unknown, seat));
    }
}

#[test]
fn a_promise_of_an_earlier_process_waits_until_the_group_has_room_for_it() {
    let (mut state, member) = seated();
    for number in 0..HOLDS_LIMIT {
        state.apply(&hold(&id(&format!("lock-{number}"), 1, member), None));
    }
    let joining = Command::Join { seat: SeatId(2), nonce: 5, rules: super::RULES };
    let Answer::Joined(earlier) = state.apply(&joining) else { panic!("it may join") };
    let command = enter(&state.record, earlier);
    state.apply(&command);
    let mut kept = KeeperWithStore::waiting(state);
    let (name, fence) = (Name::new("a").unwrap(), Fence::new(1, 7));
    kept.tell(Event::Hold { name: name.clone(), fence, length_ms: Some(60_000) });
    kept.tell(Event::Reclaimed);
    for _ in 0..10 {
        // The other member lives.
        kept.state.apply(&Command::Renew { id: member, cut: vec![] });
        kept.pass(Duration::from_secs(1));
    }
    let full = Output::Blocked(RecordError::TooManyHolds);
    assert!(!kept.said.is_empty() && kept.said.iter().all(|it| *it == full), "{:?}", kept.said);
    assert!(!kept.is_seated(), "it does not serve without the promise");
    kept.said.clear();
    kept.state.apply(&Command::Drop(id("lock-7", 1, member)));
    kept.pass(Duration::from_secs(3));
    let held = Output::Held { name, fence, refused: None };
    assert_eq!(kept.said.last(), Some(&held));
    assert!(kept.is_seated());
}

#[test]
fn holds_of_a_membership_that_is_over_are_left_to_the_group() {
    let mut kept = KeeperWithStore::new(seated().0);
    let first = id("a", 7, kept.member());
    let (name, fence) = (first.name.clone(), first.fence);
    kept.tell(Event::Hold { name: name.clone(), fence, length_ms: Some(60_000) });
    kept.tell(Event::Lapsed);
    kept.pass(Duration::from_secs(40));
    assert_ne!(kept.member(), first.member, "it has joined again");
    assert!(orphans(&kept.state).contains(&first), "its client may not know of the loss");
    kept.pass(Duration::from_secs(40));
    assert!(orphans(&kept.state).is_empty());
}
