"""A lock that is held, as far as the blocking and the asyncio client share it."""

from __future__ import annotations

import os
from typing import Optional

from ._lease import State
from ._session import Session
from .errors import Forked


class HeldLock:
    """A lock that a client holds, until it is released or lost."""

    #: Is it still up to us to release the lock? Not before the grant is complete.
    _ours = False

    def __init__(self, session: Session, lock: str, fence: int) -> None:
        self._session = session
        #: The name of the lock.
        self.lock = lock
        #: The fence of this grant: a number. A later exclusive grant of the lock has a higher one.
        #: Send it along with every write to the resource that the lock protects. A resource that
        #: refuses lower fences is safe from a holder that was paused and has lost the lock.
        self.fence = fence

    @property
    def state(self) -> State:
        """Whether the lock is still held, by this process's own clock."""
        if not self._is_here:
            return State.LOST
        return self._session.state_of(self.lock, self.fence)

    @property
    def is_lost(self) -> bool:
        """Is the lock lost? Then another client may hold it already."""
        return self.state is State.LOST

    def remaining(self) -> Optional[float]:
        """For how long the lock is still held if the node does not answer again, in seconds. None if
        the session does not expire."""
        if not self._is_here:
            return 0.0
        return self._session.remaining(self.lock, self.fence)

    def check(self) -> None:
        """Raise :class:`doorway.Lost` if the lock is lost, and :class:`doorway.Forked` in a process
        that was forked from the one that holds it. This sends nothing."""
        if not self._is_here:
            raise Forked
        if self.is_lost:
            raise self._session.loss(self.lock, self.fence)

    @property
    def _is_here(self) -> bool:
        """Is this the process that holds the lock?"""
        return self._session.process == os.getpid()

    def __repr__(self) -> str:
        kind = type(self).__module__.partition("._")[0] + "." + type(self).__name__
        return f"<{kind} of {self.lock!r}, fence {self.fence}, {self.state.value}>"
