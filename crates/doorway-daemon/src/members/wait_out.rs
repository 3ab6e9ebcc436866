//! Waiting until the nodes of a former group have promised nothing any more.

use std::thread::sleep;
use std::time::Duration;

use doorway_node::members::ClockTimes;
use doorway_protocol::Moment;

/// Wait until a lease of this length is over that a node may have renewed just now, wherever its
/// clients are.
///
/// This takes as long as the members of a group wait before they remove a silent member, by both
/// clocks of this machine: see [`ClockTimes::left`]. A sleep alone is not enough. It is measured
/// with `CLOCK_MONOTONIC`, which a time service may let run too fast.
pub fn wait_out(lease: Duration) {
    let now = || ClockTimes {
        boot: Moment::boot().since(Moment::default()),
        raw: Moment::raw().since(Moment::default()),
    };
    wait_by(lease, now, sleep);
}

/// Wait by these clocks, with this function that sleeps.
fn wait_by(lease: Duration, now: impl Fn() -> ClockTimes, mut sleep: impl FnMut(Duration)) {
    let began = now();
    loop {
        let left = now().left(began, lease);
        if left.is_zero() {
            return;
        }
        sleep(left);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// How much time really passes in a wait, if the clocks of the machine run at these rates, in
    /// thousandths, and sleeps are as short as `boot` lets them be.
    fn real(lease: Duration, boot: u32, raw: u32) -> Duration {
        let real = Cell::new(Duration::ZERO);
        let at = |rate: u32| real.get() * rate / 1000;
        let now = || ClockTimes { boot: at(boot), raw: at(raw) };
        wait_by(lease, now, |span| {
            let span = span * 1000 / boot + Duration::from_nanos(1);
            real.set(real.get() + span);
        });
        real.get()
    }

    #[test]
    fn no_clock_of_the_machine_can_make_the_wait_shorter_than_the_lease() {
        for lease in [2, 10, 300].map(Duration::from_secs) {
            for (boot, raw) in [(1000, 1000), (1085, 1000), (1085, 1001), (915, 999)] {
                let real = real(lease, boot, raw);
                assert!(real > lease, "{lease:?} at {boot} and {raw}: {real:?}");
                assert!(real < lease * 11 / 10 + Duration::from_millis(300), "{real:?}");
            }
        }
    }

    #[test]
    fn time_in_which_the_machine_is_suspended_does_not_count() {
        // The clock that counts it says that the wait is over after the first sleep.
        let (boot, raw) = (Cell::new(Duration::ZERO), Cell::new(Duration::ZERO));
        let now = || ClockTimes { boot: boot.get(), raw: raw.get() };
        wait_by(Duration::from_secs(10), now, |span| {
            boot.set(boot.get() + Duration::from_hours(1));
            raw.set(raw.get() + span / 2 + Duration::from_millis(1));
        });
        assert!(raw.get() > Duration::from_secs(10));
    }
}
