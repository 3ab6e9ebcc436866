//! Reports about the members.

use std::time::Duration;

use doorway_node::members::{
    Member, MemberId, Record, RecordError, Seat, SeatId, ServiceHealth, absence,
};
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
        let lease_ms = self.settings.lease.as_millis() as u32;
        let mut report = MembersReport {
            node: self.name.clone(),
            group: self.group.clone(),
            cluster: None,
            view: 0,
            running: membership.and_then(|it| it.view).filter(|_| !lease_left.is_zero()),
            lease_ms,
            longest_lease_ms: lease_ms,
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
        report.longest_lease_ms = record.longest_lease_ms();
        let away = node.away();
        let beats = membership.map_or(&[][..], |it| &it.beats);
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
            let mut report = seat_report(&record, seat, role, seat.id == me, is_here, away);
            let newest = record.members_of(seat.id).filter_map(|it| age(beats, it.id)).min();
            report.beat_ms = newest.map(ms);
            if report.state == SeatState::Waiting {
                let own = membership.filter(|it| it.seat == seat.id);
                let links = own.map(|it| it.linked.as_slice());
                report.waiting_for = waiting_for(&record, seat.id, links, beats);
            }
            report
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
        beat_ms: None,
        waiting_for: Vec::new(),
    }
}

/// The age of the newest beat of a member.
fn age(beats: &[(MemberId, Duration)], id: MemberId) -> Option<Duration> {
    beats.iter().find(|(member, _)| *member == id).map(|(_, age)| *age)
}

/// The names of the nodes to which the process at a seat needs a connection before it can take part
/// in the view. `links` are the connections of that process, if it is this one. Otherwise the
/// record says which ones the process misses.
fn waiting_for(
    record: &Record,
    seat: SeatId,
    links: Option<&[SeatId]>,
    beats: &[(MemberId, Duration)],
) -> Vec<String> {
    let Some(own) = record.members_of(seat).last() else { return Vec::new() };
    let absent = absence(Duration::from_millis(record.lease_ms.into()));
    let is_missed = |other: &&Member| match links {
        Some(links) => !links.contains(&other.seat),
        None => own.cut.contains(&other.id),
    };
    // A view that the process is in does not begin without any of its members.
    let is_needed = |other: &&Member| {
        own.since.is_some() || age(beats, other.id).is_some_and(|age| age <= absent)
    };
    let others = record.seated().filter(|other| other.seat != seat);
    let seats = others.filter(is_missed).filter(is_needed).filter_map(|it| record.seat(it.seat));
    let mut names: Vec<String> = seats.map(|seat| seat.name.clone()).collect();
    names.sort_unstable();
    names
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
    fn a_waiting_process_waits_for_members_that_are_alive_and_that_it_cannot_reach() {
        let mut record = record();
        // The seats of a and b are seated, and the process of c waits.
        record.succeed_fixed(1, &[SeatId(1), SeatId(2)]);
        let join = Command::Join { seat: SeatId(3), nonce: 3, rules: 0 };
        let Answer::Joined(c) = record.apply(&join) else { panic!("it may join") };
        let seated: Vec<MemberId> = record.seated().map(|member| member.id).collect();
        record.apply(&Command::Renew { id: c, cut: seated.clone() });
        let second = Duration::from_secs(1);
        // The last beat of b is older than 0.3 leases: c may enter without it.
        let beats = [(seated[0], second), (seated[1], second * 4)];
        assert_eq!(waiting_for(&record, SeatId(3), None, &beats), ["a"]);
        let fresh = seated.iter().map(|id| (*id, second)).collect::<Vec<_>>();
        assert_eq!(waiting_for(&record, SeatId(3), None, &fresh), ["a", "b"]);
        // The node itself knows its connections better than the record does.
        assert_eq!(waiting_for(&record, SeatId(3), Some(&[SeatId(1)]), &fresh), ["b"]);
        // A view of two members does not begin without the second one, alive or not.
        assert_eq!(waiting_for(&record, SeatId(1), Some(&[]), &beats), ["b"]);
        assert!(waiting_for(&record, SeatId(4), None, &beats).is_empty());
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
