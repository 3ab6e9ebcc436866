//! The clock of a machine, which need not run as fast as time does.

use doorway_protocol::Moment;

/// A millisecond and a second, in nanoseconds.
pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1000 * MS;

/// How much too fast the two clocks of a machine are, in parts of a million. A time service may
/// slew one of them: see [`doorway_protocol::LeaseClock`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drift {
    pub(crate) raw: i64,
    pub(crate) boot: i64,
}

impl Drift {
    /// The clock of clients: the faster of the two.
    pub(crate) fn client(self) -> Clock {
        Clock::new(self.raw.max(self.boot))
    }

    /// The clock by which a node counts the time of its sessions: the slower of the two.
    pub(crate) fn node(self) -> Clock {
        Clock::new(self.raw.min(self.boot))
    }

    /// The clock that counts suspended time.
    pub(crate) fn boot(self) -> Clock {
        Clock::new(self.boot)
    }

    /// The clock that nobody adjusts. It is asked only for times at which the machine was awake.
    pub(crate) fn raw(self) -> Clock {
        Clock::new(self.raw)
    }
}

/// A clock that goes on while the machine sleeps, and begins again when the machine is started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// When the machine was started.
    began: u64,
    /// How much too fast the clock is, in parts of a million.
    drift: i64,
}

impl Clock {
    /// What the clock shows when its machine is started, so that no moment is 0.
    const BOOT: u64 = SECOND;

    fn new(drift: i64) -> Self {
        Self { began: 0, drift }
    }

    /// This clock, on a machine that was started when the machine of that clock was.
    pub(crate) fn started_with(self, other: Self) -> Self {
        Self { began: other.began, ..self }
    }

    pub(crate) fn restart(&mut self, now: u64) {
        self.began = now;
    }

    /// What the clock shows at this time.
    pub(crate) fn read(self, now: u64) -> Moment {
        let passed = i128::from(now - self.began);
        let shown = passed + passed * i128::from(self.drift) / 1_000_000;
        Moment(Self::BOOT + shown as u64)
    }

    /// The first time at which the clock shows this moment or a later one.
    pub(crate) fn when(self, moment: Moment) -> u64 {
        if moment == Moment::NEVER {
            return u64::MAX;
        }
        let shown = i128::from(moment.0.saturating_sub(Self::BOOT));
        let passed = shown * 1_000_000 / (1_000_000 + i128::from(self.drift));
        let mut time = u64::try_from(passed).unwrap_or(u64::MAX / 2).saturating_add(self.began);
        while self.read(time) < moment {
            time += 1;
        }
        time
    }
}
