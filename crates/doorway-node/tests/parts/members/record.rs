//! What commands do to the record.

use std::collections::BTreeMap;

use doorway_node::members::{
    Answer, Command, MEMBERS_OF_SEAT_LIMIT, MemberId, Record, RecordError, Seat, SeatId,
};
use proptest::prelude::*;

use super::{RULES, founded};

pub(super) fn join(record: &mut Record, seat: u64, nonce: u128) -> MemberId {
    match record.apply(&Command::Join { seat: SeatId(seat), nonce, rules: RULES }) {
        Answer::Joined(id) => id,
        other => panic!("{other:?}"),
    }
}

pub(super) fn enter(record: &Record, id: MemberId) -> Command {
    let seat = record.member(id).expect("a member").seat;
    let (number, replaces) = (record.number, record.seen(seat, Some(id)));
    Command::Enter { id, number, replaces, inherits: true }
}

pub(super) fn refused(answer: Answer) -> RecordError {
    match answer {
        Answer::Refused(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_process_joins_once_and_enters() {
    let mut record = founded(2);
    let one = join(&mut record, 1, 5);
    assert_eq!(join(&mut record, 1, 5), one, "the command was sent again");
    let command = enter(&record, one);
    assert_eq!(record.apply(&command), Answer::Done(1));
    assert_eq!(record.seated().map(|member| member.id).collect::<Vec<_>>(), [one]);
    assert_eq!(refused(record.apply(&command)), RecordError::Changed, "of a former view");
    let again = enter(&record, one);
    assert_eq!(refused(record.apply(&again)), RecordError::Seated(one));
    let stranger = Command::Join { seat: SeatId(9), nonce: 1, rules: RULES };
    assert_eq!(refused(record.apply(&stranger)), RecordError::UnknownSeat);
    let other = Command::Join { seat: SeatId(2), nonce: 1, rules: RULES + 1 };
    assert_eq!(refused(record.apply(&other)), RecordError::OtherRules);
}

#[test]
fn a_member_is_awaited_for_the_longest_lease_that_it_was_given() {
    let mut record = founded(1);
    let id = join(&mut record, 1, 5);
    let renew = Command::Renew { id, cut: Vec::new() };
    for (lease_ms, longest) in [(29_000, 29_000), (11_000, 29_000), (30_000, 30_000)] {
        record.apply(&Command::Lease(lease_ms));
        let Answer::Renewed { lease_ms: given, .. } = record.apply(&renew) else { panic!() };
        assert_eq!(given, lease_ms);
        // The answer to the renewal before this one may still come, and give the longer lease.
        assert_eq!(record.member(id).expect("a member").lease_ms, longest);
    }
}

#[test]
fn processes_of_a_fixed_group_are_succeeded_like_all_others() {
    let mut record = founded(2);
    record.succeed_fixed(70, &[SeatId(1), SeatId(2)]);
    let old: Vec<MemberId> = record.seated().map(|member| member.id).collect();
    assert_eq!(old.len(), 2, "both belong to the view that never runs");
    let heir = join(&mut record, 1, 1);
    assert!(!old.contains(&heir));
    let command = enter(&record, heir);
    assert_eq!(record.apply(&command), Answer::Done(71));
    let seated: Vec<MemberId> = record.seated().map(|member| member.id).collect();
    assert_eq!(seated, [old[1], heir], "the view waits for the other machine");
    assert_eq!(record.member(heir).map(|member| member.unbroken), Ok(0), "all claims are good");
    let gone = Command::Remove { number: 71, seat: SeatId(2), all: record.seen(SeatId(2), None) };
    assert_eq!(record.apply(&gone), Answer::Done(72), "or until its lease is over");
}

#[test]
fn a_restarted_process_takes_the_place_of_its_predecessor() {
    let mut record = founded(2);
    let old = join(&mut record, 1, 1);
    let command = enter(&record, old);
    record.apply(&command);
    let heir = join(&mut record, 1, 2);
    assert_eq!(record.number, 1, "a member that waits changes no view");
    let command = enter(&record, heir);
    record.apply(&Command::Renew { id: old, cut: Vec::new() });
    assert_eq!(
        refused(record.apply(&command)),
        RecordError::Changed,
        "the predecessor lives, as its beat shows"
    );
    let command = enter(&record, heir);
    assert_eq!(record.apply(&command), Answer::Done(2));
    assert_eq!(record.members.len(), 1);
    let renewal = Command::Renew { id: old, cut: Vec::new() };
    assert_eq!(refused(record.apply(&renewal)), RecordError::NotAMember(old));
}

#[test]
fn a_renewal_that_comes_first_refuses_the_removal() {
    let mut record = founded(2);
    let one = join(&mut record, 1, 1);
    let command = enter(&record, one);
    record.apply(&command);
    let (number, seat) = (record.number, SeatId(1));
    let remove = Command::Remove { number, seat, all: record.seen(seat, None) };
    let renew = Command::Renew { id: one, cut: Vec::new() };
    assert!(matches!(record.apply(&renew), Answer::Renewed { since: Some(1), number: 1, .. }));
    assert_eq!(refused(record.apply(&remove)), RecordError::Changed);
    let remove = Command::Remove { number, seat, all: record.seen(seat, None) };
    assert_eq!(record.apply(&remove), Answer::Done(2));
    assert!(record.members.is_empty());
}

#[test]
fn members_of_a_seat_go_together_while_one_of_them_waits() {
    let mut record = founded(1);
    let old = join(&mut record, 1, 1);
    let command = enter(&record, old);
    record.apply(&command);
    let before = record.seen(SeatId(1), None);
    join(&mut record, 1, 2);
    let alone = Command::Remove { number: 1, seat: SeatId(1), all: before };
    assert_eq!(refused(record.apply(&alone)), RecordError::Changed);
}

#[test]
fn an_evicted_member_cannot_renew_and_is_in_the_view_until_it_leaves() {
    let mut record = founded(1);
    let one = join(&mut record, 1, 1);
    let command = enter(&record, one);
    record.apply(&command);
    assert_eq!(record.apply(&Command::Evict { id: one, number: 1 }), Answer::Done(1));
    let renew = Command::Renew { id: one, cut: Vec::new() };
    assert_eq!(refused(record.apply(&renew)), RecordError::Evicted(one));
    assert_eq!(record.seated().count(), 1);
    assert_eq!(record.apply(&Command::Leave { id: one }), Answer::Done(2));
    assert_eq!(record.seated().count(), 0);
}

#[test]
fn operators_get_sentences() {
    let mut record = founded(2);
    let seat = |id, name: &str| Seat {
        id: SeatId(id),
        name: name.to_owned(),
        address: format!("{name}:7001"),
        voter: false,
    };
    for (command, sentence) in [
        (Command::AddSeat(seat(9, "n1")), "`n1` belongs to the group already"),
        (Command::AddSeat(seat(9, "")), "a name and an address have 1 to 100 bytes"),
        (Command::Lease(1), "a lease takes 2000 to 300000 ms, not 1 ms"),
        (Command::Voters(Vec::new()), "at least one machine must vote"),
        (
            Command::DropSeat(SeatId(7)),
            "this machine does not belong to the group, or has another data directory than before",
        ),
    ] {
        assert_eq!(refused(record.apply(&command)).to_string(), sentence);
    }
    assert_eq!(record, founded(2), "nothing has changed");
    record.apply(&Command::AddSeat(seat(9, "new")));
    let member = join(&mut record, 9, 1);
    record.apply(&Command::DropSeat(SeatId(9)));
    assert!(record.member(member).expect("still a member").evicted);
    record.apply(&Command::Voters(vec![SeatId(1)]));
    assert_eq!(refused(record.apply(&Command::DropSeat(SeatId(1)))), RecordError::NoVoter);
}

/// A machine that was removed has a place in the view until its lease is over. All places together
/// have to fit into the record.
#[test]
fn machines_that_were_removed_count_until_their_leases_are_over() {
    let mut record = founded(1);
    let seat = |id| Seat {
        id: SeatId(id),
        name: format!("n{id}"),
        address: format!("n{id}:7001"),
        voter: false,
    };
    let fill = |record: &mut Record, seats: std::ops::Range<u64>| {
        for id in seats {
            assert!(matches!(record.apply(&Command::AddSeat(seat(id))), Answer::Done(_)), "{id}");
            for nonce in 1..=MEMBERS_OF_SEAT_LIMIT as u64 {
                let member = join(record, id, nonce.into());
                if nonce == 1 {
                    let command = enter(record, member);
                    record.apply(&command);
                }
            }
        }
    };
    fill(&mut record, 2..32);
    for id in 2..32 {
        record.apply(&Command::DropSeat(SeatId(id)));
    }
    fill(&mut record, 32..62);
    record.apply(&Command::DropSeat(SeatId(61)));
    assert_eq!(record.check(), Ok(()), "{} members", record.members.len());
    // 30 machines and 31 that were removed: one more fits in.
    fill(&mut record, 62..63);
    record.apply(&Command::DropSeat(SeatId(62)));
    assert_eq!(record.seats.len(), 30);
    let refused_with = refused(record.apply(&Command::AddSeat(seat(63)))).to_string();
    assert_eq!(
        refused_with,
        "with the machines that were removed and whose leases are not over, the group has 62 \
         machines already; try again when the leases are over"
    );
    assert_eq!(record.check(), Ok(()), "nodes accept the record");
    assert_eq!(record.seated().count(), 61);
    let (number, gone) = (record.number, SeatId(2));
    let all = record.seen(gone, None);
    record.apply(&Command::Remove { number, seat: gone, all });
    assert!(matches!(record.apply(&Command::AddSeat(seat(63))), Answer::Done(_)));
}

/// A command about the seats and members of a small group; some of them are out of date.
pub(super) fn any_command() -> impl Strategy<Value = Command> {
    let id = || (1..8_u64).prop_map(MemberId);
    let seat = || (1..4_u64).prop_map(SeatId);
    let seen = || proptest::collection::vec((id(), 0..4_u64), 0..3);
    let number = || 0..6_u64;
    prop_oneof![
        (seat(), 0..4_u128).prop_map(|(seat, nonce)| Command::Join { seat, nonce, rules: RULES }),
        id().prop_map(|id| Command::Renew { id, cut: Vec::new() }),
        (id(), number(), seen()).prop_map(|(id, number, replaces)| Command::Enter {
            id,
            number,
            replaces,
            inherits: true
        }),
        (number(), seat(), seen()).prop_map(|(number, seat, all)| Command::Remove {
            number,
            seat,
            all
        }),
        (id(), 0..4_u64).prop_map(|(id, beat)| Command::Forget { id, beat }),
        id().prop_map(|id| Command::Leave { id }),
        (id(), number()).prop_map(|(id, number)| Command::Evict { id, number }),
        number().prop_map(|number| Command::Bump { number }),
    ]
}

/// Make a command of the right view and with the right beats, so that many are accepted.
pub(super) fn up_to_date(record: &Record, command: Command) -> Command {
    match command {
        Command::Enter { id, .. } if record.member(id).is_ok() => enter(record, id),
        Command::Remove { seat, .. } => {
            Command::Remove { number: record.number, seat, all: record.seen(seat, None) }
        }
        Command::Evict { id, .. } => Command::Evict { id, number: record.number },
        other => other,
    }
}

proptest! {
    #[test]
    fn the_rules_of_the_record_hold(
        commands in proptest::collection::vec((any_command(), any::<bool>()), 1..80),
    ) {
        let mut record = founded(3);
        let mut beats: BTreeMap<MemberId, u64> = BTreeMap::new();
        for (command, current) in commands {
            let command = if current { up_to_date(&record, command) } else { command };
            let before = record.clone();
            let answer = record.apply(&command);
            if matches!(answer, Answer::Refused(_)) {
                prop_assert_eq!(&record, &before, "a refused command changes nothing");
                continue;
            }
            prop_assert!(record.revision > before.revision);
            prop_assert!(record.number >= before.number && record.last >= before.last);
            let view = |record: &Record| record.seated().map(|it| it.id).collect::<Vec<_>>();
            if view(&record) != view(&before) {
                prop_assert_eq!(record.number, before.number + 1, "a new view has a new number");
            }
            for member in &record.members {
                let beat = beats.entry(member.id).or_insert(0);
                let own = command == Command::Renew { id: member.id, cut: Vec::new() };
                prop_assert_eq!(member.beat, *beat + u64::from(own));
                *beat = member.beat;
                let known = before.member(member.id).is_ok();
                prop_assert!(known || member.id.0 > before.last, "a number never returns");
            }
            for seat in 1..4 {
                let seated = record.members_of(SeatId(seat)).filter(|it| it.since.is_some());
                prop_assert!(seated.count() <= 1);
                prop_assert!(record.members_of(SeatId(seat)).count() <= MEMBERS_OF_SEAT_LIMIT);
            }
        }
    }
}
