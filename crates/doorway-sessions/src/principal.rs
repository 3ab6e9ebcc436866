//! The identity and the rights of a client.

use doorway_protocol::{Name, NamePattern, Window};

/// The identity of a client, as its connection proves it.
#[derive(Clone, Debug, Hash)]
pub struct Principal {
    /// Its name for logs and messages: `uid 1000`, `client ci`.
    pub name: String,
    /// The user, if the client uses a Unix socket.
    pub uid: Option<u32>,
    /// What it may do.
    pub rights: Rights,
}

/// A right to do something with a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Right {
    /// Acquire, renew and release it.
    Acquire,
    /// See its holders and waiting requests.
    Inspect,
    /// Take it from its holder.
    Break,
}

/// The rights of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rights(pub Vec<PatternRights>);

/// Rights to the locks that a pattern selects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PatternRights {
    /// Which locks.
    pub pattern: NamePattern,
    /// The rights to these locks.
    pub may: Vec<Right>,
}

impl Rights {
    /// All rights to all locks.
    pub fn all() -> Self {
        let may = vec![Right::Acquire, Right::Inspect, Right::Break];
        Self(vec![PatternRights { pattern: NamePattern::new("*"), may }])
    }

    /// Whether the client has a right to a lock. The rights to a lock are also rights to the locks
    /// of its windows.
    pub fn may(&self, right: Right, lock: &Name) -> bool {
        let has = |lock: &Name| {
            let matching = |allowed: &&PatternRights| allowed.pattern.matches(lock);
            self.0.iter().filter(matching).any(|allowed| allowed.may.contains(&right))
        };
        has(lock) || Window::of(lock).is_some_and(|(name, _)| has(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rights_to_a_lock_are_rights_to_its_windows() {
        let pattern = NamePattern::new("backup");
        let rights = Rights(vec![PatternRights { pattern, may: vec![Right::Acquire] }]);
        for (lock, may) in [
            ("backup", true),
            ("backup@1h@2026-11-17T18:00:00Z", true),
            ("backup@1h@2026-11-17T18:00:01Z", false),
            ("backup@1h", false),
            ("backups", false),
            ("report@1h@2026-11-17T18:00:00Z", false),
        ] {
            let lock = Name::new(lock).unwrap();
            assert_eq!(rights.may(Right::Acquire, &lock), may, "{lock}");
            assert!(!rights.may(Right::Break, &lock), "{lock}");
        }
    }
}
