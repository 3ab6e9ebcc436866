//! Locks of several permits at a node alone, where nothing has to be configured.
//!
//! Whoever asks for one of `k` permits of `NAME` gets one of the lock `%k/K/NAME`, which the node
//! serves with so many. All who use a name at the same time must agree on the number, so it is kept
//! here who does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use doorway_node::{Config, RuleConfig};
use doorway_protocol::{Code, Name, Refusal};
use parking_lot::Mutex;

use super::refusals::refusal;

/// How names begin that no client can use.
pub(crate) const RESERVED: char = '%';

/// How the names of locks with permits begin.
const BEGINNING: &str = "%k/";

/// So many permits may be asked for without any configuration.
const MAX: u32 = 64;

/// Let a node without peers serve every number of permits, whatever its settings say.
pub(crate) fn prepare(config: &mut Config) {
    if config.members.len() > 1 {
        return;
    }
    let rule = |permits| RuleConfig {
        pattern: format!("{BEGINNING}{permits}/*"),
        algorithm: "raymond-k".into(),
        permits,
    };
    // The first rule that fits counts, and the pattern of a user may fit every name.
    config.rules.splice(..0, (2..=MAX).map(rule));
}

/// The name by which clients know a lock.
pub(crate) fn visible(name: &Name) -> &str {
    let text = name.as_str();
    let rest = text.strip_prefix(BEGINNING).and_then(|rest| rest.split_once('/'));
    rest.map_or(text, |(_, name)| name)
}

/// The same as a name.
pub(crate) fn visible_name(name: &Name) -> Name {
    let text = visible(name);
    if text.len() == name.as_str().len() {
        return name.clone();
    }
    Name::new(text).expect("a part of a name that ends it and is not empty is one")
}

/// Who uses which name with how many permits.
#[derive(Debug, Default)]
pub(crate) struct Permits {
    used: Mutex<BTreeMap<Name, Use>>,
    /// How many names are used with permits: mostly none, and then nothing has to be looked up.
    names: AtomicUsize,
}

#[derive(Debug)]
struct Use {
    permits: u32,
    /// By so many who are inside or wait.
    by: usize,
    /// Nobody uses it without permits: that was looked for since the first of these came.
    sure: bool,
}

/// Counts as one who uses a name, until it is dropped.
#[derive(Debug)]
pub(crate) struct Ticket {
    permits: Arc<Permits>,
    number: u32,
    lock: Option<Name>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.lock.iter().for_each(|lock| self.permits.leave(lock));
    }
}

impl Ticket {
    /// The count goes over to a grant, whose end is told by [`Permits::leave`].
    pub(crate) fn keep(mut self) {
        self.lock = None;
    }

    /// With so many permits.
    pub(crate) fn permits(&self) -> u32 {
        self.number
    }
}

impl Permits {
    /// Use a name with so many permits: the lock to ask for, and what counts meanwhile.
    pub(crate) fn enter(
        self: &Arc<Self>,
        lock: &Name,
        permits: u32,
    ) -> Result<(Name, Ticket), Refusal> {
        if !(2..=MAX).contains(&permits) {
            let text = format!("{permits} permits of `{lock}`: 1 to {MAX} can be asked for");
            return Err(refusal(Code::Invalid, text));
        }
        let text = format!("{BEGINNING}{permits}/{lock}");
        let inner = Name::new(&text).map_err(|_| {
            let most = Name::MAX - (text.len() - lock.as_str().len());
            let text =
                format!("the name of a lock with {permits} permits has at most {most} bytes");
            refusal(Code::NotServed, text)
        })?;
        let mut used = self.used.lock();
        let of = used.entry(lock.clone()).or_insert(Use { permits, by: 0, sure: false });
        if of.permits != permits {
            return Err(differ(lock, of.permits));
        }
        of.by += 1;
        self.names.store(used.len(), Ordering::SeqCst);
        let (all, lock) = (Arc::clone(self), Some(lock.clone()));
        Ok((inner, Ticket { permits: all, number: permits, lock }))
    }

    /// One who used a name does so no more.
    pub(crate) fn leave(&self, lock: &Name) {
        let mut used = self.used.lock();
        if let Some(of) = used.get_mut(lock) {
            of.by -= 1;
            if of.by == 0 {
                used.remove(lock);
                self.names.store(used.len(), Ordering::SeqCst);
            }
        }
    }

    /// Is it known that nobody uses it without permits?
    pub(crate) fn is_sure(&self, lock: &Name) -> bool {
        self.used.lock().get(lock).is_some_and(|of| of.sure)
    }

    /// It is. Whoever comes without permits from now on sees those who use them.
    pub(crate) fn be_sure(&self, lock: &Name) {
        self.used.lock().get_mut(lock).into_iter().for_each(|of| of.sure = true);
    }

    /// Refuse a lock that is used with permits to one who did not ask for any.
    pub(crate) fn check_unused(&self, lock: &Name) -> Result<(), Refusal> {
        self.number(lock).map_or(Ok(()), |permits| Err(differ(lock, permits)))
    }

    /// With how many permits is it used now, if with any?
    pub(crate) fn number(&self, lock: &Name) -> Option<u32> {
        if self.names.load(Ordering::SeqCst) == 0 {
            return None;
        }
        self.used.lock().get(lock).map(|of| of.permits)
    }

    /// The lock that stands behind a name now.
    pub(crate) fn behind(&self, lock: &Name) -> Name {
        let permits = self.number(lock);
        let name =
            permits.and_then(|permits| Name::new(&format!("{BEGINNING}{permits}/{lock}")).ok());
        name.unwrap_or_else(|| lock.clone())
    }

    /// Names that are used with permits, in order: those that may be seen and begin like this,
    /// after that one.
    pub(crate) fn names(
        &self,
        prefix: &str,
        after: Option<&Name>,
        most: usize,
        may: impl Fn(&Name) -> bool,
    ) -> Vec<Name> {
        let used = self.used.lock();
        let fits = |name: &&Name| {
            name.as_str().starts_with(prefix)
                && after.is_none_or(|after| *name > after)
                && may(name)
        };
        used.keys().filter(fits).take(most).cloned().collect()
    }
}

/// One number at a time.
pub(crate) fn differ(lock: &Name, permits: u32) -> Refusal {
    let text = match permits {
        1 => format!("`{lock}` is in use without permits: ask for it without, or wait"),
        _ => format!("`{lock}` is in use with {permits} permits: ask for as many, or wait"),
    };
    refusal(Code::NotServed, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_at_a_time() {
        let (permits, lock) = (Arc::new(Permits::default()), Name::new("a/b").unwrap());
        let (name, one) = permits.enter(&lock, 4).unwrap();
        assert_eq!((name.as_str(), visible(&name)), ("%k/4/a/b", "a/b"));
        assert_eq!(permits.behind(&lock), name);
        let (_, other) = permits.enter(&lock, 4).unwrap();
        assert_eq!(permits.enter(&lock, 3).unwrap_err().code, Code::NotServed);
        assert!(permits.check_unused(&lock).is_err());
        drop(one);
        other.keep();
        assert_eq!(permits.number(&lock), Some(4), "it is still used by what was kept");
        permits.leave(&lock);
        assert_eq!(permits.number(&lock), None);
        assert!(permits.enter(&lock, 3).is_ok());
    }

    #[test]
    fn only_some_numbers_and_names_can_be() {
        let (permits, lock) = (Arc::new(Permits::default()), Name::new(&"x".repeat(195)).unwrap());
        for number in [0, 1, 65, u32::MAX] {
            assert_eq!(permits.enter(&lock, number).unwrap_err().code, Code::Invalid);
        }
        let refused = permits.enter(&lock, 10).unwrap_err();
        assert!(refused.text.ends_with("at most 194 bytes"), "{refused}");
        assert_eq!(permits.names("", None, 10, |_| true), [], "what was refused uses nothing");
    }
}
