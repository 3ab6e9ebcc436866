"""The errors of this package. All of them are a :class:`DoorwayError`."""

from __future__ import annotations

from ._wire import Code, Refusal

__all__ = [
    "Code",
    "DoorwayError",
    "EndpointError",
    "Forked",
    "Lost",
    "NotFree",
    "RefusedError",
    "ReleaseUnknown",
    "Unavailable",
]


class DoorwayError(Exception):
    """The base of all errors of this package."""


class EndpointError(DoorwayError, ValueError):
    """A text is not an endpoint, or the options do not fit to it."""


class RefusedError(DoorwayError):
    """The node refused the request, which has changed nothing. ``code`` tells why."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.text)
        #: The kind of reason.
        self.code: Code = refusal.code


class NotFree(RefusedError, TimeoutError):
    """The lock was not free, or did not become free in time."""


class Unavailable(RefusedError, ConnectionError):
    """No node could be reached in time, or the node does not grant locks now. It is not known
    whether the lock is free."""


class Forked(DoorwayError, RuntimeError):
    """The session belongs to the process from which this one was forked."""

    def __init__(self) -> None:
        super().__init__(
            "this session belongs to the process from which this one was forked; "
            "open a new doorway.Client in this process"
        )


class Lost(DoorwayError):
    """A lock was lost: other clients may have held it since."""

    def __init__(self, lock: str, fence: int, reason: str) -> None:
        super().__init__(f"lost the lock {lock} with fence {fence}: {reason}")
        #: The name of the lock.
        self.lock = lock
        #: The fence of the grant that was lost.
        self.fence = fence
        #: Why the grant was lost.
        self.reason = reason


class ReleaseUnknown(DoorwayError):
    """No answer to a release came. The lock may have been released; if not, it is released when the
    session ends."""

    def __init__(self, lock: str, fence: int, why: str) -> None:
        super().__init__(
            f"cannot tell whether the lock {lock} with fence {fence} was released: {why}"
        )
        #: The name of the lock.
        self.lock = lock
        #: The fence of the grant.
        self.fence = fence


def refused(refusal: Refusal) -> RefusedError:
    """The exception for a refusal."""
    if refusal.code is Code.NOT_FREE:
        return NotFree(refusal)
    if refusal.code is Code.UNAVAILABLE:
        return Unavailable(refusal)
    return RefusedError(refusal)
