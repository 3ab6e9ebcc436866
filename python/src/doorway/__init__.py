"""Named locks with fences, through a node of Doorway.

::

    import doorway

    with doorway.lock("deploy", wait=30) as grant:
        print("inside, with fence", grant.fence)

:mod:`doorway.aio` has the same for asyncio.
"""

from ._blocking import Client, Grant, Lock, Locks, lock, lock_all, try_lock
from ._lease import State
from ._wire import Absent, Holder, LockReport, NodeStatus, Scope, Waiter
from .errors import (
    Code,
    DoorwayError,
    EndpointError,
    Forked,
    Lost,
    NotFree,
    RefusedError,
    ReleaseUnknown,
    Unavailable,
)

__all__ = [
    "Absent",
    "Client",
    "Code",
    "DoorwayError",
    "EndpointError",
    "Forked",
    "Grant",
    "Holder",
    "Lock",
    "LockReport",
    "Locks",
    "Lost",
    "NodeStatus",
    "NotFree",
    "RefusedError",
    "ReleaseUnknown",
    "Scope",
    "State",
    "Unavailable",
    "Waiter",
    "lock",
    "lock_all",
    "try_lock",
]
