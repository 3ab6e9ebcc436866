"""Locks that the client keeps after it has left them, until somebody else wants them.

The node grants such a lock with a range of fences. The client leaves and enters again without a
message, each time with the next fence of the range, under four conditions:

- The node has not said that somebody else wants the lock.
- The connection on which the lock was granted still exists. When it ends, the client forgets what it
  keeps outside, and the node releases what the client does not claim.
- The node has answered within the first half of the TTL, counted from when the request was sent.
- The range is not used up.

In all other cases the client releases the lock, and asks for it again.

Any thread may enter and leave a kept lock, while the thread that drives the session takes the lock
away. None of them waits for another one, and an exception that a signal raises must not find a lock
half entered. So the history of a kept lock is a list of steps, and the next step is decided once: by
``dict.setdefault``, which the interpreter does in one piece. The thread whose value is stored has made
the step.
"""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional

from ._wire import Mode

#: How many locks are kept while the client is outside. When there are more, the client gives back the
#: one that it has not used for the longest time.
OUTSIDE = 64

#: The highest value of the clock in the lower bits of a fence.
_CLOCK = (1 << 40) - 1

#: The last step of a lock that is not kept any more.
_CLOSED = object()


class Grant(NamedTuple):
    """What is known of a grant, besides its lock."""

    mode: Mode
    permits: Optional[int]
    request: int
    #: The fence by which the node knows the grant.
    base: int
    #: The fence by which the program knows it. It is another one if the lock was kept.
    fence: int
    #: The object by which an entry that was made without the node can be found.
    entry: object = None


class Kept:
    """A lock that the client keeps. The client is inside when it gets one."""

    __slots__ = ("_grant", "_more", "_steps", "turn")

    def __init__(self, grant: Grant, more: int) -> None:
        self._grant = grant
        #: How many fences after the first one belong to the grant.
        self._more = min(more, _CLOCK - (grant.base & _CLOCK))
        #: The steps by number, without a gap, so that the length is the number of the next one. To
        #: enter with the fence ``base + n`` is step ``2 * n``, and to leave with it the one after.
        #: The value is what the entry is found by.
        self._steps: Dict[int, object] = {0: grant.entry}
        #: How many times locks had been left when this one was left.
        self.turn = 0

    @property
    def base(self) -> int:
        """The fence by which the node knows the grant."""
        return self._grant.base

    @property
    def request(self) -> int:
        """The number of the request that was granted."""
        return self._grant.request

    def enter(self, entry: object) -> Optional[int]:
        """Enter the lock, and return the fence; none if the client is inside, or does not keep the
        lock any more. The entry can be found by ``entry``, a new object, as soon as it is made."""
        steps, step = self._steps, len(self._steps)
        if step % 2 or steps[step - 1] is _CLOSED or steps.setdefault(step, entry) is not entry:
            return None
        return self.base + step // 2

    def leave(self, fence: int) -> bool:
        """Leave the lock, and keep it. False if the client is not inside with this fence, does not
        keep the lock any more, or has used up the fences."""
        step, left = 2 * (fence - self.base) + 1, object()
        is_next = step == len(self._steps) and step < 2 * self._more
        return is_next and self._steps.setdefault(step, left) is left

    def close(self) -> Optional[Grant]:
        """Close the lock: nobody enters or leaves any more. Returns the grant if the client is
        inside."""
        while True:
            step = len(self._steps)
            is_closed = self._steps[step - 1] is _CLOSED
            if is_closed or self._steps.setdefault(step, _CLOSED) is _CLOSED:
                return self.inside()

    def inside(self) -> Optional[Grant]:
        """The grant with the current fence, if the client is inside."""
        last = len(self._steps) - 1
        entry = self._steps[last]
        if entry is _CLOSED:
            last -= 1
            entry = self._steps[last]
        if last % 2:
            return None
        return self._grant._replace(fence=self.base + last // 2, entry=entry)

    def holds(self, fence: int) -> bool:
        """Is the client inside with this fence?"""
        last = len(self._steps) - 1
        if self._steps[last] is _CLOSED:
            last -= 1
        return last == 2 * (fence - self.base)
