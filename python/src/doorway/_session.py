"""What the blocking and the asyncio client share: a session, its connection, and the callers that
wait for answers.

No method waits. A *driver*, which is a thread or an event loop, calls :meth:`Session.settle` after
everything that happens, and :meth:`Session.receive` when the socket has something to read.
"""

from __future__ import annotations

import inspect
import operator
import os
import socket
import ssl
import sys
import threading
import time
import weakref
from typing import (
    Callable,
    Dict,
    Iterable,
    List,
    NamedTuple,
    Optional,
    Protocol,
    Tuple,
    TypeVar,
    Union,
)

from . import _machine as machine
from . import _wire as wire
from ._clock import MS, NEVER, SECOND, nanoseconds, now
from ._dial import Starter, connect
from ._endpoint import Endpoint, Route, resolve
from ._lease import UNLIMITED, State
from ._machine import SessionMachine, Setup
from ._tls import Encryption, TlsConfig
from .errors import Lost, ReleaseUnknown, RefusedError, refused

#: For how many lost grants the reason is kept.
_LOSSES = 1024

#: Why a request of a client that was closed is refused.
CLOSED = "the client was closed"

#: The answer to a request, and what is told when a session is opened.
Outcome = machine.Event
#: Takes the answer to a request.
Deliver = Callable[[Outcome], None]
#: Makes a request at this moment, and returns its number.
Make = Callable[[SessionMachine, int], int]
#: What to call when a grant is lost.
OnLost = Callable[[Lost], object]

T = TypeVar("T")
Who = TypeVar("Who")


class Options(NamedTuple):
    """How a client finds its node and opens its session."""

    endpoints: List[Endpoint]
    tls: Optional[TlsConfig]
    setup: Setup
    #: Whether to start the node of this user if it does not run.
    start: bool


def options(
    endpoint: Optional[str],
    ttl: Optional[float],
    label: Optional[str],
    token: Optional[str],
    patience: float,
    ca: Optional[str],
    certificate: Optional[str],
    key: Optional[str],
    server_name: Optional[str],
    start: bool,
    keep: bool,
) -> Options:
    """Check the options of a client."""
    endpoints = resolve(endpoint)
    network = any(one.is_network for one in endpoints)
    tls = TlsConfig(ca, certificate, key, server_name) if network else None
    if ttl is not None and not ttl >= 0.5:
        raise ValueError(f"the shortest TTL is 0.5 seconds, not {ttl}")
    if not patience > 0:
        raise ValueError(f"patience= is a number of seconds above 0, not {patience}")
    label = " ".join(getattr(sys, "argv", [])) if label is None else label
    who = wire.ClientInfo(label, socket.gethostname(), os.getpid())
    span = UNLIMITED if ttl is None else nanoseconds(ttl)
    setup = Setup(who, token, span, nanoseconds(patience), len(endpoints), keep)
    return Options(endpoints, tls, setup, start)


def ask(name: str, wait: Optional[float], shared: bool, permits: Optional[int]) -> wire.Ask:
    """Check the options of a request for a lock."""
    wire.check_name(name)
    if permits is not None and not 1 <= operator.index(permits) < 1 << 32:
        raise ValueError(f"permits= is a number from 1 to 4294967295, not {permits}")
    mode = wire.Mode.SHARED if shared else wire.Mode.EXCLUSIVE
    if wait is None:
        return wire.Ask(name, mode, permits, wire.Wait.FOREVER)
    if not wait >= 0:
        raise ValueError(f"wait= is a number of seconds from 0, not {wait}")
    if wait == 0:
        return wire.Ask(name, mode, permits, wire.Wait.NO)
    return wire.Ask(name, mode, permits, max(nanoseconds(wait) // MS, 1))


def asks(names: Iterable[str], wait: Optional[float]) -> List[wire.Ask]:
    """Check the options of a request for several locks. All clients take their locks in the order of
    their names, so they cannot deadlock."""
    if isinstance(names, str):
        raise TypeError(f"give a list of names, such as [{names!r}]")
    return [ask(name, wait, False, None) for name in sorted(set(names))]


def check_on_lost(on_lost: Optional[OnLost]) -> None:
    """A coroutine function would never run, because nobody awaits it."""
    if inspect.iscoroutinefunction(on_lost):
        raise TypeError("on_lost is a coroutine function; give a function, or use doorway.aio")


def take_entry(entered: Dict[Who, List[T]], who: Who, kind: str) -> T:
    """Take what this thread or task has entered last. If somebody else entered, and only once, it
    may be left here as well."""
    own = entered.get(who)
    if own is None:
        if [len(entries) for entries in entered.values()] != [1]:
            raise RuntimeError(f"this {kind} has not entered the lock, so it cannot leave it")
        who, own = next(iter(entered.items()))
    entry = own.pop()
    if not own:
        del entered[who]
    return entry


def with_time_left(one: wire.Ask, wait: Optional[float], begin: float) -> wire.Ask:
    """One of several requests that have this time together, which began at this ``monotonic()``."""
    if not wait:
        return one
    left = max(begin + wait - time.monotonic(), 0.001)
    return ask(one.lock, left, False, None)


class Driver(Protocol):
    """The thread or the event loop that drives a session."""

    def post(self, do: Callable[[], None]) -> None:
        """Do something where the session is driven. Any thread may call this."""

    def attach(self, sock: socket.socket) -> None:
        """Watch this connection."""

    def detach(self, sock: socket.socket) -> None:
        """Stop watching this connection, which is about to be closed."""

    def notify(self, tell: Callable[[], object]) -> None:
        """Call a function of the program, which may block and may raise."""

    def forked(self) -> None:
        """Close all descriptors in a process that was forked from this one."""


class Call:
    """A request that a caller waits for."""

    __slots__ = ("number", "outcome", "_wake")

    def __init__(self, wake: Callable[[], object]) -> None:
        #: The number of the request, once it was made. No request has the number -1.
        self.number = -1
        #: The answer, once it has come.
        self.outcome: Optional[Outcome] = None
        self._wake = wake

    def deliver(self, outcome: Outcome) -> None:
        """Take the answer, and wake the caller."""
        self.outcome = outcome
        self._wake()

    def answer(self) -> Outcome:
        """The answer, for a caller that was woken."""
        assert self.outcome is not None, "the answer is there before the caller is woken"
        return self.outcome


class Session:
    """A session, its connection, and the callers that wait for answers."""

    #: The number under which callers wait for the session to be opened.
    OPENED = 0

    def __init__(self, options: Options, driver: Driver) -> None:
        self.machine = SessionMachine(options.setup, now())
        #: Whether the session is over for good.
        self.ended = False
        self._driver = driver
        self._options = options
        self._route = Route(options.endpoints)
        self._starter = Starter()
        self._sock: Optional[socket.socket] = None
        self._encryption: Optional[Encryption] = None
        #: What is to be sent, encrypted.
        self._encrypted = bytearray()
        self._holder: Optional[Tuple[str, socket.socket]] = None
        self._dialing = False
        self._opened = False
        self._waiting: Dict[int, Deliver] = {}
        #: What to call when a request of this number is granted and then lost.
        self._requested: Dict[int, OnLost] = {}
        self._on_lost: Dict[Tuple[str, int], OnLost] = {}
        self._losses: Dict[Tuple[str, int], str] = {}
        #: Whether the session keeps locks until somebody else wants them.
        self.keeps = options.setup.keep
        #: The process that opened the session. A forked child must neither use nor end it.
        self.process = os.getpid()
        _sessions.add(self)

    # What callers want. Only the driver calls these.

    def open(self, deliver: Deliver) -> None:
        """Connect, and deliver Welcomed, or Refused if no node serves this client."""
        self._waiting[self.OPENED] = deliver
        self.settle()

    def call(self, make: Make, call: "Call", on_lost: Optional[OnLost] = None) -> None:
        """Make a request."""
        if self.ended:
            call.deliver(machine.Refused(0, wire.Refusal(wire.Code.UNAVAILABLE, CLOSED)))
            return
        try:
            call.number = number = make(self.machine, now())
        except Exception as wrong:
            # The caller learns of it, and the session goes on for all others.
            text = f"the request cannot be sent: {wrong!r}"
            call.deliver(machine.Refused(0, wire.Refusal(wire.Code.INVALID, text)))
            return
        self._waiting[number] = call.deliver
        if on_lost is not None:
            self._requested[number] = on_lost
        self._flush()
        self._dispatch()

    def give_up(self, call: "Call") -> None:
        """Stop waiting for an answer. A request for a lock is withdrawn; if it was granted, the lock
        is released."""
        if self.ended:
            return
        self._dispatch()  # The answer may have been received already.
        self._requested.pop(call.number, None)
        if self._waiting.pop(call.number, None) is not None:
            self.machine.withdraw(call.number)
            self.settle()
        elif isinstance(call.outcome, machine.Granted):
            self.tell(self.release(call.outcome.lock, call.outcome.fence))

    def tell(self, make: Make) -> None:
        """Make a request whose answer nobody needs."""
        if self.ended:
            return
        self.machine.quiet(make(self.machine, now()))
        self.settle()

    def take_back(self, entry: object) -> None:
        """Leave the lock that was entered by ``reenter`` with this object, if one was."""
        entered = self.machine.find_entry(entry)
        if entered is not None:
            self.tell(self.release(*entered))

    def _keep_less(self) -> None:
        """Give back what is too much to keep."""
        if not self.ended:
            self.machine.keep_less(now())
            self.settle()

    def leave(self) -> None:
        """End the session."""
        if not self.ended:
            self.ended = True
            self.machine.bye()
            self._flush()
            self._disconnect()
            self._dispatch()
            closed = wire.Refusal(wire.Code.UNAVAILABLE, CLOSED)
            for number in list(self._waiting):
                self._deliver(number, machine.Refused(number, closed))
            if self._holder is not None:
                self._holder[1].close()
            # A forked process has nothing of it to close.
            _sessions.discard(self)

    # What any thread may ask.

    def state_of(self, lock: str, fence: int) -> State:
        """Whether this grant is still held."""
        return self.machine.grant_state(lock, fence, now)

    def remaining(self, lock: str, fence: int) -> Optional[float]:
        """For how long this grant is still held if the node does not answer again, in seconds."""
        session = self.machine.session
        if session is None or self.state_of(lock, fence) is State.LOST:
            return 0.0
        end = session.lost_at()
        return None if end == NEVER else max(end - now(), 0) / SECOND

    def loss(self, lock: str, fence: int) -> Lost:
        """Why this grant was lost."""
        unknown = "the node did not hold it for this client any more"
        session = self.machine.session
        if session is not None and session.state(now()) is State.LOST:
            unknown = "nothing was heard of the node for too long"
        return Lost(lock, fence, self._losses.get((lock, fence), unknown))

    # What any thread may do.

    def reenter(self, ask: wire.Ask, entry: object, on_lost: Optional[OnLost]) -> Optional[int]:
        """Enter a lock that the session keeps, if that is possible without the node. Returns the
        fence. A forked child never enters.

        If an exception comes, such as KeyboardInterrupt, the lock may have been entered. Then let the
        driver call ``take_back`` with the same new object.
        """
        if not self.keeps or self.process != os.getpid():
            return None
        fence = self.machine.reenter(ask, entry)
        if fence is None:
            return None
        if on_lost is not None:
            self._on_lost[ask.lock, fence] = on_lost
        # This thread may have been stopped for long, and the lock may be lost by now.
        if self.state_of(ask.lock, fence) is State.HELD and self.machine.is_talking:
            return fence
        self._on_lost.pop((ask.lock, fence), None)
        if self.process == os.getpid():
            self._driver.post(lambda: self.take_back(entry))
        return None

    def leave_kept(self, lock: str, fence: int) -> bool:
        """Leave a lock and let the session keep it, if that is possible without the node."""
        if not self.keeps or self.process != os.getpid():
            return False
        if not self.machine.leave_kept(now(), lock, fence):
            return False
        self._on_lost.pop((lock, fence), None)
        if self.machine.keeps_many:
            self._driver.post(self._keep_less)
        return True

    # What the driver does.

    def due(self) -> int:
        """When to call ``settle`` again at the latest."""
        due = self.machine.next_due()
        if self._sock is None and not self._dialing and self.machine.wants_connection:
            due = min(due, self._route.due)
        return NEVER if self.ended else due

    @property
    def is_blocked(self) -> bool:
        """Is something left that could not be sent?"""
        return self._sock is not None and bool(self._encrypted or self.machine.outgoing)

    def settle(self) -> None:
        """Do everything that is due, and hand out what has happened."""
        if self.ended:
            return
        moment = now()
        if self.machine.next_due() <= moment:
            self.machine.tick(moment)
        self._flush()
        self._dispatch()
        if self.machine.is_talking:
            self._route.serves(moment)
        if self._sock is not None and self.machine.must_close:
            self._flush()
            self._disconnect()
            self._dispatch()
        if self.machine.wants_connection and not self._dialing and moment >= self._route.due:
            self._dial()

    def receive(self) -> None:
        """Read what has arrived on the connection."""
        if self._sock is None:
            return
        try:
            received = self._sock.recv(65536)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            received = b""
        if not received:
            self._disconnect()
        elif self._encryption is None:
            self.machine.receive(now(), received)
            name = self.machine.take_holder()
            if name is not None:
                self._hold(name)
        else:
            self._decrypt(self._encryption, received)

    def _decrypt(self, encryption: Encryption, received: bytes) -> None:
        if encryption.is_handshaking and received.startswith(b"HTTP/"):
            return self.machine.not_a_node("it answers with HTTP, and TLS is expected")
        try:
            plain, ended = encryption.decrypt(received)
        except ssl.SSLError as error:
            return self._distrust(error)
        if plain:
            self.machine.receive(now(), plain)
        if ended:
            self.machine.broken("the node has ended the connection")

    def _distrust(self, error: Exception) -> None:
        """TLS has failed."""
        if self.machine.is_talking:
            return self.machine.broken(str(error))
        text = f"cannot talk to the node over TLS: {error}"
        self.machine.close(wire.Refusal(wire.Code.FORBIDDEN, text))

    def _hold(self, name: str) -> None:
        """Hold the socket that shows the node, also after it was restarted, that this process
        exists."""
        if self._holder is None or self._holder[0] != name:
            if self._holder is not None:
                self._holder[1].close()
                self._holder = None
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                sock.bind("\0" + name)
                sock.listen(1)
            except OSError:
                return sock.close()  # The node can still look for this process.
            self._holder = (name, sock)
        self.machine.show_holder(now())

    def _flush(self) -> None:
        """Send as much as the connection takes now."""
        sock = self._sock
        if sock is None:
            return
        out = self.machine.outgoing
        if self._encryption is not None:
            try:
                self._encrypted += self._encryption.encrypt(out)
            except ssl.SSLError as error:
                return self._distrust(error)
            out = self._encrypted
        while out:
            try:
                del out[: sock.send(out, socket.MSG_NOSIGNAL)]
            except (BlockingIOError, InterruptedError):
                return
            except (BrokenPipeError, ConnectionResetError):
                # The node has closed the connection. What it sent before is still to be read.
                out.clear()
            except OSError as error:
                # Part of a frame may be missing, so the connection cannot be used any more.
                out.clear()
                self.machine.broken(f"cannot send to the node: {error}")

    # The connection.

    def _dial(self) -> None:
        """Connect. That may take long, so a thread does it."""
        self._dialing = True
        endpoint = self._route.endpoint
        patience = self._options.setup.patience / SECOND
        limit = patience / len(self._options.endpoints)
        if self._opened:
            # Several attempts fit into the time in which the session can still be resumed.
            limit = min(max(self._options.setup.ttl / SECOND / 8, 0.5), patience)
        try:
            work = threading.Thread(
                target=self._connect, args=(endpoint, limit), name="doorway-dial", daemon=True
            )
            work.start()
        except RuntimeError as error:
            self._cannot_connect(endpoint, error)

    def _connect(self, endpoint: Endpoint, limit: float) -> None:
        """Connect to this endpoint, in a thread of its own."""
        try:
            if self._options.start and endpoint.is_own:
                sock = self._starter.dial(endpoint, limit)
            else:
                sock = connect(endpoint, limit)
            sock.setblocking(False)
        except Exception as error:  # A host may also be wrong in other ways than an OSError.
            why = error
            self._post(lambda: self._cannot_connect(endpoint, why), None)
        else:
            self._post(lambda: self._connected(endpoint, sock), sock)

    def _post(self, do: Callable[[], None], sock: Optional[socket.socket]) -> None:
        try:
            self._driver.post(do)
        except RuntimeError:  # The event loop is closed.
            if sock is not None:
                sock.close()

    def _connected(self, endpoint: Endpoint, sock: socket.socket) -> None:
        self._dialing = False
        if self.ended:
            return sock.close()
        self._sock = sock
        self._driver.attach(sock)
        self.machine.connected_to(now(), str(endpoint), endpoint.is_network)
        if self._options.tls is not None and endpoint.is_network:
            try:
                self._encryption = Encryption(self._options.tls, endpoint.name)
            except (ssl.SSLError, ValueError) as error:
                self._distrust(error)
        self.settle()

    def _cannot_connect(self, endpoint: Endpoint, error: Exception) -> None:
        self._dialing = False
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        self.machine.cannot_connect(str(endpoint), why)
        self._route.failed(now(), self.machine.is_bound())
        self._give_up()
        self.settle()

    def _disconnect(self) -> None:
        """Close the connection. The next one is made when that is due."""
        sock, self._sock = self._sock, None
        if sock is None:
            return
        self._driver.detach(sock)
        sock.close()
        self._encryption = None
        self._encrypted.clear()
        moment = now()
        self.machine.disconnected(moment)
        bound = self.machine.is_bound()
        if self.machine.is_turned_away:
            self._route.failed(moment, bound)
        else:
            self._route.ended(moment, bound)
        self._give_up()

    def _give_up(self) -> None:
        """If no node has ever welcomed us, and none of them can be reached, the client is told."""
        if not self._opened and self._route.rounds > 0:
            text = self.machine.no_node(now())
            refusal = wire.Refusal(wire.Code.UNAVAILABLE, text)
            self._deliver(self.OPENED, machine.Refused(self.OPENED, refusal))

    # What has happened.

    def _dispatch(self) -> None:
        """Hand out the events of the machine."""
        events = self.machine.events
        while events:
            event = events.popleft()
            if isinstance(event, machine.Lost):
                self._lost(event)
            elif isinstance(event, machine.Welcomed):
                self._opened = True
                self._deliver(self.OPENED, event)
            elif isinstance(event, machine.Closed):
                self._deliver(self.OPENED, machine.Refused(self.OPENED, event.refusal))
            elif not isinstance(event, machine.Stopping):
                if isinstance(event, machine.Granted):
                    on_lost = self._requested.pop(event.number, None)
                    if on_lost is not None:
                        self._on_lost[event.lock, event.fence] = on_lost
                elif isinstance(event, machine.Refused):
                    self._requested.pop(event.number, None)
                self._deliver(event.number, event)

    def _deliver(self, number: int, outcome: Outcome) -> None:
        deliver = self._waiting.pop(number, None)
        if deliver is not None:
            deliver(outcome)

    def _lost(self, event: machine.Lost) -> None:
        """Remember the reason of a loss for the owner of the grant, and report it."""
        if len(self._losses) == _LOSSES:
            del self._losses[next(iter(self._losses))]
        self._losses[event.lock, event.fence] = event.reason
        on_lost = self._on_lost.pop((event.lock, event.fence), None)
        if on_lost is not None:
            lost = Lost(*event)
            self._driver.notify(lambda: on_lost(lost))

    def release(self, lock: str, fence: int) -> Make:
        """The request that releases a grant, after which its loss is not reported."""

        def make(machine: SessionMachine, moment: int) -> int:
            self._on_lost.pop((lock, fence), None)
            return machine.release(moment, lock, fence)

        return make

    def forked(self) -> None:
        """Close what this process has inherited from its parent, to whom the session belongs. The
        node would otherwise not notice that the parent is gone."""
        self.machine.forked()
        for sock in (self._sock, self._holder[1] if self._holder is not None else None):
            if sock is not None:
                sock.close()
        self._driver.forked()


def granted(outcome: Outcome) -> int:
    """The fence of a grant, from the answer to a request for a lock."""
    if isinstance(outcome, machine.Granted):
        return outcome.fence
    raise _unexpected(outcome)


def released(outcome: Outcome, lock: str, fence: int) -> bool:
    """Whether the grant was held until it was released."""
    if isinstance(outcome, machine.Released):
        return outcome.held
    if isinstance(outcome, (machine.Refused, machine.Unknown)):
        raise ReleaseUnknown(lock, fence, outcome.refusal.text)
    raise _unexpected(outcome)


def report(outcome: Outcome) -> Union[None, wire.LockReport, wire.NodeStatus]:
    """The report in the answer to a question."""
    if isinstance(outcome, machine.Answer):
        return outcome.report
    raise _unexpected(outcome)


def other_report(report: object) -> RefusedError:
    """The error for a node that has answered with a report about something else."""
    text = f"the node answered a different question: {report}"
    return refused(wire.Refusal(wire.Code.INVALID, text))


def opened(outcome: Outcome) -> machine.Welcomed:
    """The welcome of a node."""
    if isinstance(outcome, machine.Welcomed):
        return outcome
    raise _unexpected(outcome)


def _unexpected(outcome: Outcome) -> RefusedError:
    if isinstance(outcome, (machine.Refused, machine.Unknown)):
        return refused(outcome.refusal)
    text = f"the node answered a different question: {outcome}"
    return refused(wire.Refusal(wire.Code.INVALID, text))


_sessions: "weakref.WeakSet[Session]" = weakref.WeakSet()


def _after_fork() -> None:
    for session in list(_sessions):
        try:
            session.forked()
        except OSError:
            pass  # It is closed already.
    _sessions.clear()


os.register_at_fork(after_in_child=_after_fork)
