//! How quickly the clients of a lock come back after they have left, and the locks that linger for
//! them.
//!
//! One question decides both how often a visit serves each client and whether the lock lingers: do
//! clients ask again within [`Patience::linger`]? So a client has the same share at a node where it
//! is alone as at one where others fill the time until it is back.
//!
//! A node watches one client at a time, from when it leaves until its session asks again. Requests
//! without a session are taken for each other's. A lock is trusted after a number of quick returns,
//! and one slow return costs as much trust as many quick ones bring, because nobody uses a lock
//! that lingers in vain. Each time that it does, it needs twice as many quick returns: clients that
//! ask again only when another one has entered come back quickly, but never while the lock lingers.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use super::clients::Client;
use super::effects::ShardEffects;
use super::lock::{Lock, Pace};
use super::shard::Shard;

/// How much trust a slow return costs. A quick one brings 1.
const PRICE: u16 = 8;

/// How much more trust than it needs a lock can have.
const RESERVE: u16 = 12;

/// The most trust that a lock may need.
const MOST_NEEDED: u16 = 1024;

/// How a lock is served whose clients come back quickly, while another node waits for it.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// A client comes back quickly if it asks again within this time. The lock lingers for as long.
    pub linger: Duration,
    /// A visit has another round only if it begins within this time for each client that waited as
    /// the visit began.
    pub slice: Duration,
    /// How much trust a lock needs, unless it has lingered in vain.
    pub trust: u16,
}

impl Patience {
    /// The patience of nodes. To pass a lock to another node and back takes about as long as it
    /// lingers. The slice has room for several rounds of short critical sections. If they are
    /// longer than that, the messages between nodes hardly matter.
    pub(crate) const SHORT: Self =
        Self { linger: Duration::from_micros(200), slice: Duration::from_millis(1), trust: 4 };
}

/// How quickly the clients of a lock come back.
#[derive(Clone, Debug, Default)]
pub(super) struct Returns {
    trust: u16,
    /// How much more trust it needs than [`Patience::trust`], because it has lingered in vain.
    doubt: u16,
    /// A client that has left and has not asked again: its session, and when it left.
    away: Option<(u64, Duration)>,
    /// When the first client of the present visit entered.
    begun: Duration,
}

impl Hash for Returns {
    /// Times are left out, as those of clients are.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.trust, self.doubt, self.away.map(|(session, _)| session)).hash(state);
    }
}

impl Returns {
    /// A client leaves while another node waits. `visit` is how many clients have entered in this
    /// visit, and how many waited as it began.
    fn leaves(
        &mut self,
        patience: &Patience,
        (turns, crowd): (u16, u16),
        client: &Client,
        now: Duration,
    ) -> Pace {
        if turns <= 1 {
            self.begun = client.since();
        }
        if self.away.is_some_and(|(_, left)| now.saturating_sub(left) > patience.linger) {
            self.stayed_away();
        }
        self.away.get_or_insert((client.session, now));
        let slice = patience.slice.saturating_mul(crowd.max(1).into());
        if self.trust < self.needed(patience) {
            Pace::Slow
        } else if now.saturating_sub(self.begun) > slice {
            Pace::Late
        } else {
            Pace::Quick
        }
    }

    /// A client of this session asks for the lock.
    fn asks(&mut self, patience: &Patience, session: u64, now: Duration) {
        let Some((_, left)) = self.away.take_if(|(away, _)| *away == session) else { return };
        if now.saturating_sub(left) <= patience.linger {
            self.trust = (self.trust + 1).min(self.needed(patience) + RESERVE);
        } else {
            self.stayed_away();
        }
    }

    fn needed(&self, patience: &Patience) -> u16 {
        patience.trust.saturating_add(self.doubt)
    }

    /// Nobody came back while the lock lingered.
    fn lingered_in_vain(&mut self, patience: &Patience) {
        self.doubt =
            (2 * self.needed(patience).min(MOST_NEEDED / 2)).saturating_sub(patience.trust);
        self.stayed_away();
    }

    fn stayed_away(&mut self) {
        self.away = None;
        self.trust = self.trust.saturating_sub(PRICE);
    }
}

impl Shard {
    /// A client of this session asks for a lock.
    pub(super) fn note_request(&mut self, at: u32, session: u64, now: Duration) {
        let entry = self.table.get_mut(at);
        if let Some(returns) = &mut entry.returns
            && let Some(patience) = &self.seating.rules[entry.rule as usize].patience
        {
            if entry.lock.lingers() {
                returns.doubt = 0;
            }
            returns.asks(patience, session, now);
        }
    }

    /// A client leaves its lock. Returns how quickly clients of this lock come back.
    pub(super) fn note_departure(&mut self, client: &Client, now: Duration) -> Pace {
        let entry = self.table.get_mut(client.lock);
        let rule = &self.seating.rules[entry.rule as usize];
        let Some(patience) = &rule.patience else { return Pace::Slow };
        if !client.uses_lock() || !entry.lock.is_disputed(rule) {
            return Pace::Slow;
        }
        let visit = entry.lock.visit();
        entry.returns.get_or_insert_default().leaves(patience, visit, client, now)
    }

    /// Note whether a lock lingers, after anything that may have changed it.
    pub(super) fn track_linger(&mut self, at: u32, now: Duration, out: &mut ShardEffects) {
        let entry = self.table.get(at);
        let lingers = entry.lock.lingers();
        if !lingers && self.lingering.is_empty() {
            return; // The usual case.
        }
        let known = self.lingering.iter().position(|(lock, _)| *lock == at);
        match known {
            None if lingers => {
                let patience = &self.seating.rules[entry.rule as usize].patience;
                let linger = patience.as_ref().map_or(Duration::ZERO, |it| it.linger);
                self.lingering.push((at, now.saturating_add(linger)));
                out.lingers = true;
            }
            Some(known) if !lingers => {
                self.lingering.swap_remove(known);
            }
            _ => {}
        }
    }

    /// Pass on the locks that have lingered long enough. If others still linger,
    /// [`ShardEffects::lingers`] says so.
    pub fn end_lingers(&mut self, now: Duration, out: &mut ShardEffects) {
        self.check_lease(now, out);
        while let Some(over) = self.lingering.iter().position(|(_, until)| *until <= now) {
            let (at, _) = self.lingering.swap_remove(over);
            let entry = self.table.get_mut(at);
            if let Some(returns) = &mut entry.returns
                && let Some(patience) = &self.seating.rules[entry.rule as usize].patience
            {
                returns.lingered_in_vain(patience);
            }
            self.apply(at, now, out, Lock::end_linger);
            self.mark_used(at);
        }
        out.lingers |= !self.lingering.is_empty();
    }

    /// Pass on all locks that linger, because the shard stops.
    pub(super) fn end_all_lingers(&mut self, now: Duration, out: &mut ShardEffects) {
        while let Some((at, _)) = self.lingering.pop() {
            self.apply(at, now, out, Lock::end_linger);
        }
    }
}
