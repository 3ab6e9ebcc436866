//! Which node should propose removals, where no node leads the others.
//!
//! The first member that is alive does: the seated one with the lowest number, otherwise the
//! waiting one. Nodes may disagree about that for a moment. Then two of them propose the same
//! command, and etcd accepts one.

use std::collections::BTreeMap;
use std::time::Duration;

use doorway_node::members::{MemberId, Record, SeatId};

/// When each member was seen alive, by a clock of the caller.
#[derive(Clone, Debug, Default)]
pub(super) struct Pulse {
    /// The beat of each member, and when it has changed.
    beats: BTreeMap<MemberId, (u64, Duration)>,
}

impl Pulse {
    /// Take a newer record.
    pub(super) fn learn(&mut self, record: &Record, now: Duration) {
        self.beats.retain(|id, _| record.member(*id).is_ok());
        for member in &record.members {
            let known = self.beats.entry(member.id).or_insert((member.beat, now));
            if known.0 != member.beat {
                *known = (member.beat, now);
            }
        }
    }

    /// Whether the node of this seat should propose removals.
    pub(super) fn leads(&self, record: &Record, seat: SeatId, now: Duration) -> bool {
        // A member renews its membership ten times in a lease.
        let silence = Duration::from_millis(record.lease_ms.into()) * 3 / 10;
        let is_alive = |id: MemberId| {
            let seen = self.beats.get(&id);
            seen.is_some_and(|(_, at)| now.saturating_sub(*at) <= silence)
        };
        let alive = record.members.iter().filter(|it| is_alive(it.id) && !it.evicted);
        let first = alive.min_by_key(|member| (member.since.is_none(), member.id));
        first.is_some_and(|member| member.seat == seat)
    }
}

#[cfg(test)]
mod tests {
    use doorway_node::members::{Answer, Command, Seat};

    use super::*;

    const STEP: Duration = Duration::from_secs(1);

    fn record() -> Record {
        let seat = |id: u64| Seat {
            id: SeatId(id),
            name: id.to_string(),
            address: id.to_string(),
            voter: true,
        };
        let mut record = Record::new(1, 10_000, 0, vec![seat(1), seat(2), seat(3)]);
        for seat in [3, 1, 2] {
            let join = Command::Join { seat: SeatId(seat), nonce: seat.into(), rules: 0 };
            assert!(matches!(record.apply(&join), Answer::Joined(_)));
        }
        record
    }

    fn leaders(pulse: &Pulse, record: &Record, now: Duration) -> Vec<u64> {
        (1..=3).filter(|seat| pulse.leads(record, SeatId(*seat), now)).collect()
    }

    #[test]
    fn the_first_member_that_is_alive_leads() {
        let mut record = record();
        let mut pulse = Pulse::default();
        assert!(leaders(&pulse, &record, STEP).is_empty(), "nobody was seen yet");
        pulse.learn(&record, STEP);
        assert_eq!(leaders(&pulse, &record, STEP), [3], "the lowest number");
        let enter =
            Command::Enter { id: MemberId(2), number: 0, replaces: Vec::new(), inherits: true };
        assert_eq!(record.apply(&enter), Answer::Done(1));
        pulse.learn(&record, STEP);
        assert_eq!(leaders(&pulse, &record, STEP), [1], "seated members come first");
        for second in 2..10 {
            for id in [1, 3].map(MemberId) {
                record.apply(&Command::Renew { id, cut: Vec::new() });
            }
            pulse.learn(&record, STEP * second);
            let expected = if second <= 4 { 1 } else { 3 };
            assert_eq!(leaders(&pulse, &record, STEP * second), [expected], "second {second}");
        }
        assert!(leaders(&pulse, &record, STEP * 20).is_empty(), "this node is cut off");
    }
}
