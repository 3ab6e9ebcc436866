//! What each has of that which all share, so that nobody who may do little can have it all.
//!
//! Users of this machine are not counted: who may open the socket may do everything anyway.

use std::hash::RandomState;
use std::sync::Arc;

use doorway_protocol::{Code, Name, Refusal};
use hashbrown::HashMap;
use parking_lot::Mutex;

use super::refusals::refusal;
use crate::principal::Principal;

/// Something of which there is only so much.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum What {
    Connections,
    Sessions,
    /// Requests that wait.
    Waiting,
    /// Those of them that wait for this lock.
    Queue(Name),
    /// Those who hear of events.
    Listeners,
    /// Descriptors of processes.
    Processes,
}

/// Who has how much of what. Who has nothing is not in it.
#[derive(Debug, Default)]
pub(crate) struct Shares(Mutex<HashMap<(What, String), usize, RandomState>>);

/// It counts until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    shares: Arc<Shares>,
    key: (What, String),
    number: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut shares = self.shares.0.lock();
        if let Some(count) = shares.get_mut(&self.key) {
            *count -= self.number;
            if *count == 0 {
                shares.remove(&self.key);
            }
        }
    }
}

impl Shares {
    /// So many more, unless that is more than the most.
    pub(crate) fn take(
        self: &Arc<Self>,
        what: What,
        whose: &str,
        number: usize,
        most: usize,
    ) -> Option<Share> {
        let key = (what, whose.to_owned());
        let mut shares = self.0.lock();
        let had = shares.get(&key).copied().unwrap_or(0);
        let count = had.checked_add(number).filter(|count| *count <= most)?;
        shares.insert(key.clone(), count);
        drop(shares);
        Some(Share { shares: Arc::clone(self), key, number })
    }

    /// One more for a client of another machine, which may have half of all; others need no share.
    /// `name` is where all are limited, and `things` what they are called.
    pub(crate) fn take_half(
        self: &Arc<Self>,
        what: What,
        principal: &Principal,
        all: usize,
        name: &str,
        things: &str,
    ) -> Result<Option<Share>, Refusal> {
        if principal.uid.is_some() {
            return Ok(None);
        }
        let most = half(all);
        self.take(what, &principal.name, 1, most).map(Some).ok_or_else(|| {
            let text = format!(
                "{} has {most} {things}, and no client of another machine may have more than half \
                 of what all may (`{name}` = {all})",
                principal.name
            );
            refusal(Code::Busy, text)
        })
    }

    /// How much has he?
    pub(crate) fn of(&self, what: What, whose: &str) -> usize {
        self.0.lock().get(&(what, whose.to_owned())).copied().unwrap_or(0)
    }
}

/// What one of many may have.
pub(crate) fn half(all: usize) -> usize {
    all.div_ceil(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::principal::Rights;

    #[test]
    fn nobody_of_another_machine_has_more_than_half() {
        let shares = Arc::new(Shares::default());
        let client = |name: &str, uid| Principal { name: name.into(), uid, rights: Rights::all() };
        let take = |principal: &Principal| {
            shares.take_half(What::Sessions, principal, 5, "limits.sessions", "sessions")
        };
        let (one, other, user) = (client("a", None), client("b", None), client("c", Some(7)));
        let mut kept: Vec<_> = (0..3).map(|_| take(&one).unwrap()).collect();
        let refused = take(&one).unwrap_err();
        assert_eq!(refused.code, Code::Busy);
        assert!(refused.text.contains("`limits.sessions` = 5"), "{refused}");
        assert!(take(&other).unwrap().is_some());
        assert!((0..9).all(|_| take(&user).unwrap().is_none()));
        kept.pop();
        assert!(take(&one).is_ok());
        kept.clear();
        assert!(shares.0.lock().is_empty(), "nobody is remembered who has nothing");
    }
}
