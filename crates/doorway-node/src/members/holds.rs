//! Replicated holds: promises to clients that may outlive the lease of their node.
//!
//! A node's own lease bounds what it promises. A client that asks for more, for example for an
//! hour, gets a *hold*: the group agrees on the lock, the fence and the length before the client is
//! told that it has the lock. All other grants stay within the lease of their node, and the group
//! never hears of them.
//!
//! The holds are beside the [`Record`], not in it: the record stays small.
//!
//! # Orphans
//!
//! While the member that made the promise belongs to the record, the algorithm of the lock keeps
//! others out: the member is in the view, or waits in the place of its predecessor. When the member
//! is gone, the hold is an *orphan*. From then on every member keeps the lock closed to its own
//! clients, until the hold is dropped. Which holds are orphans follows from the record and the
//! holds alone, so all members agree on it without a word.
//!
//! A hold is dropped
//!
//! - by its own member, when the client has released the lock or is over;
//! - when a member has counted the full length since it learnt that the hold is an orphan. The
//!   client counts from its last message that its node answered, and its node answered nothing
//!   after it was gone. So renewals need no agreement;
//! - by an operator.
//!
//! An orphan stays an orphan until it is dropped: a later process of the same machine cannot take
//! it over, because members would open the lock before that process is in the view.
//!
//! # Order
//!
//! A hold is refused once its member is gone. So it always comes before the removal of its member,
//! and before every view without that member. A node may learn the record of such a view from a
//! peer, before its own store has shown it the holds. Therefore the record counts the holds
//! ([`Record::holds`]), and a node starts no view before it knows that many.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::{AuditEntry, Fence, Name, RuleTables};
use serde::{Deserialize, Serialize};

use super::audit::AuditLog;
use super::command::{Answer, Command, RecordError};
use super::record::{MemberId, Record, SeatId};

/// How many holds a group may have. A snapshot of all of them is one message.
pub const HOLDS_LIMIT: usize = 2_000;

/// What identifies a hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HoldId {
    /// The lock.
    pub name: Name,
    /// The fence of the grant. Of a lock that is shared or has permits, grants of several nodes may
    /// have one fence.
    pub fence: Fence,
    /// The member that made the promise.
    pub member: MemberId,
}

/// The promise that a lock stays with its holder even if the node of the holder dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hold {
    /// The seat of the member that made the promise.
    pub seat: SeatId,
    /// For how many milliseconds the client may believe in its grant after the last answer of its
    /// node; none if without end.
    pub length_ms: Option<u64>,
}

impl Hold {
    /// For how long the client may believe in its grant; none if without end.
    pub fn length(&self) -> Option<Duration> {
        self.length_ms.map(Duration::from_millis)
    }
}

/// All holds of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Holds {
    /// How many times a hold was added or made longer.
    added: u64,
    all: BTreeMap<HoldId, Hold>,
}

impl Holds {
    /// Apply a command that changes holds. If it is refused, nothing changes. All other commands
    /// change the record only.
    pub fn apply(&mut self, record: &mut Record, command: &Command) -> Answer {
        if let Err(why) = self.check(record, command) {
            return Answer::Refused(why);
        }
        let answer = record.apply(command);
        if matches!(answer, Answer::Refused(_)) {
            return answer;
        }
        match command {
            Command::Hold { id, length_ms } => {
                let Ok(member) = record.member(id.member) else { return answer };
                let seat = member.seat;
                let mut length_ms = *length_ms;
                // The process before this one may have made the promise. This one keeps it.
                self.all.retain(|other, hold| {
                    let same = other.is_grant(id) && hold.seat == seat;
                    if same {
                        length_ms = longer(length_ms, hold.length_ms);
                    }
                    !same
                });
                self.all.insert(id.clone(), Hold { seat, length_ms });
                self.added = record.holds;
            }
            Command::Drop(id) => {
                self.all.remove(id);
            }
            _ => {}
        }
        answer
    }

    fn check(&self, record: &Record, command: &Command) -> Result<(), RecordError> {
        let Command::Hold { id, .. } = command else { return Ok(()) };
        // Clients of other machines may share the lock with an equal fence.
        let seat = record.member(id.member)?.seat;
        let same = self.all.iter().filter(|(other, hold)| other.is_grant(id) && hold.seat == seat);
        let mut same = same.map(|(other, _)| other).peekable();
        if same.peek().is_none() && self.all.len() >= HOLDS_LIMIT {
            return Err(RecordError::TooManyHolds);
        }
        if same.any(|other| record.member(other.member).is_err()) {
            return Err(RecordError::Orphan);
        }
        Ok(())
    }

    /// How many times a hold was added or made longer: [`Record::holds`] of the record that belongs
    /// to these holds.
    pub fn added(&self) -> u64 {
        self.added
    }

    /// All holds, in the order of the locks.
    pub fn iter(&self) -> impl Iterator<Item = (&HoldId, &Hold)> {
        self.all.iter()
    }

    /// The hold with this identity.
    pub fn get(&self, id: &HoldId) -> Option<&Hold> {
        self.all.get(id)
    }

    /// Whether processes of this seat alone can have made this promise, or the promise is over for
    /// good. These holds must not be older than the record.
    pub fn is_of_seat(&self, record: &Record, id: &HoldId, seat: SeatId) -> bool {
        match (record.member(id.member), self.all.get(id)) {
            (Ok(member), _) => member.seat == seat,
            (Err(_), Some(hold)) => hold.seat == seat,
            // A member that is gone makes no promises any more.
            (Err(_), None) => id.member.0 <= record.last,
        }
    }

    /// The holds whose members are gone.
    pub fn orphans<'a>(
        &'a self,
        record: &'a Record,
    ) -> impl Iterator<Item = (&'a HoldId, &'a Hold)> {
        self.all.iter().filter(|(id, _)| record.member(id.member).is_err())
    }
}

impl HoldId {
    /// Whether both are about one grant, of any member.
    fn is_grant(&self, other: &Self) -> bool {
        self.name == other.name && self.fence == other.fence
    }
}

/// The longer of two lengths.
pub(super) fn longer(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.zip(other).map(|(one, other)| one.max(other))
}

/// Everything on which a group has agreed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupState {
    /// Who belongs to the group.
    pub record: Arc<Record>,
    /// The promises that locks stay with their holders, even if the nodes of these die.
    pub holds: Arc<Holds>,
    /// What operators changed, and when.
    pub audit: Arc<AuditLog>,
    /// The rules for locks.
    pub rules: Arc<RuleTables>,
}

impl GroupState {
    /// The state of a group that begins with this record, and without holds and rules.
    pub fn new(record: Record) -> Self {
        let holds = Arc::new(Holds { added: record.holds, all: BTreeMap::new() });
        let record = Arc::new(record);
        Self { record, holds, audit: Arc::default(), rules: Arc::default() }
    }

    /// Begin with these rules.
    pub fn with_rules(mut self, rules: RuleTables) -> Self {
        Arc::make_mut(&mut self.record).rules = rules.digest();
        self.rules = Arc::new(rules);
        self
    }

    /// Put a state together from its parts, as a store has kept them one by one. The entries of the
    /// audit log have to be in the order of their numbers.
    pub fn from_parts(
        record: Record,
        holds: impl IntoIterator<Item = (HoldId, Hold)>,
        audit: impl IntoIterator<Item = AuditEntry>,
        rules: RuleTables,
    ) -> Self {
        let holds = Holds { added: record.holds, all: holds.into_iter().collect() };
        let audit = Arc::new(AuditLog::from_entries(audit));
        Self { record: Arc::new(record), holds: Arc::new(holds), audit, rules: Arc::new(rules) }
    }

    /// Apply a command. If it is refused, nothing changes.
    pub fn apply(&mut self, command: &Command) -> Answer {
        if let Command::Note(entry) = command {
            Arc::make_mut(&mut self.audit).note(entry);
            return Answer::Done(self.record.number);
        }
        let record = Arc::make_mut(&mut self.record);
        match command {
            Command::Hold { .. } | Command::Drop(_) => {
                Arc::make_mut(&mut self.holds).apply(record, command)
            }
            Command::Rules { rules, .. } => {
                let answer = record.apply(command);
                if !matches!(answer, Answer::Refused(_)) {
                    self.rules = Arc::new(rules.clone());
                }
                answer
            }
            _ => record.apply(command),
        }
    }
}
