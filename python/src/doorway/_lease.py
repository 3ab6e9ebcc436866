"""The session that the node has opened, and when it is lost."""

from __future__ import annotations

import enum
from typing import NamedTuple, Optional

from ._clock import MS, NEVER, SECOND, after
from ._wire import NodeIdentity

#: The TTL that asks for none: the session lives as long as the process that has its connection.
UNLIMITED = ((1 << 32) - 1) * MS
#: How long a node has to answer a client that was stopped for a while.
GRACE = SECOND


class State(enum.Enum):
    """Whether a lock is still held, by the client's own clock."""

    #: The lock is held: the node has answered in the first half of the TTL.
    HELD = "held"
    #: The lock is still held, but half of the TTL has passed without an answer. Finish soon.
    UNSURE = "unsure"
    #: The lock is lost: another client may hold it. It stays lost, with one exception: a process
    #: that was stopped asks its node first, and then a session without a TTL may turn out to be
    #: alive.
    LOST = "lost"


class OpenSession(NamedTuple):
    """A session that the node has opened for us.

    The node counts the TTL from when it received our last message. We count from when we sent it,
    which was earlier, and we give up a twentieth of the TTL before its end. So we know that the
    session is lost before the node ends it.

    The value never changes, so that any thread may look at it while another replaces it.
    """

    id: int
    secret: bytes
    #: The node that opened the session, if its welcome has told.
    node: Optional[NodeIdentity]
    #: The place at which that node was.
    place: str
    ttl: int
    #: The TTL that we asked for.
    asked: int
    #: When we sent the last message that the node has answered.
    proven: int
    #: The session is not lost before this moment, because the node has to be asked first.
    grace: int = 0

    @property
    def expires(self) -> bool:
        """Does the session end if the node hears nothing of us?"""
        return self.ttl != UNLIMITED

    @property
    def lives_with_processes(self) -> bool:
        """Does the session live as long as this process, as far as the node keeps its own
        membership? Then the node does not end it while we are silent. But we have to hear of the
        node, because its membership may have ended."""
        return self.asked == UNLIMITED

    def woke(self, now: int) -> "OpenSession":
        """This process was stopped for a while. A session that lives with its process may still be
        alive, so the node is asked before anything counts as lost."""
        return self._replace(grace=after(now, GRACE)) if self.lives_with_processes else self

    def state(self, now: int) -> State:
        """Whether the session is alive at this moment."""
        if now < self.unsure_at():
            return State.HELD
        return State.UNSURE if now < self.lost_at() else State.LOST

    def unsure_at(self) -> int:
        """When the state becomes UNSURE."""
        return after(self.proven, self.ttl // 2) if self.expires else NEVER

    def lost_at(self) -> int:
        """When the state becomes LOST."""
        return max(self._expires_at(), self.grace)

    def _expires_at(self) -> int:
        """When the session counts as lost, if this process was not stopped."""
        return after(self.proven, self.ttl - self.margin) if self.expires else NEVER

    @property
    def margin(self) -> int:
        """How long before the end of the TTL we give up."""
        return self.ttl // 20

    def is_doubtful(self, now: int) -> bool:
        """Has the node yet to say whether the session is alive, because this process was stopped?"""
        return self._expires_at() <= now

    def holder(self) -> str:
        """The name of the abstract Unix socket that this process holds open if the session has no
        TTL. A node that was restarted looks for it."""
        return "doorway-holder-" + self.secret[:8].hex()
