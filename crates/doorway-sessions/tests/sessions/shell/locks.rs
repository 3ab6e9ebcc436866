//! The locks of a node without peers: exclusive, first come, first served.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use doorway_protocol::{Code, Fence, Moment, Name, Refusal, Wait};
use doorway_sessions::{AskId, Input};

/// The locks of a node.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Locks {
    /// Which start of the node this is. Fences of a later start are higher.
    start: u64,
    clock: u64,
    /// Whether the numbers that clients keep are given to others as well.
    repeats: bool,
    serving: bool,
    table: BTreeMap<Name, Lock>,
}

#[derive(Clone, Debug, Default, Hash)]
struct Lock {
    holder: Option<(AskId, Fence)>,
    queue: VecDeque<Waiter>,
}

#[derive(Clone, Debug, Hash)]
struct Waiter {
    ask: AskId,
    until: Moment,
    /// Whether the request waits only until the node serves.
    impatient: bool,
    /// How many numbers it wants after its fence.
    numbers: u32,
}

impl Locks {
    /// The locks of a node after this many starts, which grants nothing yet.
    pub(super) fn new(start: u64, repeats: bool) -> Self {
        Self { start, repeats, ..Self::default() }
    }

    /// Grant a request to which nobody else is a rival, or many are.
    fn grant(&mut self, ask: AskId, name: &Name, numbers: u32) -> Input {
        self.clock += 1;
        let fence = Fence::new(self.start, self.clock);
        let lock = self.table.entry(name.clone()).or_default();
        lock.holder = Some((ask, fence));
        if numbers == 0 || !lock.queue.is_empty() {
            return Input::Granted(ask, fence);
        }
        if !self.repeats {
            self.clock += u64::from(numbers);
        }
        Input::GrantedToKeep(ask, fence, numbers)
    }

    /// The fence with which a lock is held.
    pub(crate) fn holder(&self, name: &Name) -> Option<Fence> {
        self.table.get(name)?.holder.map(|(_, fence)| fence)
    }

    /// How many locks are held.
    pub(crate) fn held(&self) -> usize {
        self.table.values().filter(|lock| lock.holder.is_some()).count()
    }

    /// How many requests wait.
    pub(crate) fn waiting(&self) -> usize {
        self.table.values().map(|lock| lock.queue.len()).sum()
    }

    /// Whether a lock is neither held nor waited for.
    pub(super) fn is_free(&self, name: &Name) -> bool {
        self.serving && !self.table.contains_key(name)
    }

    pub(super) fn acquire(
        &mut self,
        now: Moment,
        ask: AskId,
        name: &Name,
        wait: Wait,
        numbers: u32,
    ) -> Input {
        let lock = self.table.entry(name.clone()).or_default();
        if self.serving && lock.holder.is_none() {
            return self.grant(ask, name, numbers);
        }
        let impatient = wait == Wait::No;
        if impatient && self.serving {
            return Input::Refused(ask, not_free());
        }
        let until = match wait {
            Wait::Ms(ms) => now.after(Duration::from_millis(ms)),
            Wait::No | Wait::Forever => Moment::NEVER,
        };
        lock.queue.push_back(Waiter { ask, until, impatient, numbers });
        Input::Queued(ask)
    }

    pub(super) fn reclaim(&mut self, ask: AskId, name: Name, fence: Fence) -> Input {
        let lock = self.table.entry(name).or_default();
        if lock.holder.is_some() {
            return Input::Refused(ask, refusal(Code::Gone, "another client holds it"));
        }
        lock.holder = Some((ask, fence));
        Input::Granted(ask, fence)
    }

    /// A grant was given back.
    pub(super) fn release(&mut self, ask: AskId) {
        for lock in self.table.values_mut() {
            lock.holder = lock.holder.filter(|(holder, _)| *holder != ask);
        }
        self.forget_unused();
    }

    /// A request does not wait any more.
    pub(super) fn abandon(&mut self, ask: AskId) {
        self.table.values_mut().for_each(|lock| lock.queue.retain(|waiter| waiter.ask != ask));
        self.forget_unused();
    }

    /// Grant locks from now on.
    pub(super) fn serve(&mut self) {
        self.serving = true;
    }

    /// The next request that waited and has an answer now.
    pub(super) fn next_grant(&mut self) -> Option<Input> {
        if !self.serving {
            return None;
        }
        let next = |(_, lock): &(&Name, &mut Lock)| lock.holder.is_none() && !lock.queue.is_empty();
        if let Some((name, lock)) = self.table.iter_mut().find(next) {
            let (name, waiter) = (name.clone(), lock.queue.pop_front()?);
            return Some(self.grant(waiter.ask, &name, waiter.numbers));
        }
        self.refuse(|waiter| waiter.impatient)
    }

    /// When the first request times out.
    pub(super) fn due(&self) -> Moment {
        let waiters = self.table.values().flat_map(|lock| &lock.queue);
        waiters.map(|waiter| waiter.until).min().unwrap_or(Moment::NEVER)
    }

    /// The next request that has timed out.
    pub(super) fn time_out(&mut self, now: Moment) -> Option<Input> {
        self.refuse(|waiter| waiter.until <= now)
    }

    fn refuse(&mut self, which: impl Fn(&Waiter) -> bool) -> Option<Input> {
        let mut waiters = self.table.values().flat_map(|lock| &lock.queue);
        let ask = waiters.find(|waiter| which(waiter))?.ask;
        self.abandon(ask);
        Some(Input::Refused(ask, not_free()))
    }

    fn forget_unused(&mut self) {
        self.table.retain(|_, lock| lock.holder.is_some() || !lock.queue.is_empty());
    }
}

pub(super) fn refusal(code: Code, text: &str) -> Refusal {
    Refusal { code, text: text.to_owned() }
}

pub(crate) fn not_free() -> Refusal {
    refusal(Code::NotFree, "the lock is not free")
}
