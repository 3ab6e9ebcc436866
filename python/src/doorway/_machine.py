"""The client's half of a session as a state machine, without a socket and without a clock.

This is the machine of the Rust crate doorway-client, for sessions that end with their connection. It
takes bytes and the time, and gives bytes and events. Its driver does the following, in any order and
as often as it likes:

- While ``wants_connection`` is true, connect, and then call ``connected_to``, or ``cannot_connect``
  if that failed. While ``is_bound()`` is true, connect only to the node of the last connection.
- Write ``outgoing`` to the connection, and remove what was written.
- Pass what is read from the connection to ``receive``.
- When the connection ends, call ``disconnected``. When ``must_close`` is true, write what is
  outgoing, close the connection, and call ``disconnected``.
- When ``next_due()`` has come, call ``tick``.
- After each of these, handle all ``events``.

Requests can be made at any time, also without a connection. Each gets a number, and exactly one event
with this number answers it, even if the connection breaks in between.

Only the driver may call the machine, except for the methods that say that any thread may call them.

Both machines are compared step by step: crates/doorway-client/tests/golden/machine.txt has what the
Rust machine did, and tests/test_machine.py repeats it.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections import deque
from typing import Callable, Deque, Dict, List, NamedTuple, Optional, Tuple, Union

from . import _wire as wire
from ._clock import MS, NEVER, SECOND, after, since
from ._kept import OUTSIDE, Grant, Kept
from ._lease import UNLIMITED, OpenSession, State
from ._wire import Claim, Claims, Code, Mode, Refusal, Scope

#: The TTL over a network, or of a session that keeps locks, if the client asks for none.
OVER_NETWORK = 10 * SECOND
#: If a tick comes this much too late, the process was stopped for a while.
STOPPED = 250 * MS
#: The version of the protocol since which nodes look for the holders of sessions.
HOLDERS = 2
#: The version of the protocol since which nodes let clients keep locks.
KEEPING = 5
#: The maximum lengths of texts that are sent, in bytes.
MAX_TEXT, MAX_TOKEN = 256, 4096
#: The trouble with a node that does not answer our greeting.
SILENT = "it accepts connections but does not answer: is it stopped?"


class Setup(NamedTuple):
    """How a machine opens its session."""

    #: A description of the client, shown to people who ask who holds a lock.
    who: wire.ClientInfo
    #: A token that proves the client's rights, if the connection does not.
    token: Optional[str]
    #: The TTL of the session, in nanoseconds. With UNLIMITED, the session lives as long as this
    #: process; over a network it has a TTL of 10 s all the same.
    ttl: int
    #: How long a request without a timeout waits for a node that cannot be reached, in nanoseconds.
    patience: int
    #: How many nodes the driver may connect to.
    nodes: int = 1
    #: Whether to keep exclusive locks that the program has left until somebody else wants them. Then
    #: the session always has a TTL, 10 s if it asks for none.
    keep: bool = False


class Welcomed(NamedTuple):
    """The node has welcomed the client."""

    node: str
    version: int
    scope: Scope
    session: int
    ttl: int
    resumed: bool


class Granted(NamedTuple):
    """The client holds the lock."""

    number: int
    lock: str
    fence: int


class Refused(NamedTuple):
    """The request was refused, by the node or because no node could be reached."""

    number: int
    refusal: Refusal


class Unknown(NamedTuple):
    """The request was sent and no answer came, so it may have been carried out or not."""

    number: int
    refusal: Refusal


class Released(NamedTuple):
    """The grant is not held any more. ``held`` is false if it was lost before."""

    number: int
    held: bool


class Answer(NamedTuple):
    """The node answered a heartbeat or a question."""

    number: int
    report: Union[None, wire.LockReport, wire.NodeStatus]


class Lost(NamedTuple):
    """A grant was lost: another client may hold the lock."""

    lock: str
    fence: int
    reason: str


class Stopping(NamedTuple):
    """The node is stopping, and takes no more requests."""

    #: How long it is until the node stops, in nanoseconds.
    within: int


class Closed(NamedTuple):
    """The node does not serve this client. All requests were refused with this reason."""

    refusal: Refusal


Event = Union[Welcomed, Granted, Refused, Unknown, Released, Answer, Lost, Stopping, Closed]


class Phase(enum.Enum):
    """The state of the connection to the node."""

    #: There is no connection.
    DISCONNECTED = 0
    #: We have sent our greeting, and wait for the answer.
    GREETING = 1
    #: The node has welcomed us.
    TALKING = 2
    #: The connection cannot be used any more, and must be closed.
    BROKEN = 3
    #: The session is over, and no connection is wanted.
    CLOSED = 4


class Interest(enum.Enum):
    """What becomes of the answer to a request."""

    #: An event reports it.
    REPORTED = 0
    #: It is ignored.
    IGNORED = 1
    #: The request was withdrawn: the answer is ignored, and a grant is released.
    WITHDRAWN = 2


class Pending:
    """A request that has no answer yet."""

    __slots__ = ("request", "number", "since", "until", "own", "sent", "again", "refused", "interest")

    def __init__(self, request: wire.Request, number: int, now: int, sent: bool) -> None:
        self.request = request
        self.number = number
        #: When the request was made.
        self.since = now
        #: When the request for a lock times out.
        self.until = NEVER
        #: The grant of this session that the request releases, if it releases one.
        self.own: Optional[Grant] = None
        #: Whether the request was sent, and whether it was sent more than once.
        self.sent = sent
        self.again = False
        #: How many nodes have refused the request because they do not serve now.
        self.refused = 0
        self.interest = Interest.REPORTED

    @property
    def is_reported(self) -> bool:
        return self.interest is Interest.REPORTED

    @property
    def is_withdrawn(self) -> bool:
        return self.interest is Interest.WITHDRAWN

    @property
    def is_acquire(self) -> bool:
        return isinstance(self.request, wire.Acquire)

    @property
    def is_heartbeat(self) -> bool:
        """Is this a heartbeat that the machine has sent by itself?"""
        return self.interest is Interest.IGNORED and isinstance(self.request, wire.Alive)

    @property
    def is_answered_at_once(self) -> bool:
        """Does a node answer this request at once, whatever other clients do?"""
        return not isinstance(self.request, wire.Acquire) or self.request.ask.wait is wire.Wait.NO

    def asks_for(self, lock: str) -> bool:
        """Does the request ask for this lock?"""
        return isinstance(self.request, wire.Acquire) and self.request.ask.lock == lock

    def releases_own(self, lock: str, fence: int) -> bool:
        """Does the request release this grant, which the session held?"""
        request = self.request
        released = isinstance(request, wire.Release) and request[1:] == (lock, fence)
        return self.own is not None and released

    def no_answer(self, refusal: Refusal) -> Event:
        """The event for a request that the node will not answer any more."""
        if self.sent and isinstance(self.request, wire.Release):
            return Unknown(self.number, refusal)
        return Refused(self.number, refusal)

    def overdue_at(self, unreachable_since: Optional[int], patience: int) -> int:
        """When the machine refuses the request by itself, without the node. While a node talks to
        us, that is some time after the timeout, because the answer may be on its way. Otherwise it
        is at the timeout, or when patience ends if the request has none."""
        if self.is_withdrawn or self.own is not None and not self.is_reported:
            return NEVER
        if unreachable_since is None:
            return after(self.until, patience // 10)
        if self.until != NEVER:
            return self.until
        return after(max(unreachable_since, self.since), patience)


class SessionMachine:
    """The client's half of a session. The module says how to drive it."""

    def __init__(self, setup: Setup, now: int) -> None:
        who = setup.who._replace(
            label=wire.cut(setup.who.label, MAX_TEXT), host=wire.cut(setup.who.host, MAX_TEXT)
        )
        token = None if setup.token is None else wire.cut(setup.token, MAX_TOKEN)
        self.setup = setup._replace(who=who, token=token)
        #: The bytes that are to be written to the connection. The driver removes what it has written.
        self.outgoing = bytearray()
        #: What has happened. The driver removes what it has handled.
        self.events: Deque[Event] = deque()
        #: Whether the connection crosses a network, which may cut it. Then the session outlives it.
        self.network = False
        #: Whether the last connection has shown that the node does not serve us now.
        self.is_turned_away = False
        self.session: Optional[OpenSession] = None
        #: A session that our clock has ended, although the node keeps it as long as our processes
        #: exist. It is resumed without claims, so that the node releases what it held.
        self._given_up: Optional[OpenSession] = None
        #: Grants that have come while we do not know whether the session is alive, by request. They
        #: count when the node has answered.
        self._doubtful: Dict[int, int] = {}
        #: The connection is neither closed nor made before this moment: the node would free at once
        #: what a session held that we have just given up.
        self._rests_until: Optional[int] = None
        self._phase = Phase.DISCONNECTED
        #: When we sent our greeting, and whether it resumes a session.
        self._said, self._resume = now, False
        #: The grants that we hold, besides the locks in ``_kept`` that we are inside of.
        self._grants: Dict[Tuple[int, str], Grant] = {}
        #: The locks that we keep until somebody else wants them, inside and outside.
        self._kept: Dict[str, Kept] = {}
        #: Counts how many times we have left a lock and kept it.
        self._turns = itertools.count(1)
        #: The version of the protocol that the node speaks with us.
        self._version = wire.VERSIONS[0]
        #: The requests that have no answer yet. Numbers grow, so this is in their order.
        self._pending: Dict[int, Pending] = {}
        self._next_number = 1
        #: Since when no node has welcomed us; none while a node talks to us.
        self._unreachable_since: Optional[int] = now
        #: When the node last sent something.
        self._heard = now
        #: When the last heartbeat or greeting was sent.
        self._asked = now
        #: No request is overdue before this moment.
        self._overdue = NEVER
        #: The node has just welcomed a session that needs a holder.
        self._holder_due = False
        #: The place of the node that the last connection leads to.
        self._place = ""
        #: Why no node talks to us, by place.
        self._troubles: Dict[str, str] = {}
        self._frames = wire.Frames()

    # The state of the machine.

    @property
    def wants_connection(self) -> bool:
        """Is a connection wanted? Not after ``bye``."""
        return self._phase is Phase.DISCONNECTED and self._rests_until is None

    @property
    def must_close(self) -> bool:
        """Must the connection be closed, after what is outgoing has been written?"""
        is_broken = self._phase is Phase.BROKEN and self._rests_until is None
        return is_broken or self._phase is Phase.CLOSED

    @property
    def is_talking(self) -> bool:
        """Has the node welcomed us on the current connection?"""
        return self._phase is Phase.TALKING

    def is_bound(self) -> bool:
        """Must the next connection lead to the node of the last one? It must if the session holds
        something, because no other node knows of that."""
        if self.session is None:
            return False
        leaving = any(pending.own is not None for pending in self._pending.values())
        inside = any(kept.inside() is not None for kept in self._kept.values())
        return bool(self._grants) or inside or leaving

    def grant_state(self, lock: str, fence: int, clock: Callable[[], int]) -> State:
        """Whether this grant is still held. Any thread may ask this.

        The session is read before the grants, because a session that is lost takes its grants along,
        and the clock is read last. A lock that is not kept any more is among the grants before it is
        removed from the kept ones.
        """
        session, kept = self.session, self._kept.get(lock)
        inside = kept is not None and kept.holds(fence) or (fence, lock) in self._grants
        if session is None or not inside:
            return State.LOST
        return session.state(clock())

    def deadline(self) -> Optional[int]:
        """When everything that is held is lost, unless the node answers before; none if there is no
        session, or if the session does not expire."""
        session = self.session
        if session is None or session.lost_at() == NEVER:
            return None
        return session.lost_at()

    # The connection.

    def cannot_connect(self, place: str, why: str) -> None:
        """Tell the machine that no connection could be made to the node at this place, and why."""
        self._troubles[place] = why

    def connected_to(self, now: int, place: str, network: bool) -> None:
        """Tell the machine that a connection was made to the node at this place, which may be
        another node than before, and whether it crosses a network.

        A session exists at one node only. If this is another place, the machine gives up its
        session: grants that it still holds are lost, and requests that wait are sent to this node.
        """
        if self._phase is not Phase.DISCONNECTED:
            return
        if self.session is not None and self.session.place != place:
            self._lose_all("the client uses another node now")
        if self._given_up is not None and self._given_up.place != place:
            self._given_up = None
        self._place, self.network = place, network
        self.is_turned_away = False
        self._expire(now)
        self.outgoing[:] = wire.MAGIC
        self._resume = self.session is not None or self._given_up is not None
        self._say_hello()
        self._phase, self._said = Phase.GREETING, now
        if self._may_send():
            self._send_pending(now)

    def disconnected(self, now: int) -> None:
        """Tell the machine that the connection has ended."""
        self._frames = wire.Frames()
        self.outgoing.clear()
        # The node repeats the grants that it still has.
        self._doubtful.clear()
        self._forget_all_kept()
        if self._phase is Phase.CLOSED:
            return
        if self._phase is Phase.GREETING:
            self._turn_away(
                "it closed the connection before it greeted: is this the HTTP port, or the port for "
                "members, instead of the one for sessions?"
                if self.network
                else "it closed the connection before it greeted"
            )
        self._phase = Phase.DISCONNECTED
        if self._unreachable_since is None:
            self._unreachable_since = now
        # When we resume the session, withdrawn requests are not among those that we wait for, and a
        # welcome proves more than the answer to a heartbeat.
        self._drop(lambda pending: pending.is_withdrawn or pending.is_heartbeat)
        self._expire(now)

    def _say_hello(self) -> None:
        """Write the greeting. It claims what the client believes it holds, and names its requests."""
        pages: List[Claims] = []
        opening: Union[wire.New, wire.Resume]
        session = self.session or self._given_up
        if session is not None:
            pages = self._claims()
            first = pages.pop(0) if pages else Claims((), (), False)
            ttl = UNLIMITED if session.lives_with_processes else session.ttl
            opening = wire.Resume(session.node, session.id, session.secret, _millis(ttl), first)
        else:
            ttl = self.setup.ttl
            if (self.network or self.setup.keep) and ttl == UNLIMITED:
                ttl = OVER_NETWORK
            opening = wire.New(_millis(ttl))
        hello = wire.Hello(wire.VERSIONS, self.setup.who, self.setup.token, opening)
        self.outgoing += wire.encode(hello)
        for page in pages:
            self.outgoing += wire.encode(page)

    def _claims(self) -> List[Claims]:
        """What we hold and what we wait for, in pages that fit into a frame."""
        held = [_claim(lock, grant) for (_, lock), grant in sorted(self._grants.items())]
        for pending in self._pending.values():
            # If a release was not sent yet, we claim its grant: otherwise the node would free the
            # lock now, and its answer to the release would mean that the grant was lost before. If a
            # release was sent, the lock may belong to another client by now.
            request = pending.request
            if not pending.sent and pending.own is not None and isinstance(request, wire.Release):
                held.append(_claim(request.lock, pending.own))
        waiting = [number for number, pending in self._pending.items() if pending.is_acquire]
        size = wire.MAX_CLAIMS
        begins = range(0, max(len(held), len(waiting)), size)
        return [
            Claims(
                tuple(held[begin : begin + size]),
                tuple(waiting[begin : begin + size]),
                begin != begins[-1],
            )
            for begin in begins
        ]

    def _turn_away(self, why: str) -> None:
        """The node of this connection does not serve us now, for this reason."""
        self.is_turned_away = True
        self._troubles[self._place] = why

    def _ends_with_connection(self) -> bool:
        """Does the session end when we close the connection?"""
        return not self.network and self.session is not None

    def _break_connection(self, why: str) -> None:
        """The connection cannot be used any more. What ends with the connection is lost from now on,
        because the node gives it to other clients as soon as the connection is closed."""
        if self._phase is Phase.CLOSED:
            return
        if self._ends_with_connection():
            self._lose_all(why)
        self._phase = Phase.BROKEN
        self.outgoing.clear()

    def broken(self, why: str) -> None:
        """Tell the machine that nothing more can be sent or received on the connection."""
        self._break_connection(why)

    def close(self, refusal: Refusal) -> None:
        """Give up the connection because the node does not serve this client, or because it cannot
        be trusted. All requests are refused with this reason, and the connection must be closed."""
        self._break_connection(refusal.text)
        for number in list(self._pending):
            self._refuse(number, refusal)
        self.events.append(Closed(refusal))

    def _lose_all(self, reason: str) -> None:
        """The session is lost, and all its grants with it. Requests that wait are sent again in the
        next session."""
        self.session = self._given_up = None
        self._doubtful.clear()
        self._forget_all_kept()
        grants, self._grants = self._grants, {}
        for fence, lock in sorted(grants):
            self.events.append(Lost(lock, fence, reason))
        refusal = Refusal(Code.GONE, reason)
        for pending in self._pending.values():
            if pending.own is not None and pending.is_reported:
                released = Released(pending.number, False)
                self.events.append(pending.no_answer(refusal) if pending.sent else released)
        self._drop(
            lambda pending: pending.own is not None or pending.is_withdrawn or pending.is_heartbeat
        )
        if self._phase in (Phase.GREETING, Phase.TALKING):
            self._phase = Phase.BROKEN
            self.outgoing.clear()

    # Requests.

    def acquire(self, now: int, ask: wire.Ask) -> int:
        """Ask for a lock. Answered by Granted or Refused. If the lock is kept, it is entered without
        the node."""
        fence, number = self._reenter(now, ask), self._number()
        if fence is not None:
            self.events.append(Granted(number, ask.lock, fence))
            return number
        return self._ask(now, number, wire.Acquire(number, ask))

    def withdraw(self, number: int) -> None:
        """Withdraw a request. No event answers it, and if the lock was granted, it is released."""
        pending = self._pending.get(number)
        if pending is None or pending.is_withdrawn:
            return
        if not pending.is_acquire:
            return self.quiet(number)
        may_send = self._may_send()
        if may_send:
            self.outgoing += wire.encode(wire.Withdraw(number))
        if may_send or self._phase is Phase.GREETING:
            # The grant may be on its way, and then this entry tells which lock to release. If we
            # have just claimed in a greeting to wait for it, the withdrawal follows the welcome.
            pending.interest = Interest.WITHDRAWN
        else:
            del self._pending[number]

    def quiet(self, number: int) -> None:
        """Ignore the answer to a request. No event reports it, but the request is carried out."""
        pending = self._pending.get(number)
        if pending is not None:
            pending.interest = Interest.IGNORED

    def release(self, now: int, lock: str, fence: int) -> int:
        """Release the grant with this fence. Answered by Released."""
        self._expire(now)
        if self.leave_kept(now, lock, fence):
            self.keep_less(now)
            return self._released(True)
        kept = self._kept.get(lock)
        if kept is not None and kept.holds(fence):
            self._forget_kept(lock)
        own = self._grants.pop((fence, lock), None)
        if own is None and self._is_first_of_later_entry(lock, fence):
            return self._released(False)
        return self._release_own(now, lock, fence if own is None else own.base, own)

    def _released(self, held: bool) -> int:
        """Answer the release of a grant without the node."""
        number = self._number()
        self.events.append(Released(number, held))
        return number

    def _release_own(self, now: int, lock: str, fence: int, own: Optional[Grant]) -> int:
        """Release a grant; ``own`` is what this session knows of it, if it belongs to this session."""
        number = self._number()
        self._ask(now, number, wire.Release(number, lock, fence))
        pending = self._pending.get(number)
        if pending is not None:
            pending.own = own
        return number

    def alive(self, now: int) -> int:
        """Send a heartbeat now. The machine sends heartbeats by itself."""
        number = self._number()
        return self._ask(now, number, wire.Alive(number))

    def inspect(self, now: int, lock: str) -> int:
        """Ask for a report about a lock."""
        number = self._number()
        return self._ask(now, number, wire.Inspect(number, lock))

    def status(self, now: int) -> int:
        """Ask for a report about the node."""
        number = self._number()
        return self._ask(now, number, wire.AskStatus(number))

    def take_holder(self) -> Optional[str]:
        """The name of the socket that this process must hold open, once after each welcome to a
        session without a TTL. When the socket is bound, call ``show_holder``."""
        due, self._holder_due = self._holder_due, False
        return self.session.holder() if due and self.session is not None else None

    def show_holder(self, now: int) -> None:
        """Let the node look for the socket that this process holds open."""
        number = self._number()
        self.quiet(self._ask(now, number, wire.Evidence(number)))

    def bye(self) -> None:
        """End the session, and release everything that it holds.

        The node learns of this only if it has welcomed us and what is outgoing is written before the
        connection is closed. Otherwise it finds the connection closed, or waits for the TTL to pass.
        """
        if self._may_send():
            self.outgoing += wire.encode(wire.Bye())
        self._forget_all_kept()
        self._grants = {}
        self._doubtful.clear()
        self._pending.clear()
        self.session = self._given_up = None
        self._phase = Phase.CLOSED
        self._recount()

    def _number(self) -> int:
        number = self._next_number
        self._next_number += 1
        return number

    def _ask(self, now: int, number: int, request: wire.Request) -> int:
        """Make a request, and send it as soon as that is possible."""
        if self._phase is Phase.CLOSED:
            refusal = Refusal(Code.UNAVAILABLE, "the session is over")
            self.events.append(Refused(number, refusal))
            return number
        sent = self._may_send()
        if sent:
            self._write(request)
        pending = Pending(request, number, now, sent)
        if isinstance(request, wire.Acquire) and isinstance(request.ask.wait, int):
            pending.until = after(now, request.ask.wait * MS)
        overdue = pending.overdue_at(self._unreachable_since, self.setup.patience)
        self._overdue = min(self._overdue, overdue)
        self._pending[number] = pending
        return number

    def _may_send(self) -> bool:
        """May requests be sent now? Behind a greeting only if it opens a new session. If the
        greeting resumes a session, the requests follow the welcome."""
        if self._phase is Phase.GREETING:
            return not self._resume
        return self._phase is Phase.TALKING

    def _send_pending(self, now: int) -> None:
        """Send all requests that have no answer. Requests for locks carry the time that they have
        left."""
        for pending in self._pending.values():
            request = pending.request
            if isinstance(request, wire.Acquire) and isinstance(request.ask.wait, int):
                left = since(pending.until, now) // MS
                request = pending.request = wire.Acquire(
                    request.number, request.ask._replace(wait=left)
                )
            if pending.is_withdrawn:
                self.outgoing += wire.encode(wire.Withdraw(pending.number))
                continue
            self._write(request)
            pending.again, pending.sent = pending.sent, True

    def _write(self, request: wire.Request) -> None:
        """Write a request. A request for a lock asks the node to let the client keep it, if the node
        is known to understand that."""
        knows = self._phase is Phase.TALKING and self._version >= KEEPING
        if knows and isinstance(request, wire.Acquire) and self._may_keep(request.ask):
            request = wire.Keep(request.number, request.ask)
        self.outgoing += wire.encode(request)

    def _answered(self, number: int) -> Optional[Pending]:
        """Take the request with this number, which the node has answered."""
        self._prove(number)
        return self._pending.pop(number, None)

    def _prove(self, number: int) -> None:
        """The node has answered this request, so the session was alive when the request was made."""
        pending, session = self._pending.get(number), self.session
        if pending is not None and session is not None and pending.since > session.proven:
            self.session = session._replace(proven=pending.since)

    def _drop(self, unwanted: Callable[[Pending], bool]) -> None:
        """Forget some requests."""
        for number in [number for number, one in self._pending.items() if unwanted(one)]:
            del self._pending[number]
        self._recount()

    def _recount(self) -> None:
        """Compute ``_overdue`` again, after requests were dropped, or after the node was lost or
        found."""
        away, patience = self._unreachable_since, self.setup.patience
        moments = (pending.overdue_at(away, patience) for pending in self._pending.values())
        self._overdue = min(moments, default=NEVER)

    def _refuse_overdue(self, now: int) -> None:
        """Refuse the requests that are overdue."""
        if now < self._overdue:
            return
        away, patience = self._unreachable_since, self.setup.patience
        pending = list(self._pending.values())
        for late in (one for one in pending if one.overdue_at(away, patience) <= now):
            if away is None:
                refusal = Refusal(Code.NOT_FREE, "the lock was not free in time")
            else:
                # It is not known whether the lock was free.
                text = self._no_answer_within(since(now, max(late.since, away)))
                refusal = Refusal(Code.UNAVAILABLE, text)
            self._refuse(late.number, refusal)
        self._recount()

    def _first_at_once(self) -> Optional[Pending]:
        """The first request that should have its answer soon, if an event reports it."""
        pending = self._pending.values()
        soon = (one for one in pending if one.is_reported and one.is_answered_at_once)
        return next(soon, None)

    def _refuse_unanswered(self, now: int) -> None:
        """Refuse the requests that a node answers at once, and that have waited for as long as our
        patience lasts. The node may carry them out later."""
        while True:
            pending = self._first_at_once()
            if pending is None:
                break
            silent = since(now, max(self._heard, pending.since))
            if silent < self.setup.patience:
                break
            text = self._no_answer_within(silent)
            self._refuse(pending.number, Refusal(Code.UNAVAILABLE, text))
        self._recount()

    def _no_answer_within(self, time: int) -> str:
        # Tenths of a second are enough, if there are any.
        tenths = math.floor(time / SECOND * 10 + 0.5)
        seconds = tenths // 10 if tenths % 10 == 0 else tenths / 10
        return f"no node answered within {seconds} s{self._where()}"

    def no_node(self, now: int) -> str:
        """Say in a sentence why no node serves this client."""
        away = self._unreachable_since
        if away is not None and since(now, away) >= SECOND:
            return self._no_answer_within(since(now, away))
        return f"no node answered{self._where()}"

    def _where(self) -> str:
        """Where no node has welcomed us, and why."""
        if self._phase is Phase.GREETING:
            self._turn_away(SILENT)
        places = (
            f" at {place} ({why})" if place else f": {why}"
            for place, why in sorted(self._troubles.items())
        )
        return ",".join(places)

    def _refuse(self, number: int, refusal: Refusal) -> None:
        """Refuse a request without the node. If the node may know of it, it is withdrawn."""
        pending = self._pending.get(number)
        if pending is None:
            return
        if pending.is_reported:
            self.events.append(pending.no_answer(refusal))
        if pending.is_acquire:
            self.withdraw(number)
        elif pending.own is not None:
            # We may just have claimed this grant in a greeting. If the release were dropped, the
            # session would hold it forever.
            self.quiet(number)
        else:
            del self._pending[number]

    # What is due.

    def next_due(self) -> int:
        """When ``tick`` must be called next, at the latest."""
        lost = NEVER if self.session is None else self.session.lost_at()
        rested = NEVER if self._rests_until is None else self._rests_until
        dead, silent = self._dead_at(), self._silent_at()
        return min(self._overdue, lost, dead, silent, self._heartbeat_at(), rested)

    def tick(self, now: int) -> None:
        """Do what is due at this moment: send a heartbeat, refuse requests that have waited for too
        long, and notice that the session or the connection is lost."""
        self._wake(now)
        self._expire(now)
        if self._rests_until is not None and self._rests_until <= now:
            self._rests_until = None
        self._refuse_overdue(now)
        if self._dead_at() <= now:
            return self._give_up_connection()
        if self._silent_at() <= now:
            self._refuse_unanswered(now)
        if self._heartbeat_at() <= now:
            self._asked = now
            self.quiet(self.alive(now))

    def _give_up_connection(self) -> None:
        """The node does not answer on this connection."""
        if self._phase is not Phase.GREETING:
            return self._break_connection("the node does not answer")
        self._turn_away(SILENT)
        if self._resume:
            return self._break_connection("the node does not answer")
        # A node that was stopped reads our greeting and our requests when it goes on. It must also
        # read that nobody wants the session any more.
        self.outgoing += wire.encode(wire.Bye())
        self._phase = Phase.BROKEN

    def _wake(self, now: int) -> None:
        """If something is due since long, this process was stopped for a while."""
        if self.session is not None and since(now, self.next_due()) > STOPPED:
            self.session = self.session.woke(now)

    def _expire(self, now: int) -> None:
        """If the session has expired, everything that it held is lost.

        If the node frees what the session holds as soon as it hears from us, the rest of the TTL
        passes first: the program has this time to stop what needs the locks.
        """
        if self.session is not None and self.session.state(now) is State.LOST:
            self._wake(now)
        session = self.session
        if session is not None and session.state(now) is State.LOST:
            end = after(session.proven, session.ttl)
            if self.is_bound() and session.lives_with_processes:
                self._rests_until = after(now, session.margin)
            elif self.is_bound() and self._ends_with_connection() and end > now:
                self._rests_until = end
            silent = since(now, session.proven) / SECOND
            self._lose_all(f"nothing was heard of the node for {silent:.1f} s")
            # The node does not know our clock. It keeps this session as long as our processes exist.
            self._given_up = session if session.lives_with_processes else None

    def _lease(self) -> Optional[OpenSession]:
        """The session, if it expires."""
        return self.session if self.session is not None and self.session.expires else None

    def _heartbeat_at(self) -> int:
        """When the next heartbeat is due. Without a session that needs heartbeats, one is sent only
        while a request has no answer, to find out whether the node is still there."""
        if self._phase is not Phase.TALKING:
            return NEVER
        lease = self._lease()
        if lease is not None:
            return after(max(lease.proven, self._asked), lease.ttl // 4)
        return after(max(self._unanswered_since(), self._asked), self.setup.patience // 4)

    def _dead_at(self) -> int:
        """When the connection counts as dead, unless the node sends something before. The next
        connection may take another way through the network. This never costs a session: a session
        that ends with its connection is kept until it expires."""
        if self._ends_with_connection():
            return NEVER
        patience, lease = self.setup.patience, self._lease()
        if self._phase is Phase.GREETING:
            # If there are several nodes, another one may answer in time.
            greeting = patience // max(self.setup.nodes, 1)
            return after(self._said, greeting if lease is None else min(greeting, lease.ttl // 4))
        if self._phase is not Phase.TALKING:
            return NEVER
        if lease is not None:
            if self.network and self._asked > lease.proven:
                return max(lease.unsure_at(), after(self._asked, lease.ttl // 4))
        else:
            return self._no_answer_at(self._unanswered_since())
        return NEVER

    def _silent_at(self) -> int:
        """When the node counts as silent, although its connection must not be closed, because the
        session would end with it. Then requests are refused that a node answers at once."""
        kept = self._phase is Phase.TALKING and self._ends_with_connection()
        if not kept or self._lease() is not None:
            return NEVER
        pending = self._first_at_once()
        if pending is None:
            return NEVER
        return self._no_answer_at(max(self._heard, pending.since))

    def _no_answer_at(self, silent_since: int) -> int:
        """When patience with a node ends that has been silent since then. Only if the node was
        asked and has had time to answer: a client that was suspended has heard nothing, and must
        ask before it gives up."""
        patience = self.setup.patience
        if self._asked <= self._heard:
            return NEVER
        return max(after(silent_since, patience), after(self._asked, patience // 4))

    def _unanswered_since(self) -> int:
        """Since when a request has been waiting for a node that is silent."""
        for pending in self._pending.values():
            return max(self._heard, pending.since)
        return NEVER

    # What the node sends.

    def receive(self, now: int, received: bytes) -> None:
        """Handle bytes that were read from the connection."""
        if self._phase is Phase.GREETING:
            foreign = _foreign_protocol(received)
            if foreign is not None:
                return self.not_a_node(foreign)
        self._frames.feed(received)
        self._heard = now
        try:
            while True:
                # An answer that comes after the session has expired proves nothing, and a welcome
                # may come too late as well.
                self._expire(now)
                if self._phase not in (Phase.GREETING, Phase.TALKING):
                    return
                content = self._frames.take()
                if content is None:
                    return
                if self._phase is Phase.GREETING:
                    self._greeting(now, wire.decode_greeting(content))
                else:
                    self._reply(now, wire.decode_reply(content))
                self._settle_doubtful(now)
        except wire.FrameError as wrong:
            if self._phase is Phase.GREETING:
                return self.not_a_node(str(wrong))
            self._break_connection(f"cannot understand the node any more: {wrong}")

    def not_a_node(self, why: str) -> None:
        """The process at the other end answers our greeting, but not as a node does."""
        place = self._place or "that place"
        text = f"the process at {place} is not a compatible node: {why}"
        self.close(Refusal(Code.INVALID, text))

    def _greeting(self, now: int, greeting: Union[wire.Welcome, Refusal]) -> None:
        if isinstance(greeting, wire.Welcome):
            self._welcome(now, greeting)
        elif self._resume:
            self._not_resumed(greeting)
        elif greeting.code in (Code.BUSY, Code.UNAVAILABLE) and self.setup.nodes > 1:
            self._turn_away(greeting.text)
            self._phase = Phase.BROKEN
        else:
            self.close(greeting)

    def _welcome(self, now: int, welcome: wire.Welcome) -> None:
        low, high = wire.VERSIONS
        if not low <= welcome.version <= high or welcome.session is None:
            raise wire.FrameError("the other side sent a frame that cannot be decoded")
        ttl = welcome.ttl_ms * MS
        number, secret = welcome.session
        node = None
        if welcome.directory is not None:
            node = wire.NodeIdentity(welcome.node, welcome.directory)
        known = self.session
        if known is not None:
            proven = max(known.proven, self._said)
            known = known._replace(id=number, secret=secret, node=node, ttl=ttl, proven=proven)
        else:
            # A session over a network, or one that keeps locks, does not live with its processes.
            asked = ttl if self.network or self.setup.keep else self.setup.ttl
            known = OpenSession(number, secret, node, self._place, ttl, asked, self._said)
        self.session, self._given_up = known, None
        waited = not self._may_send()
        self._phase = Phase.TALKING
        self._version = welcome.version
        self._asked = self._said
        self._unreachable_since = None
        self._troubles.clear()
        bound = known.lives_with_processes
        self._holder_due = bound and welcome.version >= HOLDERS and not self.network
        self.events.append(
            Welcomed(welcome.node, welcome.version, welcome.scope, number, ttl, self._resume)
        )
        for claim in welcome.lost:
            reason = "the node does not hold it for this client any more"
            self._lost(now, claim.lock, claim.fence, reason)
        if waited:
            self._send_pending(now)
        self._recount()

    def _not_resumed(self, refusal: Refusal) -> None:
        """The node refused to resume the session, for now or for good."""
        # Our node may still keep what we hold, and may be found at this place again. Our clock says
        # when it is lost.
        elsewhere = refusal.code is Code.ELSEWHERE
        may_return = elsewhere and self.is_bound() and self.deadline() is not None
        if refusal.code in (Code.BUSY, Code.UNAVAILABLE) or may_return:
            self._turn_away(refusal.text)
            self._phase = Phase.BROKEN
        elif elsewhere or refusal.code is Code.GONE:
            self._lose_all(refusal.text)
        else:
            self._lose_all(refusal.text)
            self.close(refusal)

    def _reply(self, now: int, reply: wire.Reply) -> None:
        if isinstance(reply, wire.Granted):
            self._told_grant(now, reply.number, reply.fence, 0)
        elif isinstance(reply, wire.Kept):
            self._told_grant(now, *reply)
        elif isinstance(reply, wire.Wanted):
            self._wanted(now, reply.lock, reply.fence)
        elif isinstance(reply, wire.Refused):
            if self._moves_on(reply.number, reply.refusal):
                self._turn_away(reply.refusal.text)
                self._break_connection(reply.refusal.text)
                return
            pending = self._answered(reply.number)
            if pending is not None and pending.is_reported:
                self.events.append(Refused(reply.number, reply.refusal))
        elif isinstance(reply, wire.Released):
            pending = self._answered(reply.number)
            if pending is not None and pending.is_reported:
                # If the request was sent twice, the first one may have released the lock, and only
                # its answer is missing.
                held = reply.held or pending.own is not None and pending.again
                self.events.append(Released(reply.number, held))
        elif isinstance(reply, wire.Lost):
            self._lost(now, reply.lock, reply.fence, reply.reason)
        elif isinstance(reply, wire.Stopping):
            self._give_back_all(now)
            self.events.append(Stopping(reply.ms * MS))
        else:
            pending = self._answered(reply.number)
            if pending is not None and pending.is_reported:
                report = reply.report if isinstance(reply, (wire.Lock, wire.Status)) else None
                self.events.append(Answer(reply.number, report))

    def _moves_on(self, number: int, refusal: Refusal) -> bool:
        """Is this refusal a reason to ask another node? Only if the node does not serve now, if the
        session holds nothing, and if not every node has refused the request."""
        if refusal.code is not Code.UNAVAILABLE or self.is_bound():
            return False
        pending = self._pending.get(number)
        if pending is None:
            return False
        pending.refused += 1
        return pending.is_acquire and pending.is_reported and pending.refused < self.setup.nodes

    def _is_doubtful(self, now: int) -> bool:
        """Does the session only count as alive because the node has yet to be asked? Then a grant may
        have waited in the socket while this process was stopped, and may be lost by now."""
        return self.session is not None and self.session.is_doubtful(now)

    def _settle_doubtful(self, now: int) -> None:
        """Handle the grants that have waited until the session is known to be alive."""
        while self._doubtful and not self._is_doubtful(now):
            number = min(self._doubtful)
            self._granted(now, number, self._doubtful.pop(number), 0)

    def _told_grant(self, now: int, number: int, fence: int, more: int) -> None:
        """The node says that a lock was granted. If it may be kept, ``more`` numbers after the fence
        belong to it."""
        self._prove(number)
        if self._is_doubtful(now):
            self._doubtful[number] = fence
        else:
            self._granted(now, number, fence, more)

    def _granted(self, now: int, number: int, fence: int, more: int) -> None:
        """A lock was granted. If it may be kept, ``more`` numbers after the fence belong to it. If
        the request was withdrawn, the lock is released at once."""
        pending = self._answered(number)
        if pending is None:
            # If we hold the grant, the node has only repeated itself. Otherwise the node refused the
            # request at the moment when we sent it again, and took the second one for a new request.
            held = [grant.request for grant in self._grants.values()]
            held += [kept.request for kept in self._kept.values()]
            if number not in held:
                self.outgoing += wire.encode(wire.Withdraw(number))
            return
        request = pending.request
        if not isinstance(request, wire.Acquire):
            return
        lock, mode, permits, _ = request.ask
        grant = Grant(mode, permits, number, fence, fence)
        if pending.is_withdrawn:
            return self.quiet(self._release_own(now, lock, fence, grant))
        if more > 0:
            self._forget_kept(lock)
            self._kept[lock] = Kept(grant, more)
        else:
            self._grants[fence, lock] = grant
        self.events.append(Granted(number, lock, fence))

    def _lost(self, now: int, lock: str, fence: int, reason: str) -> None:
        """The node says that a grant was lost."""
        for number, granted in self._doubtful.items():
            pending = self._pending.get(number)
            if granted == fence and pending is not None and pending.asks_for(lock):
                # The request has its answer, and the loss follows.
                del self._doubtful[number]
                self._granted(now, number, fence, 0)
                break
        if self._keeps_grant(lock, fence):
            self._forget_kept(lock)
        # A grant that is being released was held until now, and the answer to the release will only
        # say that it is gone.
        releases = (one for one in self._pending.values() if one.releases_own(lock, fence))
        leaving = next((one.own for one in releases), None)
        entry = self._entry_of(lock, fence)
        held = self._grants.pop((fence if entry is None else entry.fence, lock), None)
        lost = held or leaving
        if lost is not None:
            self.events.append(Lost(lock, lost.fence, reason))

    # Locks that are kept.

    def reenter(self, ask: wire.Ask, entry: object) -> Optional[int]:
        """Enter a lock that is kept, without the node. Returns the fence. Any thread may call this.

        The clock has to be read afterwards, because the thread may have been stopped before. If it is
        too late, or an exception comes, the entry can be found by the same new object, and released.
        """
        kept = self._kept.get(ask.lock)
        return kept.enter(entry) if kept is not None and self._may_keep(ask) else None

    def find_entry(self, entry: object) -> Optional[Tuple[str, int]]:
        """The lock and the fence that were entered by ``reenter`` with this object, if they are still
        held."""
        for lock, kept in self._kept.items():
            inside = kept.inside()
            if inside is not None and inside.entry is entry:
                return lock, inside.fence
        for (fence, lock), grant in self._grants.items():
            if grant.entry is entry:
                return lock, fence
        return None

    def forked(self) -> None:
        """Keep nothing in a process that was forked from the one that keeps the locks."""
        self._kept = {}

    def leave_kept(self, now: int, lock: str, fence: int) -> bool:
        """Leave a lock and keep it, if that is possible without the node. Any thread may call this.
        Call ``keep_less`` afterwards."""
        kept = self._kept.get(lock)
        if kept is None or not kept.holds(fence) or not self._may_reenter(now):
            return False
        kept.turn = next(self._turns)
        return kept.leave(fence)

    @property
    def keeps_many(self) -> bool:
        """May ``keep_less`` have something to do? Any thread may ask this."""
        return len(self._kept) > OUTSIDE

    def keep_less(self, now: int) -> None:
        """If too many locks are kept outside, give back those that were not used for the longest
        time."""
        if self.keeps_many:
            outside = [
                (kept.turn, lock) for lock, kept in self._kept.items() if kept.inside() is None
            ]
            for _, lock in sorted(outside)[: max(len(outside) - OUTSIDE, 0)]:
                self._give_back(now, lock)

    def _reenter(self, now: int, ask: wire.Ask) -> Optional[int]:
        """Enter a lock that is kept, if that is possible without the node. Returns the fence. If the
        lock is kept and cannot be entered, it is given back."""
        kept = self._kept.get(ask.lock)
        if kept is None or kept.inside() is not None or not self._may_keep(ask):
            return None
        if not self._may_reenter(now):
            self._give_back(now, ask.lock)
            return None
        return kept.enter(object())

    def _may_keep(self, ask: wire.Ask) -> bool:
        """Is this a request for a lock that the client wants to keep?"""
        return self.setup.keep and ask.mode is Mode.EXCLUSIVE and ask.permits is None

    def _may_reenter(self, now: int) -> bool:
        """May a lock that is kept be entered or left at this moment without the node?"""
        session = self.session
        is_held = session is not None and session.state(now) is State.HELD
        return is_held and self._phase is Phase.TALKING

    def _wanted(self, now: int, lock: str, base: int) -> None:
        """Somebody else wants a lock."""
        if self._keeps_grant(lock, base):
            self._give_back(now, lock)
        if self._entry_of(lock, base) is not None:
            self.outgoing += wire.encode(wire.InUse(lock, base))

    def _is_first_of_later_entry(self, lock: str, fence: int) -> bool:
        """Does the node know a later entry by this fence, which was released before? To release it
        once more must not release that entry."""
        return self._keeps_grant(lock, fence) or self._entry_of(lock, fence) is not None

    def _keeps_grant(self, lock: str, base: int) -> bool:
        kept = self._kept.get(lock)
        return kept is not None and kept.base == base

    def _entry_of(self, lock: str, base: int) -> Optional[Grant]:
        """The grant that the node knows by this fence, if it is held and not kept."""
        if not self.setup.keep:
            return self._grants.get((base, lock))
        entries = (one for (_, held), one in self._grants.items() if held == lock)
        return next((one for one in entries if one.base == base), None)

    def _give_back_all(self, now: int) -> None:
        """Keep nothing any more: give back what is kept outside."""
        for lock in sorted(self._kept):
            self._give_back(now, lock)

    def _give_back(self, now: int, lock: str) -> None:
        """Do not keep a lock any more. If the client is outside, the lock is released."""
        base = self._forget_kept(lock)
        if base is not None:
            # The program has left this lock before, so nobody waits for the answer.
            self.quiet(self._release_own(now, lock, base, None))

    def _forget_kept(self, lock: str) -> Optional[int]:
        """Do not keep a lock any more, without telling the node. If the client is inside, the lock is
        a grant like any other from now on. If it is outside, the fence is returned by which the node
        knows the lock."""
        kept = self._kept.get(lock)
        if kept is None:
            return None
        grant = kept.close()
        if grant is not None:
            self._grants[grant.fence, lock] = grant
        del self._kept[lock]
        return kept.base if grant is None else None

    def _forget_all_kept(self) -> None:
        """Keep nothing any more, because the node releases what the client does not claim."""
        for lock in list(self._kept):
            self._forget_kept(lock)


def _claim(lock: str, grant: Grant) -> Claim:
    return Claim(lock, grant.mode, grant.permits, grant.base, grant.request)


def _millis(span: int) -> int:
    """Whole milliseconds, as the protocol counts them."""
    return min(span // MS, (1 << 32) - 1)


def _foreign_protocol(received: bytes) -> Optional[str]:
    """What a process that begins its answer with these bytes seems to be, if it is not a node."""
    if received.startswith(b"HTTP/"):
        return "this looks like the HTTP port; sessions have a port of their own"
    # An alert, as a server sends it that expected TLS.
    if received[:2] == b"\x15\x03" and received[2:3] in b"\1\2\3" and received[3:5] == b"\0\2":
        return "TLS is expected there"
    return None
