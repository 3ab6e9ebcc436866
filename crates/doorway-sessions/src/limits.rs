//! The limits of clients.
//!
//! One client of another machine gets at most half of what all clients may have together. Users of
//! this machine are not counted: a user that can open the socket can do everything anyway.

use std::sync::Arc;

use doorway_protocol::{Code, Name, Refusal};

use super::Sessions;
use super::refusals::{limit, no_files, refusal};
use super::tally::Tally;
use crate::principal::Principal;

/// How much of what all clients share is in use, for each client of another machine.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Shares {
    connections: Tally<Arc<str>>,
    sessions: Tally<Arc<str>>,
    waiting: Tally<Arc<str>>,
    queue: Tally<(Name, Arc<str>)>,
    /// All requests that wait for a lock, also those of users of this machine.
    queues: Tally<Name>,
    /// How many sessions have a descriptor of a process.
    processes: usize,
}

/// The owner of connections whose client has not said yet who it is.
const UNKNOWN: &str = "";

impl Sessions {
    /// Count a new connection, or say why it cannot be admitted.
    pub(super) fn count_connection(&mut self, remote: bool) -> Result<(), Refusal> {
        let most = self.setup.limits.connections;
        let unknown: Arc<str> = UNKNOWN.into();
        if remote && self.shares.connections.of(&unknown) >= half(most) {
            let text = "too many clients of other machines have not said who they are yet";
            return Err(refusal(Code::Busy, text));
        }
        if self.connections.len() >= most {
            let text = format!("{most} connections are open");
            return Err(limit(&text, "limits.connections", most));
        }
        let files = self.setup.limits.files.saturating_sub(self.shares.processes);
        if self.connections.len() >= files {
            return Err(no_files());
        }
        if remote {
            self.shares.connections.add(unknown);
        }
        Ok(())
    }

    /// Count a connection as one of this client, from now on.
    pub(super) fn own_connection(&mut self, principal: &Principal) -> Result<(), Refusal> {
        let (all, name) = (self.setup.limits.connections, "limits.connections");
        take_half(&mut self.shares.connections, key(principal), all, name, principal, || {
            "connections".to_owned()
        })?;
        self.shares.connections.remove(&UNKNOWN.into());
        Ok(())
    }

    /// A connection of another machine has ended. `principal` is its client, if it is known.
    pub(super) fn forget_connection(&mut self, principal: Option<&Principal>) {
        let key = principal.map_or_else(|| Some(UNKNOWN.into()), key);
        if let Some(key) = key {
            self.shares.connections.remove(&key);
        }
    }

    /// Count a new session, or say why it cannot be opened. `watched` says whether it needs a
    /// descriptor of a process.
    pub(super) fn count_session(
        &mut self,
        principal: &Principal,
        watched: bool,
    ) -> Result<(), Refusal> {
        let (most, name) = (self.setup.limits.sessions, "limits.sessions");
        if self.open.len() >= most {
            return Err(limit(&format!("{most} sessions are open"), name, most));
        }
        let files = self.setup.limits.files.saturating_sub(self.connections.len());
        if watched && self.shares.processes >= files {
            return Err(no_files());
        }
        take_half(&mut self.shares.sessions, key(principal), most, name, principal, || {
            "sessions".to_owned()
        })
    }

    /// Count a session that was admitted before the node was started, whatever the limits are now.
    pub(super) fn count_former(&mut self, principal: &Principal) {
        if let Some(key) = key(principal) {
            self.shares.sessions.add(key);
        }
    }

    pub(super) fn forget_session(&mut self, principal: &Principal) {
        if let Some(key) = key(principal) {
            self.shares.sessions.remove(&key);
        }
    }

    /// A session gets a descriptor of its process, or gives it back.
    pub(super) fn count_process(&mut self, watched: bool) {
        if watched {
            self.shares.processes += 1;
        } else {
            self.shares.processes -= 1;
        }
    }

    /// Count a request that waits for a lock, or say why it may not.
    pub(super) fn enter_queue(
        &mut self,
        principal: &Principal,
        lock: &Name,
    ) -> Result<(), Refusal> {
        let (most, name) = (self.setup.limits.queue, "limits.queue");
        if self.shares.queues.of(lock) >= most {
            return Err(limit(&format!("{most} requests for `{lock}` wait"), name, most));
        }
        let own = key(principal);
        let in_queue = own.clone().map(|own| (lock.clone(), own));
        take_half(&mut self.shares.queue, in_queue.clone(), most, name, principal, || {
            format!("requests for `{lock}`")
        })?;
        let (all, name) = (self.setup.outstanding, "limits.outstanding");
        let waits = take_half(&mut self.shares.waiting, own, all, name, principal, || {
            "requests".to_owned()
        });
        if waits.is_err() {
            if let Some(key) = &in_queue {
                self.shares.queue.remove(key);
            }
            return waits;
        }
        self.shares.queues.add(lock.clone());
        Ok(())
    }

    pub(super) fn leave_queue(&mut self, principal: &Principal, lock: &Name) {
        self.shares.queues.remove(lock);
        if let Some(own) = key(principal) {
            self.shares.waiting.remove(&own);
            self.shares.queue.remove(&(lock.clone(), own));
        }
    }
}

/// The name under which a client is counted; none for users of this machine.
fn key(principal: &Principal) -> Option<Arc<str>> {
    principal.uid.is_none().then(|| principal.name.as_str().into())
}

/// Count one more for a client of another machine, which may have half of `all`. `name` is the
/// setting with the limit of all clients, and `things` says what is counted.
fn take_half<K: Ord>(
    tally: &mut Tally<K>,
    key: Option<K>,
    all: usize,
    name: &str,
    principal: &Principal,
    things: impl Fn() -> String,
) -> Result<(), Refusal> {
    let Some(key) = key else { return Ok(()) };
    let most = half(all);
    if tally.of(&key) < most {
        tally.add(key);
        return Ok(());
    }
    let text = format!(
        "{} has {most} {}, and no client of another machine may have more than half of what all \
         may (`{name}` = {all})",
        principal.name,
        things()
    );
    Err(refusal(Code::Busy, text))
}

fn half(all: usize) -> usize {
    all.div_ceil(2)
}

impl Shares {
    /// Whether nothing is counted.
    pub(super) fn is_empty(&self) -> bool {
        self.connections.is_empty()
            && self.sessions.is_empty()
            && self.waiting.is_empty()
            && self.queue.is_empty()
            && self.queues.is_empty()
            && self.processes == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::principal::Rights;

    #[test]
    fn no_client_of_another_machine_gets_more_than_half() {
        let mut tally = Tally::default();
        let client = |name: &str, uid| Principal { name: name.into(), uid, rights: Rights::all() };
        let mut take = |principal: &Principal| {
            let things = || "sessions".to_owned();
            take_half(&mut tally, key(principal), 5, "limits.sessions", principal, things)
        };
        let (one, other, user) = (client("a", None), client("b", None), client("c", Some(7)));
        (0..3).for_each(|_| take(&one).unwrap());
        let refused = take(&one).unwrap_err();
        assert_eq!(refused.code, Code::Busy);
        assert!(refused.text.contains("`limits.sessions` = 5"), "{refused}");
        take(&other).unwrap();
        assert!((0..9).all(|_| take(&user).is_ok()));
        (0..3).for_each(|_| tally.remove(&"a".into()));
        tally.remove(&"b".into());
        assert!(tally.is_empty());
    }
}
