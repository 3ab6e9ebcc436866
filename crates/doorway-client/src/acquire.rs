//! A request for a lock.

use std::time::Duration;

use doorway_protocol::{Ask, Mode, Name, NameError, Wait};

/// A request for a lock, made by `acquire` of a client and sent by `enter`.
///
/// Unless it is told otherwise, it asks for exclusive access and waits for as long as it takes.
#[derive(Debug)]
#[must_use = "the lock is requested by `enter`"]
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

    /// Hold the lock together with other clients that ask for it in this way, as readers do.
    pub fn shared(self) -> Self {
        self.change(|ask| ask.mode = Mode::Shared)
    }

    /// Use the lock as a semaphore that `permits` clients may hold at once.
    ///
    /// All clients of a lock must name the same number of permits.
    pub fn permits(self, permits: u32) -> Self {
        self.change(|ask| ask.permits = Some(permits))
    }

    /// Wait for at most this time. If the lock does not become free, `enter` returns
    /// [`Error::NotFree`](crate::Error::NotFree).
    pub fn within(self, time: Duration) -> Self {
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.change(|ask| ask.wait = Wait::Ms(ms))
    }

    /// Do not wait. If the lock is not free, `enter` returns
    /// [`Error::NotFree`](crate::Error::NotFree).
    pub fn try_now(self) -> Self {
        self.change(|ask| ask.wait = Wait::No)
    }
}
