//! Locks that stay at their node for a moment, because a client that has just left may be about to
//! ask again.
//!
//! A visit of the lock at a node has a number of entries that is proportional to the number of
//! clients that wait there. A client that leaves needs a round trip to its node until it asks
//! again. Without lingering, a node with few clients would pass the lock on before its entries are
//! used up, and its clients would get less than their share.
//!
//! While a lock lingers, nobody uses it. So it lingers only where clients have been seen to come
//! back in time, and a client that does not come back costs the lock much of that credit. Clients
//! are watched without a cost: if the lock was passed on at once and a client of this node asks
//! within [`Rule::linger`](super::Rule::linger) after that, it would have come back in time.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use super::effects::ShardEffects;
use super::lock::Lock;
use super::shard::Shard;

/// How long a lock lingers for a client. To pass a lock to another node and back takes about as
/// long.
pub(crate) const LINGER: Duration = Duration::from_micros(200);

/// How much a client that comes back in time adds to the credit of its lock, how much one costs
/// that does not, and the highest credit. So a lock lingers if four of five clients come back.
const GAIN: u8 = 1;
const PRICE: u8 = 4;
const MOST: u8 = 16;

/// How likely it is that a client of a lock comes back in time, judged by those before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Patience {
    credit: u8,
    /// When the lock was last passed on although it might have lingered, in microseconds since the
    /// node started, modulo 2^32; until a client asks.
    passed_on: Option<u32>,
}

impl Hash for Patience {
    /// Times are left out, as those of clients are.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.credit.hash(state);
    }
}

impl Patience {
    /// Should the lock linger now? If not, it is passed on at once.
    fn decide(&mut self, now: Duration) -> bool {
        let lingers = self.credit > 0;
        self.passed_on = (!lingers).then(|| microseconds(now));
        lingers
    }

    /// A client of this node asks for the lock.
    pub(super) fn asks(&mut self, now: Duration, linger: Duration) {
        let Some(passed_on) = self.passed_on.take() else { return };
        if u128::from(microseconds(now).wrapping_sub(passed_on)) <= linger.as_micros() {
            self.came_back();
        }
    }

    fn came_back(&mut self) {
        self.credit = (self.credit + GAIN).min(MOST);
    }

    fn stayed_away(&mut self) {
        self.credit = self.credit.saturating_sub(PRICE);
    }
}

/// A time in microseconds, modulo 2^32. That is more than an hour, and only short times are
/// measured with it.
fn microseconds(time: Duration) -> u32 {
    time.as_micros() as u32
}

impl Shard {
    /// Note whether a lock lingers, after anything that may have changed it.
    pub(super) fn track_linger(&mut self, at: u32, now: Duration, out: &mut ShardEffects) {
        let entry = self.table.get_mut(at);
        let lingers = entry.lock.lingers();
        if !lingers && self.lingering.is_empty() {
            return; // The usual case.
        }
        let known = self.lingering.iter().position(|(lock, _)| *lock == at);
        match known {
            None if lingers => {
                if entry.patience.decide(now) {
                    let linger = self.seating.rules[entry.rule as usize].linger;
                    self.lingering.push((at, now.saturating_add(linger)));
                    out.lingers = true;
                } else {
                    self.apply(at, now, out, Lock::end_linger);
                }
            }
            Some(known) if !lingers => {
                self.lingering.swap_remove(known);
                if entry.lock.inside().next().is_some() {
                    entry.patience.came_back();
                }
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
            self.table.get_mut(at).patience.stayed_away();
            self.apply(at, now, out, Lock::end_linger);
            self.mark_used(at);
        }
        out.lingers |= !self.lingering.is_empty();
    }
}
