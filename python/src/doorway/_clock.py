"""The clock that leases are measured with.

A lease must end for its holder before it ends for the node, whose clock may run at another rate. A
machine has two clocks, and each of them has a flaw. ``CLOCK_BOOTTIME`` counts the time in which the
machine is suspended, but a time service may slew it. ``CLOCK_MONOTONIC_RAW`` is never slewed, but it
stands still while the machine is suspended. So the holder counts with the faster of the two, and the
node with the slower.

A moment is a number of nanoseconds on this clock. Moments of different processes must not be compared.
"""

from __future__ import annotations

import sys
import time
from typing import Callable, Dict, Tuple

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


class _Reading:
    """What the two clocks showed at a moment from which time is counted."""

    __slots__ = ("boot", "raw", "moment", "next")

    def __init__(self, boot: int, raw: int, moment: int) -> None:
        self.boot = boot
        self.raw = raw
        self.moment = moment
        #: The next reading, under the key 0. Of several threads that add one, only the first does.
        self.next: Dict[int, "_Reading"] = {}


class LeaseClock:
    """A clock that counts as much time as the faster of the two clocks of a machine.

    Any thread may read it, and so may a signal handler while its thread does. There is no mutex: an
    exception that a signal raises could leave it locked for ever.
    """

    #: Time is counted from a new reading after this long. Readings are not exact, and each new one
    #: adds its error, so there must not be too many of them.
    STEP = MS

    def __init__(self) -> None:
        #: One of the last readings. There may be later ones after it.
        self._last = _Reading(0, 0, 0)

    def read(self, clocks: Callable[[], Tuple[int, int]]) -> int:
        """The current moment, by what the two clocks show."""
        last = self._last
        while True:
            while last.next:
                last = last.next[0]
            boot, raw = clocks()
            passed = max(boot - last.boot, raw - last.raw, 0)
            moment = last.moment + passed
            if passed >= self.STEP:
                reading = _Reading(boot, raw, moment)
                if last.next.setdefault(0, reading) is reading:
                    self._last = reading
                    return moment
            elif not last.next:
                # Nobody counts from a later reading yet, so moments never go back.
                return moment


def _clocks() -> Tuple[int, int]:
    return (
        time.clock_gettime_ns(time.CLOCK_BOOTTIME),
        time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW),
    )


_clock = LeaseClock()


def now() -> int:
    """The current moment."""
    return _clock.read(_clocks)
