//! What every step of the record keeps, whatever the command is.
//!
//! [`Record::apply`](super::Record::apply) checks itself with these rules in builds with debug
//! assertions, so that tests, searches and simulations stop at the first step that breaks one. A
//! rule compares a record before and after a step. So a test may begin with any record.

use std::collections::BTreeSet;

use super::command::{Answer, Command};
use super::record::{Member, MemberId, Record, SeatId};

/// One step of a record.
struct Step<'a> {
    before: &'a Record,
    command: &'a Command,
    answer: &'a Answer,
    after: &'a Record,
}

/// A rule, and whether a step breaks it.
type Invariant = (&'static str, fn(&Step<'_>) -> bool);

const INVARIANTS: [Invariant; 8] = [
    ("a refused command changes nothing", |step| {
        matches!(step.answer, Answer::Refused(_)) && step.before != step.after
    }),
    ("the number of the view and the numbers of members only grow", |step| {
        let Step { before, after, .. } = step;
        after.number < before.number || after.last < before.last
    }),
    ("a new member has a number that no member ever had", |step| {
        let Step { before, after, .. } = step;
        let is_new = |member: &&Member| before.member(member.id).is_err();
        let mut new = after.members.iter().filter(is_new);
        new.any(|member| member.id.0 <= before.last || member.id.0 > after.last)
    }),
    ("only its own renewal changes the beat of a member", |step| {
        step.kept().any(|(was, is)| {
            let renews = matches!(step.command, Command::Renew { id, .. } if *id == is.id);
            is.beat != was.beat + u64::from(renews && step.is_done())
        })
    }),
    ("a seat has at most one seated member", |step| {
        !has_one_of_each_seat(step.after) && has_one_of_each_seat(step.before)
    }),
    ("a seated member is never removed alone while another process of its seat waits", |step| {
        let Step { before, command, after, .. } = step;
        let leaves = |id| matches!(command, Command::Leave { id: left } if *left == id);
        let is_gone = |member: &&Member| after.member(member.id).is_err() && !leaves(member.id);
        before.seated().filter(is_gone).any(|member| {
            let mut others = after.members_of(member.seat);
            others.any(|other| other.since.is_none())
        })
    }),
    ("other members or rules of the view have a new number of the view", |step| {
        let Step { before, after, .. } = step;
        let view = |record: &Record| -> Vec<(MemberId, Option<u64>)> {
            record.seated().map(|member| (member.id, member.since)).collect()
        };
        let same = view(before) == view(after) && before.rules == after.rules;
        !same && before.number == after.number
    }),
    ("the longest lease of a member only grows", |step| {
        step.kept().any(|(was, is)| is.lease_ms < was.lease_ms)
    }),
];

impl Step<'_> {
    fn is_done(&self) -> bool {
        !matches!(self.answer, Answer::Refused(_))
    }

    /// The members that are there before and after it.
    fn kept(&self) -> impl Iterator<Item = (&Member, &Member)> {
        let was = self.before.members.iter();
        was.filter_map(|was| Some((was, self.after.member(was.id).ok()?)))
    }
}

fn has_one_of_each_seat(record: &Record) -> bool {
    let mut seats: BTreeSet<SeatId> = BTreeSet::new();
    record.seated().all(|member| seats.insert(member.seat))
}

/// The first invariant that this step breaks, if it breaks one.
pub(super) fn broken_by(
    before: &Record,
    command: &Command,
    answer: &Answer,
    after: &Record,
) -> Option<&'static str> {
    let step = Step { before, command, answer, after };
    INVARIANTS.iter().find(|(_, is_broken)| is_broken(&step)).map(|(rule, _)| *rule)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::{RecordError, Seat};

    type Act = fn(&mut Record);

    /// A seat with a seated member and one that waits.
    fn record() -> Record {
        let (name, address) = ("a".to_owned(), "a:1".to_owned());
        let seat = Seat { id: SeatId(1), name, address, voter: true };
        let mut record = Record::new(1, 10_000, 0, vec![seat]);
        record.succeed_fixed(7, &[SeatId(1)]);
        record.apply(&Command::Join { seat: SeatId(1), nonce: 5, rules: 0 });
        record
    }

    /// The rule that is broken by a command that would do this.
    fn broken(command: &Command, answer: &Answer, act: Act) -> Option<&'static str> {
        let before = record();
        let mut after = before.clone();
        act(&mut after);
        broken_by(&before, command, answer, &after)
    }

    #[test]
    fn every_invariant_is_broken_by_a_step_that_would_break_it() {
        let (done, renew) = (Answer::Done(7), Command::Renew { id: MemberId(1), cut: Vec::new() });
        let leave = Command::Leave { id: MemberId(1) };
        let remove = Command::Remove { number: 7, seat: SeatId(1), all: Vec::new() };
        let refused = Answer::Refused(RecordError::Changed);
        let take_first = |record: &mut Record| {
            record.number += 1;
            record.members.remove(0);
        };
        let steps: [(&Command, &Answer, Act); 8] = [
            (&renew, &refused, |record| record.members[0].beat += 1),
            (&renew, &done, |record| record.number -= 1),
            (&renew, &done, |record| record.members[1].id = MemberId(0)),
            (&renew, &done, |record| record.members[1].beat += 1),
            (&renew, &done, |record| {
                record.members[0].beat += 1;
                record.members[1].since = Some(7);
            }),
            (&remove, &done, take_first),
            (&remove, &done, |record| record.rules += 1),
            (&leave, &done, |record| record.members[1].lease_ms -= 1),
        ];
        for ((command, answer, act), (rule, _)) in steps.into_iter().zip(INVARIANTS) {
            assert_eq!(broken(command, answer, act), Some(rule));
        }
        assert_eq!(broken(&leave, &done, take_first), None, "it may leave by itself");
        assert_eq!(broken(&renew, &done, |record| record.members[0].beat += 1), None);
    }
}
