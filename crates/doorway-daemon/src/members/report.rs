//! Reports about the members.

use std::time::Duration;

use doorway_node::members::{Record, RecordError, Seat, SeatId, ServiceHealth};
use doorway_node::{MembershipReport, Node};
use doorway_protocol::{EtcdReport, MembersReport, SeatReport, SeatRole, SeatState};
use doorway_sessions::clock::ms;
use time::OffsetDateTime;

use super::Members;

impl Members {
    /// The members of the group, as this node sees them now.
    pub(crate) fn report(&self, node: &Node) -> MembersReport {
        let health = self.store.health();
        let membership = node.membership();
        let membership = membership.as_ref();
        let lease_left = node.lease_left().unwrap_or_default();
        let mut report = MembersReport {
            node: self.name.clone(),
            group: self.group.clone(),
            cluster: None,
            view: 0,
            running: membership.and_then(|it| it.view).filter(|_| !lease_left.is_zero()),
            lease_ms: self.settings.lease.as_millis() as u32,
            lease_left_ms: ms(lease_left),
            seats: Vec::new(),
            voters: health.voters as u32,
            reachable: health.reachable.len() as u32,
            no_quorum_ms: health.without_quorum.map(ms),
            trouble: None,
            etcd: health.service.as_ref().map(etcd_report),
            rules: self.rules_report(),
        };
        let unreachable = health.service.as_ref().and_then(unreachable);
        let Some(record) = self.record() else {
            let outside = self.outside.lock().clone();
            let outside = || outside.text(&self.name, &self.settings.address);
            report.trouble = Some(unreachable.unwrap_or_else(outside));
            return report;
        };
        report.cluster = Some(format!("{:032x}", record.cluster));
        (report.view, report.lease_ms) = (record.number, record.lease_ms);
        let away = node.away();
        let me = self.store.seat();
        let seats = record.seats.iter().map(|seat| {
            let away = away.iter().find(|(name, _)| *name == seat.name).map(|(_, time)| *time);
            let is_here = if seat.id == me {
                report.running.is_some()
            } else {
                away.is_none() && membership.is_some_and(|it| it.linked.contains(&seat.id))
            };
            let role = match &health.service {
                Some(_) => SeatRole::Member,
                None => role(seat, health.leader),
            };
            seat_report(&record, seat, role, seat.id == me, is_here, away)
        });
        report.seats = seats.collect();
        report.trouble = unreachable.or_else(|| trouble(&report, membership));
        report
    }
}

fn etcd_report(health: &ServiceHealth) -> EtcdReport {
    EtcdReport {
        addresses: health.addresses.clone(),
        unreachable_ms: health.unreachable.as_ref().map(|(time, _)| ms(*time)),
        warning: health.warning.clone(),
    }
}

/// Since when etcd cannot be used, and why.
fn unreachable(health: &ServiceHealth) -> Option<String> {
    let (time, why) = health.unreachable.as_ref()?;
    let since = OffsetDateTime::now_utc() - *time;
    let (hour, minute, second) = since.to_hms();
    Some(format!(
        "etcd cannot be reached since {hour:02}:{minute:02}:{second:02} UTC: {why}; when the lease \
         of the members is over, no locks are granted until etcd answers"
    ))
}

fn role(seat: &Seat, leader: Option<SeatId>) -> SeatRole {
    match seat.voter {
        true if leader == Some(seat.id) => SeatRole::Leader,
        true => SeatRole::Voter,
        false => SeatRole::Learner,
    }
}

/// `is_here`: this node has a connection to the machine, or is the machine itself and serves.
fn seat_report(
    record: &Record,
    seat: &Seat,
    role: SeatRole,
    is_me: bool,
    is_here: bool,
    away: Option<Duration>,
) -> SeatReport {
    let is_seated = record.members_of(seat.id).any(|member| member.since.is_some());
    let is_evicted = record.members_of(seat.id).any(|member| member.evicted);
    let state = match () {
        () if is_evicted => SeatState::Evicted,
        () if is_seated && is_here => SeatState::InView,
        () if is_here || is_me => SeatState::Waiting,
        () => SeatState::Away,
    };
    SeatReport {
        name: seat.name.clone(),
        address: seat.address.clone(),
        seat: format!("{:016x}", seat.id.0),
        role,
        state,
        away_ms: away.map(ms),
    }
}

/// Why this node cannot grant locks as a member, and what to do.
fn trouble(report: &MembersReport, membership: Option<&MembershipReport>) -> Option<String> {
    if let Some(why) = membership.and_then(|it| it.blocked.as_deref()) {
        let node = &report.node;
        let remedy = if why == RecordError::UnknownSeat.to_string() {
            format!(
                "to let it in, start it with an empty data directory and run `doorway members add \
                 {node} ADDRESS` at a member, or `doorway members replace {node}` if the group has \
                 a `{node}`"
            )
        } else {
            "it tries again".to_owned()
        };
        return Some(format!("this node is not a member: {why}; {remedy}"));
    }
    if let Some(without) = report.no_quorum_ms {
        let is_missing = |seat: &&SeatReport| {
            seat.role != SeatRole::Learner
                && seat.name != report.node
                && seat.state == SeatState::Away
        };
        let missing = report.seats.iter().filter(is_missing).map(|seat| seat.name.as_str());
        let missing: Vec<&str> = missing.collect();
        let start = if missing.is_empty() {
            "check the network between the machines".to_owned()
        } else {
            format!("start {}, or check the network", missing.join(" or "))
        };
        return Some(format!(
            "no quorum for {} s: {} of {} voters can be reached, so no locks are granted; {start}",
            without / 1000,
            report.reachable,
            report.voters
        ));
    }
    if membership.is_none_or(|it| it.member.is_none()) {
        return Some("this node has not joined the group yet; it tries again".to_owned());
    }
    if report.lease_left_ms == 0 {
        return Some(
            "the lease of this node is over, so no locks are granted; it tries to renew it"
                .to_owned(),
        );
    }
    if report.running.is_none() {
        return Some("the members have not begun a view with this node yet".to_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use doorway_node::members::{Answer, Command};

    use super::*;

    fn record() -> Record {
        let seat = |id: u64, name: &str| Seat {
            id: SeatId(id),
            name: name.to_owned(),
            address: format!("{name}.example:7001"),
            voter: id < 4,
        };
        Record::new(1, 10_000, 0, vec![seat(1, "a"), seat(2, "b"), seat(3, "c"), seat(4, "d")])
    }

    fn state(record: &Record, seat: u64, is_here: bool) -> SeatState {
        let seat = record.seat(SeatId(seat)).expect("a seat");
        seat_report(record, seat, SeatRole::Voter, seat.name == "a", is_here, None).state
    }

    #[test]
    fn the_state_of_a_seat_follows_from_the_record_and_the_links() {
        let mut record = record();
        for seat in [1, 2, 3] {
            let join = Command::Join { seat: SeatId(seat), nonce: seat.into(), rules: 0 };
            let Answer::Joined(id) = record.apply(&join) else { panic!("it may join") };
            if seat < 3 {
                let number = record.number;
                let entered = record.apply(&Command::Enter {
                    id,
                    number,
                    replaces: Vec::new(),
                    inherits: true,
                });
                assert!(matches!(entered, Answer::Done(_)));
            }
        }
        assert_eq!(state(&record, 1, true), SeatState::InView);
        assert_eq!(state(&record, 1, false), SeatState::Waiting, "the node itself is never away");
        assert_eq!(state(&record, 2, true), SeatState::InView);
        assert_eq!(state(&record, 2, false), SeatState::Away);
        assert_eq!(state(&record, 3, true), SeatState::Waiting);
        assert_eq!(state(&record, 4, false), SeatState::Away);
        let (id, number) = (record.seated().next().expect("a member").id, record.number);
        record.apply(&Command::Evict { id, number });
        assert_eq!(state(&record, 1, true), SeatState::Evicted);
    }

    #[test]
    fn the_voter_that_leads_is_the_leader() {
        let record = record();
        let roles: Vec<SeatRole> =
            record.seats.iter().map(|seat| role(seat, Some(SeatId(2)))).collect();
        let (leader, voter, learner) = (SeatRole::Leader, SeatRole::Voter, SeatRole::Learner);
        assert_eq!(roles, [voter, leader, voter, learner]);
    }
}
