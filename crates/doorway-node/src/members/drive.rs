//! The loop that performs the outputs of a [`Keeper`], and what they mean for the rest of the node.

use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::{Fence, Name, RuleTables};

use super::command::{Command, RecordError};
use super::holds::Holds;
use super::keeper::{ClockTimes, Event, Keeper, Loss, Orphan, Output, PutId};
use super::record::{MemberId, Record};
use super::rules::AgreedRules;
use crate::views::AgreedEvent;

/// How many times in a lease a keeper is told that time has passed.
const TICKS: u32 = 100;

/// What the keeper has decided last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeeperStatus {
    /// The number of the process, if it is a member.
    pub member: Option<MemberId>,
    /// Until when clients may be promised their locks, as the time since the node started. None
    /// while nothing can be promised.
    pub lease: Option<Duration>,
    /// Why the process cannot become a member, if it cannot.
    pub blocked: Option<String>,
    /// The membership was given up, as the program asked.
    pub left: bool,
    /// The holds whose members are gone.
    pub orphans: Arc<Vec<Orphan>>,
    /// When this node saw the newest beat of each member, as the time since the node started.
    pub beats: Arc<Vec<(MemberId, Duration)>>,
}

/// What the membership of a process acts on: the store, the views and shards of the node, and a
/// log. The shell of a node implements this, and so can a simulation.
pub trait KeeperHost {
    /// Ask the store to agree on a command, and report [`Event::Answer`].
    fn put(&mut self, put: PutId, command: Command);

    /// Make links to the seats of this record, and close those to all others.
    fn meet_seats(&mut self, record: &Record);

    /// Let the views of the node know of something.
    fn views(&mut self, event: AgreedEvent);

    /// Let the views know that the membership is over ([`AgreedEvent::Discarded`]). Returns whether
    /// a client has lost a lock by that: see [`Shard::discard`](crate::locks::Shard::discard).
    fn discard(&mut self) -> bool;

    /// Do the views know which claims are good?
    fn knows_claims(&self) -> bool;

    /// Set the end of the lease in every shard.
    fn set_lease(&mut self, end: Duration);

    /// Remember what was decided, for all who ask.
    fn note(&mut self, standing: &KeeperStatus);

    /// Tell those who make promises to clients that the lease was renewed or has ended.
    fn lease_changed(&mut self);

    /// The group keeps a lock for longer than the lease, as [`Event::Hold`] asked, or refuses to.
    fn held(&mut self, name: &Name, fence: Fence, refused: Option<RecordError>);

    /// The group does not keep a lock any more, as [`Event::Drop`] asked.
    fn dropped(&mut self, name: &Name, fence: Fence);

    /// Log something.
    fn log(&mut self, notice: KeeperNotice);
}

/// Something to log about a membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeeperNotice {
    /// The process has joined under this number, and waits for its seat.
    Joined(MemberId),
    /// The membership has ended.
    Lost(Loss),
    /// The process cannot become a member. It goes on trying.
    Blocked(RecordError),
    /// The process cannot run the rules for locks of its group, for this reason.
    UnusableRules(String),
    /// The process has given up waiting, because it has no connection with the nodes of these
    /// names.
    GaveUp(String),
}

/// The membership of one process: its keeper, and what the keeper has decided last.
#[derive(Clone, Debug)]
pub struct OwnMembership {
    keeper: Keeper,
    standing: KeeperStatus,
}

impl OwnMembership {
    /// Begin to keep a membership, as soon as a first record is known. If the node is not
    /// `reclaiming`, it has no former holders to wait for.
    pub fn begin(
        keeper: Keeper,
        holds: Arc<Holds>,
        rules: &RuleTables,
        reclaiming: bool,
        now: ClockTimes,
        host: &mut impl KeeperHost,
    ) -> Self {
        let first = Arc::clone(keeper.record());
        let mut membership = Self { keeper, standing: KeeperStatus::default() };
        membership.drive(now, Event::Holds(holds), host);
        membership.learn_rules(now, rules, host);
        membership.drive(now, Event::Record(first), host);
        if !reclaiming {
            membership.drive(now, Event::Reclaimed, host);
        }
        membership
    }

    /// How often the keeper wants to be told that time has passed.
    pub fn tick(&self) -> Duration {
        self.keeper.pace() / TICKS
    }

    /// The state machine that decides about the membership of this process.
    pub fn keeper(&self) -> &Keeper {
        &self.keeper
    }

    /// Process an event, and perform everything that follows from it.
    pub fn drive(&mut self, now: ClockTimes, event: Event, host: &mut impl KeeperHost) {
        // The views see a record and holds before the keeper acts on them.
        match &event {
            // A peer may have shown a newer one.
            Event::Record(record) if record.revision < self.keeper.record().revision => {}
            Event::Record(record) => {
                host.meet_seats(record);
                host.views(AgreedEvent::Record(Arc::clone(record)));
            }
            Event::Holds(holds) => host.views(AgreedEvent::Holds(Arc::clone(holds))),
            _ => {}
        }
        let shows_beats = matches!(event, Event::Record(_));
        let mut out = Vec::new();
        self.keeper.step(now, event, &mut out);
        if shows_beats {
            self.standing.beats = Arc::new(self.keeper.beats().collect());
            host.note(&self.standing);
        }
        let mut nothing_lost = false;
        for output in out {
            let ends = matches!(output, Output::Discard(_) | Output::GiveUp(_));
            self.perform(output, host);
            nothing_lost |= ends && !self.discard(host);
        }
        if nothing_lost {
            self.drive(now, Event::NothingLost, host);
        }
    }

    /// The store has agreed on these rules. The views see them before the keeper acts on them.
    pub fn learn_rules(&mut self, now: ClockTimes, rules: &RuleTables, host: &mut impl KeeperHost) {
        let (digest, read) = (rules.digest(), AgreedRules::read(rules));
        let usable = read.is_ok();
        match read {
            Ok(rules) => host.views(AgreedEvent::Rules(Arc::new(rules))),
            Err(why) => host.log(KeeperNotice::UnusableRules(why)),
        }
        self.drive(now, Event::Rules { digest, usable }, host);
    }

    fn perform(&mut self, output: Output, host: &mut impl KeeperHost) {
        let KeeperStatus { member, lease, blocked, left, orphans, beats: _ } = &mut self.standing;
        match output {
            Output::Put(put, command) => host.put(put, command),
            Output::Held { name, fence, refused } => {
                // A member is blocked only while there is no room for its promises.
                if refused.is_none() && blocked.take().is_some() {
                    host.note(&self.standing);
                }
                host.held(&name, fence, refused);
            }
            Output::Dropped { name, fence } => host.dropped(&name, fence),
            Output::Orphans(gone) => {
                *orphans = Arc::new(gone);
                host.note(&self.standing);
            }
            Output::Joined(id) => {
                (*member, *blocked) = (Some(id), None);
                host.log(KeeperNotice::Joined(id));
                host.note(&self.standing);
                host.views(AgreedEvent::Joined(id));
            }
            Output::Lease(end) => {
                host.set_lease(end);
                // As long as a claim may turn out wrong, nothing can be promised. The next renewal
                // is soon.
                if host.knows_claims() {
                    *lease = Some(end);
                    host.note(&self.standing);
                    host.lease_changed();
                }
            }
            Output::Discard(why) => {
                (*member, *lease) = (None, None);
                host.log(KeeperNotice::Lost(why));
            }
            Output::Left => {
                (*left, *lease) = (true, None);
                host.note(&self.standing);
            }
            Output::Blocked(why) => {
                let text = why.to_string();
                if blocked.as_ref() != Some(&text) {
                    *blocked = Some(text);
                    host.log(KeeperNotice::Blocked(why));
                    host.note(&self.standing);
                }
            }
            Output::GiveUp(members) => {
                let away = names(self.keeper.record(), &members);
                (*member, *lease) = (None, None);
                *blocked = Some(format!("this node has no connection with {away}"));
                host.log(KeeperNotice::GaveUp(away));
            }
        }
    }

    /// The process is not a member any more: nothing is promised, and its clients lose their locks.
    /// Returns whether there were such clients.
    fn discard(&self, host: &mut impl KeeperHost) -> bool {
        host.note(&self.standing);
        let lost = host.discard();
        host.lease_changed();
        lost
    }
}

/// The names of the nodes of these members.
fn names(record: &Record, members: &[MemberId]) -> String {
    let members = members.iter().filter_map(|id| record.member(*id).ok());
    let seats = members.filter_map(|member| record.seat(member.seat));
    seats.map(|seat| seat.name.as_str()).collect::<Vec<_>>().join(", ")
}
