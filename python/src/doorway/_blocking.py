"""The blocking client, for threads that wait.

A thread in the background owns the session: it alone steps the machine, reads, sends heartbeats and
reconnects. Callers hand it their requests and wait. So an exception that a signal raises in a caller,
such as KeyboardInterrupt, never finds the machine half changed.
"""

from __future__ import annotations

import functools
import inspect
import logging
import os
import queue
import select
import socket
import threading
import time
import weakref
from collections import deque
from types import TracebackType
from typing import (
    Any,
    Callable,
    Deque,
    Dict,
    Generic,
    Iterable,
    List,
    Optional,
    Tuple,
    Type,
    TypeVar,
)

from . import _session as shared
from ._grant import HeldLock
from ._session import Call, Make, OnLost, Outcome, Session
from ._timer import Timer
from ._wire import Ask, LockReport, NodeStatus, Scope
from .errors import Forked, Lost, NotFree, ReleaseUnknown

_log = logging.getLogger("doorway")

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class _Thread:
    """The thread that drives a session."""

    def __init__(self, options: shared.Options, deliver: Callable[[Outcome], None]) -> None:
        self._queue: Deque[Callable[[], None]] = deque()
        self._asleep = False
        self._done = False
        #: Nobody writes to the pipe while it is closed.
        self._closing = threading.RLock()
        self._kick_read, self._kick_write = os.pipe()
        os.set_blocking(self._kick_read, False)
        os.set_blocking(self._kick_write, False)
        self._timer = Timer()
        self._poll = select.poll()
        self._poll.register(self._kick_read, select.POLLIN)
        self._poll.register(self._timer.fileno(), select.POLLIN)
        self._sock: Optional[socket.socket] = None
        self._blocked = False
        self._notices: Optional["queue.SimpleQueue[Optional[Callable[[], object]]]"] = None
        self.session = Session(options, self)
        self._queue.append(lambda: self.session.open(deliver))
        self.thread = threading.Thread(target=self._run, name="doorway", daemon=True)
        self.thread.start()

    def post(self, do: Callable[[], None]) -> None:
        self._queue.append(do)
        if self._asleep:
            with self._closing:
                if not self._done:
                    try:
                        os.write(self._kick_write, b"\0")
                    except BlockingIOError:
                        pass  # The pipe is full, so the thread wakes anyway.
        if self._done:
            self._drain()  # The thread has ended, and does not look any more.

    def attach(self, sock: socket.socket) -> None:
        self._sock, self._blocked = sock, False
        self._poll.register(sock, select.POLLIN)

    def detach(self, sock: socket.socket) -> None:
        self._sock = None
        self._poll.unregister(sock)

    def notify(self, tell: Callable[[], object]) -> None:
        if self._notices is None:
            self._notices = queue.SimpleQueue()
            threading.Thread(
                target=_notify, args=(self._notices,), name="doorway-lost", daemon=True
            ).start()
        self._notices.put(tell)

    def forked(self) -> None:
        self._timer.close()
        pipe = self._kick_read, self._kick_write
        # These numbers may soon belong to other files.
        self._kick_read = self._kick_write = -1
        for end in pipe:
            if end >= 0:
                os.close(end)

    def stop(self) -> None:
        """End the session, and wait for a moment until the node has been told."""
        if self.session.process == os.getpid() and not self._done:
            self.post(self.session.leave)
            if threading.current_thread() is not self.thread:
                self.thread.join(1.0)

    def _drain(self) -> None:
        while True:
            try:
                do = self._queue.popleft()
            except IndexError:
                return
            do()

    def _run(self) -> None:
        try:
            while not self.session.ended:
                self._step()
        except Exception:
            # Callers must not wait forever for a thread that is gone.
            _log.exception("the session of this client has ended")
            self.session.leave()
            raise
        finally:
            with self._closing:
                self._done = True
                self.forked()
            self._drain()
            if self._notices is not None:
                self._notices.put(None)

    def _step(self) -> None:
        self._drain()
        self.session.settle()
        if self._sock is not None and self.session.is_blocked != self._blocked:
            self._blocked = not self._blocked
            events = select.POLLIN | (select.POLLOUT if self._blocked else 0)
            self._poll.modify(self._sock, events)
        self._timer.set(self.session.due())
        self._asleep = True
        # What was posted before the flag was set has not woken us.
        ready = [] if self._queue or self.session.ended else self._poll.poll()
        self._asleep = False
        for fd, _ in ready:
            if fd == self._kick_read:
                os.read(self._kick_read, 4096)
            elif fd == self._timer.fileno():
                self._timer.clear()
            else:
                self.session.receive()


def _notify(notices: "queue.SimpleQueue[Optional[Callable[[], object]]]") -> None:
    """Report losses one after the other. A function that raises does not keep the next one from
    being called."""
    while True:
        tell = notices.get()
        if tell is None:
            return
        try:
            tell()
        except BaseException:
            _log.exception("on_lost has raised an exception")


class _Waiting(Call):
    """A request that a thread waits for."""

    __slots__ = ("_ready",)

    def __init__(self) -> None:
        self._ready = threading.Lock()
        self._ready.acquire()
        super().__init__(self._ready.release)

    def wait(self) -> Outcome:
        self._ready.acquire()
        return self.answer()


class Client:
    """A session at a node. Any number of threads may use one client.

    The session ends when the client is closed, or when neither the client nor one of its grants is
    in use any more. A process that was forked from this one must open a client of its own: in the
    child, every request on this client raises :class:`doorway.Forked`.

    :param endpoint: The node: a path, ``@name`` or ``tcp://host:port``; several with commas between
        them. By default it is what DOORWAY_SOCKET names, else the node of this machine if it has one,
        else the node of this user, which is started if it does not run.
    :param ttl: How long the session lives without a message from this process, in seconds. A process
        that hangs loses its locks after this time. Without a TTL, the session lives as long as this
        process on a Unix socket, as with flock(2); over a network the TTL is then 10 s.
    :param label: What this process does, shown to people who ask who holds a lock. The default is the
        command line.
    :param token: A token that proves the rights of this client over a network.
    :param patience: How long a request without a timeout waits for a node that cannot be reached, in
        seconds.
    :param ca: The file with the authority of the nodes' certificates, for tcp://.
    :param certificate: The file with the certificate of this client, for tcp://.
    :param key: The file with the key of that certificate.
    :param server_name: The name in the node's certificate, such as NODE.GROUP.doorway. The default is
        the host of the endpoint.
    :param start: Whether to start the node of this user if it does not run.
    :param keep: Whether to keep locks after they are released, until somebody else wants them. A
        program that enters the same lock again and again then asks the node only once: entering it
        again sends nothing, and each entry has a fence of its own. When another client asks for the
        lock, the node tells this one, which gives it back at once if it is outside, and at the
        release if it is inside. Only exclusive locks without permits are kept. The session always has
        a TTL then, 10 s if ``ttl`` sets none.
    """

    def __init__(
        self,
        endpoint: Optional[str] = None,
        *,
        ttl: Optional[float] = None,
        label: Optional[str] = None,
        token: Optional[str] = None,
        patience: float = 10.0,
        ca: Optional[str] = None,
        certificate: Optional[str] = None,
        key: Optional[str] = None,
        server_name: Optional[str] = None,
        start: bool = True,
        keep: bool = False,
    ) -> None:
        options = shared.options(
            endpoint, ttl, label, token, patience, ca, certificate, key, server_name, start, keep
        )
        opening = _Waiting()
        self._thread = _Thread(options, opening.deliver)
        self._session = self._thread.session
        # The thread keeps the session alive, and nothing keeps the client alive but its users.
        self._finalize = weakref.finalize(self, _Thread.stop, self._thread)
        try:
            welcome = shared.opened(opening.wait())
        except BaseException:
            self.close()
            raise
        #: The name of the node, and who shares its locks.
        self.node: str = welcome.node
        self.scope: Scope = welcome.scope

    def close(self) -> None:
        """End the session. Locks that it still holds are released."""
        self._finalize()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def lock(
        self,
        name: str,
        *,
        wait: Optional[float] = None,
        shared: bool = False,
        permits: Optional[int] = None,
        on_lost: Optional[OnLost] = None,
    ) -> "Lock":
        """A lock, for a ``with`` statement or as a decorator. See :func:`doorway.lock`."""
        return Lock(lambda: self, name, wait, shared, permits, on_lost)

    def lock_all(
        self,
        names: Iterable[str],
        *,
        wait: Optional[float] = None,
        on_lost: Optional[OnLost] = None,
    ) -> "Locks":
        """Several locks, all or none. See :func:`doorway.lock_all`."""
        return Locks(lambda: self, names, wait, on_lost)

    def try_lock(
        self,
        name: str,
        *,
        shared: bool = False,
        permits: Optional[int] = None,
        on_lost: Optional[OnLost] = None,
    ) -> "Optional[Grant]":
        """Acquire a lock if it is free. See :func:`doorway.try_lock`."""
        try:
            return self.lock(
                name, wait=0, shared=shared, permits=permits, on_lost=on_lost
            ).acquire()
        except NotFree:
            return None

    def inspect(self, name: str) -> LockReport:
        """Report who holds a lock and who waits for it."""
        shared.ask(name, None, False, None)
        report = self._call(lambda machine, now: machine.inspect(now, name), shared.report)
        if not isinstance(report, LockReport):
            raise shared.other_report(report)
        return report

    def status(self) -> NodeStatus:
        """Report the state of the node."""
        report = self._call(lambda machine, now: machine.status(now), shared.report)
        if not isinstance(report, NodeStatus):
            raise shared.other_report(report)
        return report

    def _call(
        self, make: Make, finish: Callable[[Outcome], T], on_lost: Optional[OnLost] = None
    ) -> T:
        """Make a request, wait for the answer, and return what ``finish`` makes of it."""
        if self._session.process != os.getpid():
            raise Forked
        session, waiting = self._session, _Waiting()
        try:
            self._thread.post(lambda: session.call(make, waiting, on_lost))
            return finish(waiting.wait())
        except BaseException:  # Such as KeyboardInterrupt, at any place.
            self._thread.post(lambda: session.give_up(waiting))
            raise

    def __repr__(self) -> str:
        return f"<doorway.Client at node {self.node!r}>"


class Grant(HeldLock):
    """A lock that this process holds until it is released, unless it is lost before.

    A grant that is not in use any more releases its lock.
    """

    def __init__(self, client: Client, lock: str, fence: int) -> None:
        super().__init__(client._session, lock, fence)
        self._client = client
        self._ours = True

    def release(self) -> None:
        """Release the lock, and wait until the node confirms that it was held until now.

        Raises :class:`doorway.Lost` if the lock was lost before: other clients may have held it
        meanwhile. Raises :class:`doorway.ReleaseUnknown` if no answer came. A lock that was released
        already is left alone.

        A lock that the client keeps (``keep`` of :class:`doorway.Client`) is released without the
        node. If the node has just taken the lock away, and the client has not been told, this is no
        error.
        """
        if not self._ours:
            return
        if self._session.leave_kept(self.lock, self.fence):
            self._ours = False
            return
        self.check()
        held = self._client._call(
            self._session.release(self.lock, self.fence),
            lambda outcome: shared.released(outcome, self.lock, self.fence),
        )
        self._ours = False
        if not held:
            raise self._session.loss(self.lock, self.fence)

    def __enter__(self) -> "Grant":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        try:
            self.release()
        except Forked:
            pass  # The lock belongs to the parent, which goes on holding it.
        except ReleaseUnknown as unknown:
            _log.warning("%s", unknown)  # By our own clock, the lock was held until now.
        except Lost:
            if error is None:
                raise

    def __del__(self) -> None:
        if self._ours and self._is_here and not self._session.ended and not self.is_lost:
            self._ours = False
            session, release = self._session, self._session.release(self.lock, self.fence)
            self._client._thread.post(lambda: session.tell(release))


class _Scope(Generic[T]):
    """Something to acquire and release, in a ``with`` statement or around a function."""

    def __init__(self) -> None:
        self._entered: Dict[int, List[T]] = {}

    def acquire(self) -> T:
        raise NotImplementedError

    def _leave(
        self,
        held: T,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        raise NotImplementedError

    def __enter__(self) -> T:
        held = self.acquire()
        self._entered.setdefault(threading.get_ident(), []).append(held)
        return held

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        held = shared.take_entry(self._entered, threading.get_ident(), "thread")
        self._leave(held, kind, error, trace)

    def __call__(self, function: F) -> F:
        """Hold the lock while the function runs."""
        if inspect.iscoroutinefunction(function):
            raise TypeError(
                f"{function.__name__} is a coroutine function; decorate it with doorway.aio.lock"
            )

        @functools.wraps(function)
        def locked(*args: Any, **keywords: Any) -> Any:
            with self:
                return function(*args, **keywords)

        return locked  # type: ignore[return-value]


class Lock(_Scope[Grant]):
    """A named lock that can be acquired any number of times, by one thread after the other."""

    def __init__(
        self,
        client: Callable[[], Client],
        name: str,
        wait: Optional[float],
        shared_mode: bool,
        permits: Optional[int],
        on_lost: Optional[OnLost],
    ) -> None:
        super().__init__()
        shared.check_on_lost(on_lost)
        self._client = client
        self._ask = shared.ask(name, wait, shared_mode, permits)
        self._on_lost = on_lost

    def acquire(self) -> Grant:
        """Wait for the lock, and hold it."""
        return _enter(self._client(), self._ask, self._on_lost)

    def _leave(
        self,
        held: Grant,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        held.__exit__(kind, error, trace)


class Locks(_Scope[Dict[str, Grant]]):
    """Several named locks that are acquired together."""

    def __init__(
        self,
        client: Callable[[], Client],
        names: Iterable[str],
        wait: Optional[float],
        on_lost: Optional[OnLost],
    ) -> None:
        super().__init__()
        shared.check_on_lost(on_lost)
        self._client = client
        self._asks = shared.asks(names, wait)
        self._wait = wait
        self._on_lost = on_lost

    def acquire(self) -> Dict[str, Grant]:
        """Wait for all of the locks, and hold them."""
        client, begin = self._client(), time.monotonic()
        grants: Dict[str, Grant] = {}
        try:
            for ask in self._asks:
                ask = shared.with_time_left(ask, self._wait, begin)
                grants[ask.lock] = _enter(client, ask, self._on_lost)
        except BaseException:
            _release_all(list(grants.values()), quietly=True)
            raise
        return grants

    def _leave(
        self,
        held: Dict[str, Grant],
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        _release_all(list(held.values()), quietly=error is not None)


def _enter(client: Client, ask: Ask, on_lost: Optional[OnLost]) -> Grant:
    """Acquire a lock."""
    if client._session.keeps:
        grant = _reenter(client, ask, on_lost)
        if grant is not None:
            return grant

    def finish(outcome: Outcome) -> Grant:
        grant = Grant(client, ask.lock, shared.granted(outcome))
        # If this thread was not scheduled for long, the grant may be lost already.
        grant.check()
        return grant

    return client._call(lambda machine, now: machine.acquire(now, ask), finish, on_lost)


def _reenter(client: Client, ask: Ask, on_lost: Optional[OnLost]) -> Optional[Grant]:
    """Enter a lock that the client keeps, if that is possible without the node."""
    session, entry = client._session, object()
    try:
        fence = session.reenter(ask, entry, on_lost)
        return None if fence is None else Grant(client, ask.lock, fence)
    except BaseException:  # Such as KeyboardInterrupt, at any place.
        if session.process == os.getpid():
            client._thread.post(lambda: session.take_back(entry))
        raise


def _release_all(grants: List[Grant], quietly: bool) -> None:
    """Release all of these, and then raise the first loss, unless another error is on its way."""
    first: Optional[Lost] = None
    for grant in reversed(grants):
        try:
            grant.__exit__(None, None, None)
        except Lost as lost:
            first = first or lost
    if first is not None and not quietly:
        raise first


_default: Optional[Tuple[int, Client]] = None
_default_lock = threading.RLock()


def default_client() -> Client:
    """The client of this process, which is opened when it is first needed. A forked process opens its
    own."""
    global _default
    with _default_lock:
        if _default is None or _default[0] != os.getpid() or _default[1]._session.ended:
            _default = (os.getpid(), Client())
        return _default[1]


def _renew_default_lock() -> None:
    global _default, _default_lock
    _default = None
    _default_lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_default_lock)


def lock(
    name: str,
    *,
    wait: Optional[float] = None,
    shared: bool = False,
    permits: Optional[int] = None,
    on_lost: Optional[OnLost] = None,
) -> Lock:
    """A lock, for a ``with`` statement or as a decorator.

    ::

        with doorway.lock("deploy", wait=30) as grant:
            print("inside, with fence", grant.fence)

    On leaving, the lock is released. If it was lost before, :class:`doorway.Lost` is raised then,
    unless another exception is on its way.

    :param name: The name of the lock.
    :param wait: How long to wait for the lock, in seconds. 0 does not wait for another holder, None
        waits for as long as it takes. If the lock does not become free, :class:`doorway.NotFree` is
        raised.
    :param shared: Whether to hold the lock together with others that share it, as readers do.
    :param permits: Use the lock as a semaphore that this number of clients may hold at once. All
        clients of a lock must name the same number.
    :param on_lost: A function that is called with a :class:`doorway.Lost` if the lock is lost. It
        runs on a thread of its own and may block. If the node is silent for too long, it is called by
        the clock of this process, before the node gives the lock to anyone else.
    """
    return Lock(default_client, name, wait, shared, permits, on_lost)


def try_lock(
    name: str,
    *,
    shared: bool = False,
    permits: Optional[int] = None,
    on_lost: Optional[OnLost] = None,
) -> Optional[Grant]:
    """Acquire a lock if it is free; None if it is not.

    ::

        grant = doorway.try_lock("nightly")
        if grant is not None:
            with grant:
                ...
    """
    return default_client().try_lock(name, shared=shared, permits=permits, on_lost=on_lost)


def lock_all(
    names: Iterable[str],
    *,
    wait: Optional[float] = None,
    on_lost: Optional[OnLost] = None,
) -> Locks:
    """Several locks, all or none, for a ``with`` statement or as a decorator.

    ::

        with doorway.lock_all(["accounts/7", "accounts/9"], wait=5) as grants:
            print(grants["accounts/7"].fence)

    They are taken in the order of their names, so programs that acquire their locks this way cannot
    deadlock. ``wait`` is the time for all of them together.
    """
    return Locks(default_client, names, wait, on_lost)
