//! Other services with locks, which are measured if they are installed.

use std::time::Duration;

use crate::etcd::Etcd;
use crate::group::Group;
use crate::redis::Redis;
use crate::zookeeper::ZooKeeper;

/// How long a holder that falls silent keeps its lock: the lease of the nodes beside it.
pub(crate) const HOLDER: Duration = Duration::from_secs(2);

/// A service with locks, and a client of it.
pub(crate) trait LockService {
    fn name(&self) -> &'static str;

    /// Acquire a lock that is free.
    fn acquire(&mut self);

    /// Release the lock.
    fn release(&mut self);

    /// Let another client hold a lock and fall silent, while this one waits for it. Returns the
    /// time from the last message of the holder to the entry of this client.
    fn next_in(&mut self) -> Duration;
}

/// All services that are installed.
pub(crate) fn all(group: &Group) -> Vec<Box<dyn LockService>> {
    let mut all: Vec<Box<dyn LockService>> = Vec::new();
    all.extend(Etcd::start(group).map(|it| Box::new(it) as Box<dyn LockService>));
    all.extend(ZooKeeper::start(group).map(|it| Box::new(it) as Box<dyn LockService>));
    all.extend(Redis::start(group).map(|it| Box::new(it) as Box<dyn LockService>));
    all
}
