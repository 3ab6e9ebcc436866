"""Named locks for asyncio.

::

    import asyncio
    import doorway.aio

    async def main():
        async with doorway.aio.lock("deploy", wait=30) as grant:
            print("inside, with fence", grant.fence)

    asyncio.run(main())

:func:`lock` opens a session of its own each time. A program that uses locks often opens one session with
``async with doorway.aio.Client() as client``.

Heartbeats are sent by the event loop. If it is blocked for longer than the TTL of the session, the locks
are lost, and :meth:`Grant.check` says so by the clock.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import os
import socket
import time
from types import TracebackType
from typing import (
    Any,
    AsyncContextManager,
    Awaitable,
    Callable,
    Dict,
    Generic,
    Iterable,
    List,
    Optional,
    Set,
    Type,
    TypeVar,
)

from . import _session as shared
from ._clock import MS, now
from ._grant import HeldLock
from ._session import Call, Make, OnLost, Outcome, Session
from ._timer import Timer
from ._wire import Ask, LockReport, NodeStatus, Scope
from .errors import Forked, Lost, NotFree, ReleaseUnknown

__all__ = ["Client", "Grant", "Lock", "Locks", "lock", "lock_all"]

_log = logging.getLogger("doorway")

#: A task that enters a kept lock again and again lets the event loop run after this time.
_TURN = MS

F = TypeVar("F", bound=Callable[..., Awaitable[Any]])
T = TypeVar("T")


class _Loop:
    """The event loop that drives a session."""

    def __init__(self, options: shared.Options) -> None:
        self._loop = asyncio.get_running_loop()
        self._timer = Timer()
        self._sock: Optional[socket.socket] = None
        self._blocked = False
        #: The coroutines of ``on_lost`` that run.
        self._telling: "Set[asyncio.Future[Any]]" = set()
        self._loop.add_reader(self._timer.fileno(), self._ring)
        self.session = Session(options, self)

    def post(self, do: Callable[[], None]) -> None:
        def run() -> None:
            do()
            self.settle()

        self._loop.call_soon_threadsafe(run)

    def attach(self, sock: socket.socket) -> None:
        self._sock, self._blocked = sock, False
        self._loop.add_reader(sock.fileno(), self._read)

    def detach(self, sock: socket.socket) -> None:
        self._sock = None
        if not self._loop.is_closed():
            self._loop.remove_reader(sock.fileno())
            self._loop.remove_writer(sock.fileno())

    def notify(self, tell: Callable[[], object]) -> None:
        def run() -> None:
            told = tell()
            if inspect.isawaitable(told):
                task = asyncio.ensure_future(told)
                # The loop itself does not keep its tasks alive.
                self._telling.add(task)
                task.add_done_callback(self._telling.discard)

        self._loop.call_soon(run)

    def forked(self) -> None:
        self._timer.close()

    def settle(self) -> None:
        """Do what is due, and wait for what comes next."""
        session = self.session
        session.settle()
        if session.ended:
            return self._stop()
        if self._sock is not None and session.is_blocked != self._blocked:
            self._blocked = not self._blocked
            if self._blocked:
                self._loop.add_writer(self._sock.fileno(), self.settle)
            else:
                self._loop.remove_writer(self._sock.fileno())
        self._timer.set(session.due())

    def close(self) -> None:
        """End the session."""
        if self.session.process == os.getpid():
            self.session.leave()
            self._stop()

    def _stop(self) -> None:
        if self._timer.fileno() >= 0:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._timer.fileno())
            self._timer.close()

    def _ring(self) -> None:
        self._timer.clear()
        self.settle()

    def _read(self) -> None:
        self.session.receive()
        self.settle()


class Client:
    """A session at a node, for the tasks of one event loop.

    ::

        async with doorway.aio.Client() as client:
            async with client.lock("deploy") as grant:
                ...

    The options are those of :class:`doorway.Client`.
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
        self._options = shared.options(
            endpoint, ttl, label, token, patience, ca, certificate, key, server_name, start, keep
        )
        self._driver: Optional[_Loop] = None
        #: When a task that has entered a kept lock last let the event loop run.
        self._turned = 0
        #: The name of the node, once the client is open.
        self.node = ""
        #: Who shares the locks of the node.
        self.scope: Optional[Scope] = None

    async def open(self) -> None:
        """Open the session. ``async with`` does this."""
        if self._driver is not None:
            raise RuntimeError("this client is open already")
        self._driver = _Loop(self._options)
        opening = _Waiting()
        self._driver.session.open(opening.deliver)
        self._driver.settle()
        try:
            welcome = shared.opened(await opening.wait())
        except BaseException:
            self.close()
            raise
        self.node, self.scope = welcome.node, welcome.scope

    def close(self) -> None:
        """End the session. Locks that it still holds are released."""
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.close()

    async def __aenter__(self) -> "Client":
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
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
        """A lock, for an ``async with`` statement or as a decorator. See :func:`doorway.lock` for the
        options. ``on_lost`` is called by the event loop, and may be a coroutine function."""
        return Lock(self, name, wait, shared, permits, on_lost)

    def lock_all(
        self,
        names: Iterable[str],
        *,
        wait: Optional[float] = None,
        on_lost: Optional[OnLost] = None,
    ) -> "Locks":
        """Several locks, all or none. See :func:`doorway.lock_all`."""
        return Locks(self, names, wait, on_lost)

    async def try_lock(
        self,
        name: str,
        *,
        shared: bool = False,
        permits: Optional[int] = None,
        on_lost: Optional[OnLost] = None,
    ) -> "Optional[Grant]":
        """Acquire a lock if it is free; None if it is not."""
        lock = self.lock(name, wait=0, shared=shared, permits=permits, on_lost=on_lost)
        try:
            return await lock.acquire()
        except NotFree:
            return None

    async def inspect(self, name: str) -> LockReport:
        """Report who holds a lock and who waits for it."""
        shared.ask(name, None, False, None)
        report = shared.report(await self._call(lambda machine, now: machine.inspect(now, name)))
        if not isinstance(report, LockReport):
            raise shared.other_report(report)
        return report

    async def status(self) -> NodeStatus:
        """Report the state of the node."""
        report = shared.report(await self._call(lambda machine, now: machine.status(now)))
        if not isinstance(report, NodeStatus):
            raise shared.other_report(report)
        return report

    async def _call(self, make: Make, on_lost: Optional[OnLost] = None) -> Outcome:
        """Make a request, and wait for the answer."""
        driver = self._driver
        if driver is None:
            raise RuntimeError("this client is not open; use `async with Client() as client`")
        session = driver.session
        if session.process != os.getpid():
            raise Forked
        waiting = _Waiting()
        session.call(make, waiting, on_lost)
        driver.settle()
        try:
            return await waiting.wait()
        except BaseException:  # Such as CancelledError.
            session.give_up(waiting)
            driver.settle()
            raise

    def __repr__(self) -> str:
        return f"<doorway.aio.Client at node {self.node!r}>"


class _Waiting(Call):
    """A request that a task waits for."""

    __slots__ = ("_ready",)

    def __init__(self) -> None:
        self._ready: "asyncio.Future[None]" = asyncio.get_running_loop().create_future()
        super().__init__(self._set)

    def _set(self) -> None:
        if not self._ready.done():
            self._ready.set_result(None)

    async def wait(self) -> Outcome:
        # The task may be cancelled at the moment when the answer comes.
        await self._ready
        return self.answer()


class Grant(HeldLock):
    """A lock that this process holds until it is released, unless it is lost before.

    A grant that is not in use any more releases its lock.
    """

    def __init__(self, client: Client, session: Session, lock: str, fence: int) -> None:
        super().__init__(session, lock, fence)
        self._client = client
        self._ours = True

    async def release(self) -> None:
        """Release the lock, and wait until the node confirms that it was held until now.

        Raises :class:`doorway.Lost` if the lock was lost before, and
        :class:`doorway.ReleaseUnknown` if no answer came.

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
        outcome = await self._client._call(self._session.release(self.lock, self.fence))
        self._ours = False
        if not shared.released(outcome, self.lock, self.fence):
            raise self._session.loss(self.lock, self.fence)

    def _let_go(self) -> None:
        """Release the lock without waiting for the answer."""
        driver = self._client._driver
        if driver is None or not self._ours or not self._is_here or self.is_lost:
            return
        self._ours = False
        session, release = self._session, self._session.release(self.lock, self.fence)
        driver.post(lambda: session.tell(release))

    def __del__(self) -> None:
        try:
            self._let_go()
        except RuntimeError:
            pass  # The event loop is closed, and the session with it.

    async def __aenter__(self) -> "Grant":
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        try:
            await self.release()
        except Forked:
            pass  # The lock belongs to the parent, which goes on holding it.
        except ReleaseUnknown as unknown:
            _log.warning("%s", unknown)  # By our own clock, the lock was held until now.
        except Lost:
            if error is None:
                raise


class _Scope(Generic[T]):
    """Something to acquire and release, in an ``async with`` statement or around a coroutine function.
    Tasks that wait at the same time each have an entry of their own."""

    def __init__(self, client: Optional[Client]) -> None:
        self._client = client
        self._entered: "Dict[Optional[asyncio.Task[Any]], List[_Entry[T]]]" = {}

    async def _acquire(self, client: Client) -> T:
        raise NotImplementedError

    async def _leave(self, held: T, error: Optional[BaseException]) -> None:
        raise NotImplementedError

    async def acquire(self) -> T:
        """Wait for the lock, and hold it."""
        if self._client is None:
            raise RuntimeError("only `async with` can close the session of this lock; use a Client")
        return await self._acquire(self._client)

    async def __aenter__(self) -> T:
        entry: "_Entry[T]" = _Entry(self)
        held = await entry.__aenter__()
        self._entered.setdefault(asyncio.current_task(), []).append(entry)
        return held

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        entry = shared.take_entry(self._entered, asyncio.current_task(), "task")
        await entry.__aexit__(kind, error, trace)

    def __call__(self, function: F) -> F:
        """Hold the lock while the coroutine function runs."""
        if not inspect.iscoroutinefunction(function):
            raise TypeError(
                f"{function.__name__} is not a coroutine function; decorate it with doorway.lock"
            )

        @functools.wraps(function)
        async def locked(*args: Any, **keywords: Any) -> Any:
            async with self:
                return await function(*args, **keywords)

        return locked  # type: ignore[return-value]


class _Entry(AsyncContextManager[T]):
    """One entry of a task, with a session of its own if the lock has no client."""

    def __init__(self, scope: _Scope[T]) -> None:
        self._scope = scope
        self._client = scope._client or Client()

    async def __aenter__(self) -> T:
        if self._scope._client is None:
            await self._client.open()
        try:
            self._held = await self._scope._acquire(self._client)
        except BaseException:
            self._close()
            raise
        return self._held

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        try:
            await self._scope._leave(self._held, error)
        finally:
            self._close()

    def _close(self) -> None:
        if self._scope._client is None:
            self._client.close()


class Lock(_Scope[Grant]):
    """A named lock that can be acquired any number of times."""

    def __init__(
        self,
        client: Optional[Client],
        name: str,
        wait: Optional[float],
        shared_mode: bool,
        permits: Optional[int],
        on_lost: Optional[OnLost],
    ) -> None:
        super().__init__(client)
        self._ask = shared.ask(name, wait, shared_mode, permits)
        self._on_lost = on_lost

    async def _acquire(self, client: Client) -> Grant:
        return await _enter(client, self._ask, self._on_lost)

    async def _leave(self, held: Grant, error: Optional[BaseException]) -> None:
        await held.__aexit__(None, error, None)


class Locks(_Scope[Dict[str, Grant]]):
    """Several named locks that are acquired together."""

    def __init__(
        self,
        client: Optional[Client],
        names: Iterable[str],
        wait: Optional[float],
        on_lost: Optional[OnLost],
    ) -> None:
        super().__init__(client)
        self._asks = shared.asks(names, wait)
        self._wait = wait
        self._on_lost = on_lost

    async def _acquire(self, client: Client) -> Dict[str, Grant]:
        grants: Dict[str, Grant] = {}
        begin = time.monotonic()
        try:
            for ask in self._asks:
                ask = shared.with_time_left(ask, self._wait, begin)
                grants[ask.lock] = await _enter(client, ask, self._on_lost)
        except BaseException as error:
            await self._leave(grants, error)
            raise
        return grants

    async def _leave(self, held: Dict[str, Grant], error: Optional[BaseException]) -> None:
        first: Optional[Lost] = None
        for grant in reversed(list(held.values())):
            try:
                await grant.__aexit__(None, None, None)
            except Lost as lost:
                first = first or lost
            except BaseException:  # Such as CancelledError.
                for grant in held.values():
                    grant._let_go()
                raise
        if first is not None and error is None:
            raise first


async def _enter(client: Client, ask: Ask, on_lost: Optional[OnLost]) -> Grant:
    """Acquire a lock."""
    if client._driver is not None and client._driver.session.keeps:
        grant = await _reenter(client, client._driver.session, ask, on_lost)
        if grant is not None:
            return grant
    outcome = await client._call(lambda machine, now: machine.acquire(now, ask), on_lost)
    fence = shared.granted(outcome)
    assert client._driver is not None, "the client has just answered"
    grant = Grant(client, client._driver.session, ask.lock, fence)
    # If the event loop was blocked for long, the grant may be lost already.
    grant.check()
    return grant


async def _reenter(
    client: Client, session: Session, ask: Ask, on_lost: Optional[OnLost]
) -> Optional[Grant]:
    """Enter a lock that the client keeps, if that is possible without the node.

    A loop that enters a kept lock again and again never waits. It must let the event loop run, which
    hears that somebody else wants the lock.
    """
    if now() - client._turned > _TURN:
        await asyncio.sleep(0)
        client._turned = now()
    entry = object()
    try:
        fence = session.reenter(ask, entry, on_lost)
        if fence is not None:
            return Grant(client, session, ask.lock, fence)
        # If the lock was entered in vain, it is given back before it is asked for again.
        session.take_back(entry)
        return None
    except BaseException:  # Such as KeyboardInterrupt.
        if session.process == os.getpid():
            session.take_back(entry)
        raise


def lock(
    name: str,
    *,
    wait: Optional[float] = None,
    shared: bool = False,
    permits: Optional[int] = None,
    on_lost: Optional[OnLost] = None,
) -> Lock:
    """A lock with a session of its own, for an ``async with`` statement or as a decorator. See
    :func:`doorway.lock` for the options. ``on_lost`` is called by the event loop, and may be a
    coroutine function."""
    return Lock(None, name, wait, shared, permits, on_lost)


def lock_all(
    names: Iterable[str],
    *,
    wait: Optional[float] = None,
    on_lost: Optional[OnLost] = None,
) -> Locks:
    """Several locks with a session of their own, all or none. See :func:`doorway.lock_all`."""
    return Locks(None, names, wait, on_lost)
