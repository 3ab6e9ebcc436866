//! Checks of what every lock promises, against what happens.

use std::collections::BTreeSet;

use doorway_core::Mode;
use doorway_node::Fence;
use doorway_node::locks::Rule;

/// Checks all locks of a group.
pub(crate) struct Watch(Vec<Lock>);

#[derive(Clone, Default)]
struct Lock {
    readers: usize,
    others: usize,
    /// The highest fence of an exclusive grant so far, and of any grant.
    exclusive: Option<Fence>,
    any: Option<Fence>,
    permits: BTreeSet<Fence>,
}

impl Watch {
    pub(crate) fn new(locks: usize) -> Self {
        Self(vec![Lock::default(); locks])
    }

    pub(crate) fn enters(&mut self, lock: usize, rule: &Rule, mode: Mode, fence: Fence) {
        let lock = &mut self.0[lock];
        if rule.info.permits {
            assert!(lock.permits.insert(fence), "the fence {fence:?} was given twice");
            lock.others += 1;
        } else if mode == Mode::Exclusive {
            assert!(lock.any < Some(fence), "{fence:?} after {:?}", lock.any);
            lock.exclusive = Some(fence);
            lock.others += 1;
        } else {
            assert!(lock.exclusive < Some(fence), "{fence:?} after {:?}", lock.exclusive);
            lock.readers += 1;
        }
        lock.any = lock.any.max(Some(fence));
        let inside = (lock.readers, lock.others);
        let room = rule.group.permits() as usize;
        assert!(lock.others == 0 || lock.readers + lock.others <= room, "inside: {inside:?}");
    }

    pub(crate) fn leaves(&mut self, lock: usize, mode: Mode) {
        let lock = &mut self.0[lock];
        match mode {
            Mode::Exclusive => lock.others -= 1,
            Mode::Shared => lock.readers -= 1,
        }
    }
}
