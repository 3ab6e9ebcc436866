//! Who a client is and what it may do.

use doorway_protocol::{Name, NamePattern};

/// A client, as its connection proves it.
#[derive(Clone, Debug)]
pub struct Principal {
    /// For logs and people: `uid 1000`, `client ci`.
    pub name: String,
    /// The user, if it came through a Unix socket.
    pub uid: Option<u32>,
    /// What it may do.
    pub rights: Rights,
}

/// Something that a client may be allowed to do with a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Acquire, renew and release it.
    Acquire,
    /// See who holds it and who waits.
    Inspect,
    /// Take it from whoever holds it.
    Break,
}

/// What a client may do with which locks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights(pub Vec<Allowed>);

/// Rights to the locks that a pattern selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Which locks.
    pub pattern: NamePattern,
    /// What may be done.
    pub may: Vec<Right>,
}

impl Rights {
    /// Everything.
    pub fn all() -> Self {
        let may = vec![Right::Acquire, Right::Inspect, Right::Break];
        Self(vec![Allowed { pattern: NamePattern::new("*"), may }])
    }

    /// May it do that with this lock?
    pub fn may(&self, right: Right, lock: &Name) -> bool {
        let matching = |allowed: &&Allowed| allowed.pattern.matches(lock);
        self.0.iter().filter(matching).any(|allowed| allowed.may.contains(&right))
    }
}
