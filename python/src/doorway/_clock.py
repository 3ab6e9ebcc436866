"""The clock that leases are measured with.

A lease must end for its holder before it ends for the node, whose clock may run at another rate. A
machine has two clocks, and each of them has a flaw. ``CLOCK_BOOTTIME`` counts the time in which the
machine is suspended, but a time service may slew it. ``CLOCK_MONOTONIC_RAW`` is never slewed, but it
stands still while the machine is suspended. So the holder counts with the faster of the two, and the
node with the slower.

A moment is a number of nanoseconds on this clock. Moments of different processes must not be compared.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Optional, Tuple

if sys.platform != "linux":
    raise ImportError("doorway needs Linux: no other system has the clock that leases need")

#: A moment that never comes.
NEVER = (1 << 64) - 1
#: One millisecond.
MS = 1_000_000
#: One second.
SECOND = 1_000_000_000


def after(moment: int, span: int) -> int:
    """The moment ``span`` later, or NEVER if that is beyond the end of the clock."""
    return min(moment + span, NEVER)


def since(moment: int, earlier: int) -> int:
    """The time from ``earlier`` to ``moment``; zero if ``earlier`` is in fact later."""
    return max(moment - earlier, 0)


def nanoseconds(seconds: float) -> int:
    """A time in seconds as a number of nanoseconds, at most about ten years."""
    return round(min(max(seconds, 0.0), 315_360_000.0) * SECOND)


class LeaseClock:
    """A clock that counts as much time as the faster of the two clocks of a machine."""

    #: Time is counted from a new reading after this long. Readings are not exact, and each new one
    #: adds its error, so there must not be too many of them.
    STEP = MS

    def __init__(self) -> None:
        self._from: Optional[Tuple[int, int, int]] = None

    def read(self, boot: int, raw: int) -> int:
        """The moment at which the two clocks show this."""
        if self._from is None:
            self._from = (boot, raw, boot)
        then_boot, then_raw, moment = self._from
        passed = max(boot - then_boot, raw - then_raw, 0)
        if passed >= self.STEP:
            self._from = (boot, raw, moment + passed)
        return moment + passed


_clock = LeaseClock()
#: A signal handler may ask for the time while the thread that it interrupts does.
_lock = threading.RLock()


def now() -> int:
    """The current moment."""
    # The clocks are read while the lock is held: moments never go back.
    with _lock:
        return _clock.read(
            time.clock_gettime_ns(time.CLOCK_BOOTTIME),
            time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW),
        )


def _renew_lock() -> None:
    # Another thread of the parent may have held the lock when this process was forked.
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)
