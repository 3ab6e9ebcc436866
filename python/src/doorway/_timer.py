"""A timer that also runs out while the machine is suspended.

It is a descriptor for ``poll``, which becomes readable when the timer has run out. Timeouts of
``poll`` do not count the time in which the machine is suspended, so a lock that was lost in the night
would be noticed late in the morning.
"""

from __future__ import annotations

import ctypes
import os
import time

from ._clock import MS, NEVER, SECOND, now, since

_TFD_NONBLOCK = os.O_NONBLOCK
_TFD_CLOEXEC = os.O_CLOEXEC
_TFD_TIMER_ABSTIME = 1
#: A timer that is this close is not set too early.
_CLOSE = 5 * MS

_libc = ctypes.CDLL(None, use_errno=True)


class _Itimerspec(ctypes.Structure):
    _fields_ = [
        ("interval_sec", ctypes.c_long),
        ("interval_nsec", ctypes.c_long),
        ("value_sec", ctypes.c_long),
        ("value_nsec", ctypes.c_long),
    ]


class Timer:
    """A timer that is set for a moment. It may run out a little too early, because the system knows
    only one of the clocks of which moments are made. Then look at the clock, and set it again."""

    def __init__(self) -> None:
        flags = _TFD_NONBLOCK | _TFD_CLOEXEC
        self._fd: int = _libc.timerfd_create(time.CLOCK_BOOTTIME, flags)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "cannot create a timer")
        self._at = NEVER

    def fileno(self) -> int:
        """The descriptor."""
        return self._fd

    def set(self, at: int) -> None:
        """Let the timer run out at this moment or before. A timer that is set for an earlier moment
        stays as it is: most requests are answered long before they are overdue."""
        if at >= self._at:
            return
        self._at = at
        # CLOCK_BOOTTIME may be slower than the clock of moments by a twelfth.
        left = since(at, now())
        if left > _CLOSE:
            left -= left // 12
        due = time.clock_gettime_ns(time.CLOCK_BOOTTIME) + max(left, 1)
        value = _Itimerspec(0, 0, due // SECOND, due % SECOND)
        _libc.timerfd_settime(self._fd, _TFD_TIMER_ABSTIME, ctypes.byref(value), None)

    def clear(self) -> None:
        """Make a timer that has run out unreadable again. It has to be set again."""
        self._at = NEVER
        try:
            os.read(self._fd, 8)
        except BlockingIOError:
            pass  # It has not run out.

    def close(self) -> None:
        """Close the descriptor."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
