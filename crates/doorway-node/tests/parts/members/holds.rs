//! What commands do to holds.

use std::collections::BTreeSet;

use doorway_node::members::{
    Answer, Command, GroupState, HOLDS_LIMIT, Hold, HoldId, MemberId, RecordError, SeatId,
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
    let answer = state.apply(&hold(&id("a", 1, late), None));
    assert_eq!(refused(answer), RecordError::Orphan);
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
