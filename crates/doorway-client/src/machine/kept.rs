//! Locks that the client keeps after it has left them, until somebody else wants them.
//!
//! The node grants such a lock with a range of fences. The client leaves and enters again without a
//! message, each time with the next fence of the range, under four conditions:
//!
//! - The node has not said that somebody else wants the lock.
//! - The connection on which the lock was granted still exists. When it ends, the client forgets
//!   what it keeps outside, and the node releases what the client does not claim.
//! - The node has answered within the first half of the TTL, counted from when the request was
//!   sent.
//! - The range is not used up.
//!
//! In all other cases the client releases the lock, and asks for it again.

use doorway_protocol::{Ask, Fence, Mode, Moment, Name, Request, put};

use super::{Grant, Phase, SessionMachine, State};

/// The version of the protocol since which nodes let clients keep locks.
const KEEPING: u16 = 5;

/// How many locks are kept while the client is outside. When there are more, the client gives back
/// the one that it has not used for the longest time.
const OUTSIDE: usize = 64;

/// A lock that the client keeps.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct KeptLock {
    /// The grant of the last entry.
    pub(super) grant: Grant,
    /// How many fences of the range are left.
    left: u32,
    /// Whether the client is inside.
    inside: bool,
    /// How many times locks had been left when this one was left.
    turn: u64,
}

impl KeptLock {
    pub(super) fn new(grant: Grant, more: u32) -> Self {
        Self { grant, left: more, inside: true, turn: 0 }
    }
}

impl SessionMachine {
    /// Enter a lock that is kept, if that is possible without the node. Returns the fence. If the
    /// lock is kept and cannot be entered, it is given back.
    pub(crate) fn reenter(&mut self, now: Moment, ask: &Ask) -> Option<Fence> {
        if !self.may_keep(ask) {
            return None;
        }
        let enters = self.may_reenter(now);
        let kept = self.kept.get_mut(&ask.lock).filter(|kept| !kept.inside)?;
        if !enters {
            self.give_back(now, &ask.lock);
            return None;
        }
        let fence = kept.grant.fence.next()?;
        kept.grant.fence = fence;
        kept.left -= 1;
        kept.inside = true;
        self.grants.insert((fence, ask.lock.clone()), kept.grant);
        self.outside -= 1;
        Some(fence)
    }

    /// Leave a lock and keep it, if that is possible without the node.
    pub(crate) fn leave_kept(&mut self, now: Moment, lock: &Name, fence: Fence) -> bool {
        if self.kept.is_empty() || !self.may_reenter(now) {
            return false;
        }
        let entry =
            |kept: &&mut KeptLock| kept.inside && kept.left > 0 && kept.grant.fence == fence;
        let Some(kept) = self.kept.get_mut(lock).filter(entry) else { return false };
        kept.inside = false;
        self.turns += 1;
        kept.turn = self.turns;
        self.grants.remove(&(fence, lock.clone()));
        self.outside += 1;
        if self.outside > OUTSIDE {
            let outside = self.kept.iter().filter(|(_, kept)| !kept.inside);
            let oldest = outside.min_by_key(|(_, kept)| kept.turn).map(|(lock, _)| lock.clone());
            oldest.inspect(|lock| self.give_back(now, lock));
        }
        true
    }

    /// Does the machine keep any lock? Then what the node says must be read soon.
    pub(crate) fn keeps(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Is nothing to be written to the connection?
    pub(crate) fn is_silent(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// Is this a request for a lock that the client wants to keep?
    fn may_keep(&self, ask: &Ask) -> bool {
        self.setup.keep && ask.mode == Mode::Exclusive && ask.permits.is_none()
    }

    /// May a lock that is kept be entered at this moment?
    fn may_reenter(&self, now: Moment) -> bool {
        self.phase == Phase::Talking && self.state(now) == State::Held
    }

    /// Write a request. A request for a lock asks the node to let the client keep it, if the node
    /// is known to understand that.
    pub(super) fn write(&mut self, request: &Request) {
        match request {
            Request::Acquire(number, ask)
                if self.may_keep(ask)
                    && self.phase == Phase::Talking
                    && self.version >= KEEPING =>
            {
                put(&Request::Keep(*number, ask.clone()), &mut self.outgoing);
            }
            request => {
                put(request, &mut self.outgoing);
            }
        }
    }

    /// Somebody else wants a lock.
    pub(super) fn wanted(&mut self, now: Moment, lock: &Name, base: Fence) {
        if self.entry_of(lock, base).is_some() {
            put(&Request::InUse(lock.clone(), base), &mut self.outgoing);
            if self.keeps_grant(lock, base) {
                self.forget_kept(lock);
            }
        } else if self.keeps_grant(lock, base) {
            self.give_back(now, lock);
        }
    }

    /// Does the node know a later entry by this fence, which was released before? To release it
    /// once more must not release that entry.
    pub(super) fn is_first_of_later_entry(&self, lock: &Name, fence: Fence) -> bool {
        self.setup.keep && (self.keeps_grant(lock, fence) || self.entry_of(lock, fence).is_some())
    }

    fn keeps_grant(&self, lock: &Name, base: Fence) -> bool {
        self.kept.get(lock).is_some_and(|kept| kept.grant.base == base)
    }

    /// The fence by which the program knows a grant, which the node knows by its first fence.
    pub(super) fn entry_of(&self, lock: &Name, base: Fence) -> Option<Fence> {
        let mut grants = self.grants.iter();
        let entry = grants.find(|((_, held), grant)| held == lock && grant.base == base)?;
        Some(entry.1.fence)
    }

    /// Keep nothing any more: give back what is kept outside.
    pub(super) fn give_back_all(&mut self, now: Moment) {
        let locks: Vec<Name> = self.kept.keys().cloned().collect();
        for lock in locks {
            self.give_back(now, &lock);
        }
    }

    /// Do not keep a lock any more. If the client is outside, the lock is released.
    fn give_back(&mut self, now: Moment, lock: &Name) {
        if let Some(kept) = self.forget_kept(lock)
            && !kept.inside
        {
            // The program has left this lock before, so nobody waits for the answer.
            let release = self.release_own(now, lock, kept.grant.base, None);
            self.quiet(release);
        }
    }

    /// Do not keep a lock any more, without telling the node.
    pub(super) fn forget_kept(&mut self, lock: &Name) -> Option<KeptLock> {
        let kept = self.kept.remove(lock)?;
        self.outside -= usize::from(!kept.inside);
        Some(kept)
    }

    /// Keep nothing any more, because the node releases what the client does not claim.
    pub(super) fn forget_all_kept(&mut self) {
        self.kept.clear();
        self.outside = 0;
    }
}
