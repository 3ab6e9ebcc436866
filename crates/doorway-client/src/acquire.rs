//! Asking for a lock.

use std::time::Duration;

use doorway_protocol::{Ask, Mode, Name, NameError, Wait};

/// A request for a lock, which waits as long as it takes unless it is told otherwise.
#[derive(Debug)]
#[must_use = "nothing is asked for before `enter`"]
pub struct Acquire<'a, C> {
    pub(crate) client: &'a C,
    pub(crate) ask: Result<Ask, NameError>,
}

impl<'a, C> Acquire<'a, C> {
    pub(crate) fn new(client: &'a C, lock: &str) -> Self {
        let (mode, permits, wait) = (Mode::Exclusive, None, Wait::Forever);
        let ask = Name::new(lock).map(|lock| Ask { lock, mode, permits, wait });
        Self { client, ask }
    }

    fn change(mut self, change: impl FnOnce(&mut Ask)) -> Self {
        if let Ok(ask) = &mut self.ask {
            change(ask);
        }
        self
    }

    /// Together with others that ask for it like this.
    pub fn shared(self) -> Self {
        self.change(|ask| ask.mode = Mode::Shared)
    }

    /// One of so many permits.
    pub fn permits(self, permits: u32) -> Self {
        self.change(|ask| ask.permits = Some(permits))
    }

    /// For at most that long.
    pub fn within(self, time: Duration) -> Self {
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.change(|ask| ask.wait = Wait::Ms(ms))
    }

    /// Only if it is free.
    pub fn try_now(self) -> Self {
        self.change(|ask| ask.wait = Wait::No)
    }
}
