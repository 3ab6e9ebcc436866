"""Locks that clients keep until somebody else wants them: the steps of one lock, the machine without
a node, and both clients with real nodes."""

import asyncio
import random
import signal
import sys
import threading
import time
import unittest
from typing import Dict, List, Optional

import doorway
import doorway.aio
from doorway import _wire as wire
from doorway import _machine as machine
from doorway._clock import MS
from doorway._kept import Grant, Kept
from doorway._lease import UNLIMITED, State
from doorway._machine import SessionMachine, Setup
from nodes import PATIENCE, Node, Tap, until


class Steps(unittest.TestCase):
    """The steps of one kept lock, whose range is 5 to 8."""

    def setUp(self) -> None:
        self.kept = Kept(Grant(wire.Mode.EXCLUSIVE, None, 1, 5, 5), 3)

    def test_entries_follow_each_other_until_the_range_is_used_up(self) -> None:
        kept = self.kept
        for fence in (5, 6, 7):
            self.assertTrue(kept.holds(fence))
            self.assertIsNone(kept.enter(object()), "somebody is inside")
            self.assertFalse(kept.leave(fence - 1))
            self.assertFalse(kept.leave(fence + 1))
            self.assertTrue(kept.leave(fence))
            self.assertFalse(kept.leave(fence), "that was the same entry")
            self.assertIsNone(kept.inside())
            entry = object()
            self.assertEqual(kept.enter(entry), fence + 1)
            inside = kept.inside()
            assert inside is not None
            self.assertEqual((inside.fence, inside.base), (fence + 1, 5))
            self.assertIs(inside.entry, entry)
        self.assertFalse(kept.leave(8), "there is no fence for another entry")
        self.assertTrue(kept.holds(8))

    def test_nobody_enters_or_leaves_what_is_closed(self) -> None:
        kept = self.kept
        for _ in range(2):
            inside = kept.close()
            assert inside is not None and inside.fence == 5
            self.assertTrue(kept.holds(5))
            self.assertFalse(kept.leave(5))
            self.assertIsNone(kept.enter(object()))
        self.setUp()
        kept = self.kept
        kept.leave(5)
        for _ in range(2):
            self.assertIsNone(kept.close())
            self.assertIsNone(kept.enter(object()))

    def test_the_clock_of_a_fence_does_not_overflow(self) -> None:
        last = (7 << 40) - 1
        kept = Kept(Grant(wire.Mode.EXCLUSIVE, None, 1, last - 1, last - 1), 1000)
        self.assertTrue(kept.leave(last - 1))
        self.assertEqual(kept.enter(object()), last)
        self.assertFalse(kept.leave(last))

    def test_threads_that_compete_have_one_winner(self) -> None:
        kept = Kept(Grant(wire.Mode.EXCLUSIVE, None, 1, 1, 1), 1_000_000)
        kept.leave(1)
        fences: List[int] = []
        inside: List[int] = []
        crowds: List[List[int]] = []
        stuck: List[int] = []

        def compete() -> None:
            for _ in range(2000):
                fence = kept.enter(object())
                if fence is not None:
                    inside.append(fence)
                    fences.append(fence)
                    if len(inside) != 1:
                        crowds.append(list(inside))
                    inside.remove(fence)
                    if not kept.leave(fence):
                        stuck.append(fence)

        threads = [threading.Thread(target=compete) for _ in range(4)]
        for thread in threads:
            thread.start()
        until("somebody has entered", lambda: len(fences) > 100)
        grant = kept.close()
        count = len(fences)
        for thread in threads:
            thread.join()
        self.assertEqual(fences, list(range(2, 2 + len(fences))))
        self.assertLessEqual(len(fences) - count, 1)
        self.assertEqual(crowds, [])
        # Only who was inside at the end cannot leave.
        self.assertEqual(stuck, [] if grant is None else [grant.fence])
        self.assertIn(grant and grant.fence, [None, fences[-1]])


def reply_frame(content: bytes) -> bytes:
    return len(content).to_bytes(4, "little") + content


class Machine(unittest.TestCase):
    """The machine of a client that keeps locks. The session has a TTL of 10 s, and the node grants
    the lock ``a`` with the fences 5 to 8."""

    def start(self, version: int = 5, ttl: int = 10_000 * MS) -> SessionMachine:
        who = wire.ClientInfo("x", "h", 7)
        one = SessionMachine(Setup(who, None, ttl, 10_000 * MS, keep=True), 0)
        one.connected_to(0, "@a", False)
        self.hello = bytes(one.outgoing)
        one.outgoing.clear()
        directory = b"\0" if version >= 3 else b""
        welcome = bytes((0, version)) + b"\1n\0\1\7" + b"\1" * 16 + b"\x90\x4e\0" + directory
        one.receive(0, reply_frame(welcome))
        self.assertIsInstance(one.events.popleft(), machine.Welcomed)
        return one

    def inside(self) -> SessionMachine:
        one = self.start()
        number = one.acquire(0, self.ask())
        self.assertEqual(self.sent(one), wire.encode(wire.Keep(number, self.ask())))
        one.receive(MS, reply_frame(bytes((14, number, 5, 3))))
        self.assertEqual(one.events.popleft(), machine.Granted(number, "a", 5))
        return one

    def outside(self) -> SessionMachine:
        one = self.inside()
        number = one.release(2 * MS, "a", 5)
        self.assertEqual(one.events.popleft(), machine.Released(number, True))
        self.assertEqual(self.sent(one), b"")
        return one

    def ask(self, mode: wire.Mode = wire.Mode.EXCLUSIVE, permits: Optional[int] = None) -> wire.Ask:
        return wire.Ask("a", mode, permits, wire.Wait.FOREVER)

    def sent(self, one: SessionMachine) -> bytes:
        sent = bytes(one.outgoing)
        one.outgoing.clear()
        return sent

    def enter(self, one: SessionMachine, now: int) -> Optional[int]:
        """Ask for the lock. Returns the fence if the node is not asked."""
        one.acquire(now, self.ask())
        if not one.events:
            return None
        event = one.events.popleft()
        assert isinstance(event, machine.Granted) and not one.outgoing
        return event.fence

    def test_an_entry_needs_an_answer_of_the_first_half_of_the_ttl(self) -> None:
        one = self.outside()
        self.assertEqual(self.enter(one, 4999 * MS), 6)
        self.assertIs(one.grant_state("a", 6, lambda: 4999 * MS), State.HELD)
        self.assertIs(one.grant_state("a", 5, lambda: 4999 * MS), State.LOST)
        one.release(4999 * MS, "a", 6)
        one.events.clear()
        number = one.acquire(5000 * MS, self.ask())
        given_back = wire.encode(wire.Release(number - 1, "a", 5))
        self.assertEqual(self.sent(one), given_back + wire.encode(wire.Keep(number, self.ask())))

    def test_a_wanted_lock_is_not_entered_again(self) -> None:
        wanted = reply_frame(b"\x0f\1a\5")
        one = self.outside()
        one.receive(3 * MS, reply_frame(b"\x0f\1a\4"))
        self.assertEqual(self.sent(one), b"", "that was another grant")
        one.receive(3 * MS, wanted)
        self.assertEqual(self.sent(one)[4:5], b"\2", "it is released")
        self.assertIsNone(one.reenter(self.ask(), object()))
        self.assertIsNone(self.enter(one, 4 * MS))
        one = self.inside()
        one.receive(3 * MS, wanted)
        self.assertEqual(self.sent(one), wire.encode(wire.InUse("a", 5)))
        self.assertFalse(one.leave_kept(3 * MS, "a", 5))
        number = one.release(3 * MS, "a", 5)
        self.assertEqual(self.sent(one), wire.encode(wire.Release(number, "a", 5)))

    def test_the_first_fence_does_not_release_a_later_entry(self) -> None:
        def again() -> None:
            number = one.release(3 * MS, "a", 5)
            self.assertEqual(one.events.popleft(), machine.Released(number, False))
            self.assertEqual(self.sent(one), b"", "the node knows the lock by this fence")

        one = self.outside()
        again()
        self.assertEqual(self.enter(one, 3 * MS), 6)
        again()
        one.receive(3 * MS, reply_frame(b"\x0f\1a\5"))
        self.assertEqual(self.sent(one), wire.encode(wire.InUse("a", 5)))
        again()
        self.assertIs(one.grant_state("a", 6, lambda: 3 * MS), State.HELD)

    def test_a_connection_that_ends_takes_what_is_kept_outside_along(self) -> None:
        none = wire.Claims((), (), False)
        claim = wire.Claim("a", wire.Mode.EXCLUSIVE, None, 5, 1)
        for is_inside, claims in ((False, none), (True, none._replace(held=(claim,)))):
            one = self.outside()
            if is_inside:
                self.assertEqual(self.enter(one, 3 * MS), 6)
            one.disconnected(3 * MS)
            self.assertEqual((one.is_bound(), len(one.events)), (is_inside, 0))
            self.assertIsNone(one.reenter(self.ask(), object()))
            one.connected_to(4 * MS, "@a", False)
            self.assertIn(wire._claims(claims), self.sent(one)[-len(wire._claims(claims)) :])
            state = one.grant_state("a", 6, lambda: 4 * MS)
            self.assertIs(state, State.HELD if is_inside else State.LOST)

    def test_an_entry_of_a_thread_can_be_found_and_taken_back(self) -> None:
        for wanted in (b"", reply_frame(b"\x0f\1a\5")):
            one, entry = self.outside(), object()
            self.assertIsNone(one.find_entry(entry))
            self.assertEqual(one.reenter(self.ask(), entry), 6)
            one.receive(3 * MS, wanted)
            self.assertEqual(one.find_entry(entry), ("a", 6))
            self.assertIsNone(one.find_entry(object()))
            one.release(3 * MS, "a", 6)
            self.assertIsNone(one.find_entry(entry))

    def test_nothing_is_kept_for_readers_or_semaphores_or_by_older_nodes(self) -> None:
        for ask in (self.ask(wire.Mode.SHARED), self.ask(permits=2)):
            one = self.outside()
            self.assertIsNone(one.reenter(ask, object()))
            number = one.acquire(3 * MS, ask)
            self.assertEqual(self.sent(one), wire.encode(wire.Acquire(number, ask)))
        for version in (1, 4):
            one = self.start(version)
            number = one.acquire(0, self.ask())
            self.assertEqual(self.sent(one), wire.encode(wire.Acquire(number, self.ask())))
            one.receive(MS, reply_frame(bytes((0, number, 5))))
            one.events.clear()
            number = one.release(2 * MS, "a", 5)
            self.assertEqual(self.sent(one), wire.encode(wire.Release(number, "a", 5)))

    def test_there_is_a_ttl_on_a_unix_socket_as_well(self) -> None:
        one = self.start(ttl=UNLIMITED)
        self.assertIn(wire._opening(wire.New(10_000)), self.hello)
        self.assertIsNone(one.take_holder())
        self.assertEqual(one.deadline(), 9500 * MS)

    def test_a_forked_process_keeps_nothing(self) -> None:
        one = self.outside()
        one.forked()
        self.assertIsNone(one.reenter(self.ask(), object()))


class Blocking(unittest.TestCase):
    """The blocking client, with a real node."""

    def setUp(self) -> None:
        self.node = Node().start()
        self.addCleanup(self.node.end)
        self.client = self.node.client(keep=True)
        self.addCleanup(self.client.close)
        self.other = self.node.client()
        self.addCleanup(self.other.close)

    def enter(self, lock: str = "a") -> int:
        """Enter and leave a lock. Returns the fence."""
        with self.client.lock(lock, wait=PATIENCE) as grant:
            return grant.fence

    def holders(self, lock: str = "a") -> List[int]:
        """The fences of the holders, as the node knows them."""
        return [holder.fence for holder in self.other.inspect(lock).holders]

    def test_entering_again_sends_nothing_and_each_entry_has_a_fence(self) -> None:
        tap = Tap(self.node)
        self.addCleanup(tap.close)
        # No heartbeat is due in the time of this test.
        with doorway.Client(tap.socket, ttl=600, keep=True) as client:
            lock = client.lock("a")
            with lock as grant:
                first = grant.fence
            before, fences = tap.bytes, []
            for _ in range(1000):
                with lock as grant:
                    grant.check()
                    fences.append(grant.fence)
            self.assertEqual(tap.bytes - before, 16, "the release at the end of the range")
            self.assertEqual(fences, list(range(first + 1, first + 1001)))
            with lock as grant:
                self.assertGreater(grant.fence, fences[-1])
            self.assertGreater(tap.bytes, before)
            self.assertEqual(client.status().grants, 2)

    def test_others_get_the_lock_in_every_way(self) -> None:
        last = 0
        for _ in range(3):
            for wait in (0, 30, None):
                fence = self.enter()
                self.assertEqual(self.enter(), fence + 1)
                self.assertEqual(self.holders(), [fence])
                with self.client.lock("a") as grant:
                    self.assertEqual(grant.fence, fence + 2)
                    self.assertIsNone(self.other.try_lock("a"), "the client is inside")
                    grant.check()
                with self.other.lock("a", wait=wait) as theirs:
                    self.assertGreater(theirs.fence, grant.fence)
                    self.assertIsNone(self.client.try_lock("a"))
                self.assertGreater(fence, last)
                last = theirs.fence

    def test_a_client_that_waits_gets_the_lock_when_the_program_leaves(self) -> None:
        self.enter()
        entered: List[int] = []

        def enter() -> None:
            with self.other.lock("a") as grant:
                entered.append(grant.fence)

        with self.client.lock("a") as grant:
            thread = threading.Thread(target=enter)
            thread.start()
            until("the client is told", lambda: not self.client._session.machine._kept)
        # It was wanted, so this entry asks the node and comes after the other one.
        fence = self.enter()
        thread.join(PATIENCE)
        self.assertEqual([grant.fence < theirs < fence for theirs in entered], [True])

    def test_a_busy_loop_gives_the_lock_to_others(self) -> None:
        stop = threading.Event()
        fences: List[int] = []

        def loop() -> None:
            while not stop.is_set():
                fences.append(self.enter())

        thread = threading.Thread(target=loop)
        thread.start()
        try:
            for _ in range(20):
                count = len(fences)
                until("the loop has entered again", lambda: len(fences) > count + 1)
                with self.other.lock("a", wait=PATIENCE) as grant:
                    count = len(fences)
                    self.assertGreater(grant.fence, fences[-1])
                    time.sleep(0.002)
                    self.assertLessEqual(len(fences) - count, 1, "nobody enters beside the other")
        finally:
            stop.set()
            thread.join()
        self.assertEqual(fences, sorted(set(fences)))

    def test_threads_of_one_client_take_turns(self) -> None:
        lock, inside, fences = self.client.lock("a"), [0], []

        def work() -> None:
            for _ in range(200):
                with lock as grant:
                    inside[0] += 1
                    fences.append((inside[0], grant.fence))
                    time.sleep(0)
                    inside[0] -= 1

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(10):
            with self.other.lock("a", wait=PATIENCE):
                time.sleep(0.001)
        for thread in threads:
            thread.join()
        self.assertEqual([count for count, _ in fences], [1] * 800)
        order = [fence for _, fence in fences]
        self.assertEqual(order, sorted(set(order)))

    def test_readers_and_semaphores_are_not_kept(self) -> None:
        for lock, shared, permits in (("r", True, None), ("p", False, 3), ("r", True, None)):
            with self.client.lock(lock, shared=shared, permits=permits):
                self.assertEqual(len(self.holders(lock)), 1)
            self.assertEqual(self.holders(lock), [])
        # Nor does a reader enter a kept lock by itself.
        fence = self.enter("r")
        self.assertEqual(self.holders("r"), [fence])
        with self.client.lock("r", shared=True, wait=PATIENCE) as grant:
            self.assertGreater(grant.fence, fence + 1)

    def test_nothing_is_kept_by_default(self) -> None:
        with self.other.lock("a"):
            pass
        self.assertEqual(self.holders(), [])

    def test_at_most_64_locks_are_kept(self) -> None:
        first = {f"many/{number}": self.enter(f"many/{number}") for number in range(70)}
        until("the rest is given back", lambda: self.other.status().held == 64)
        self.assertEqual(self.enter("many/69"), first["many/69"] + 1)
        self.assertGreater(self.enter("many/0"), first["many/0"] + 1)

    def test_a_lock_that_is_kept_can_be_broken(self) -> None:
        told: List[doorway.Lost] = []
        lock = self.client.lock("a", on_lost=told.append)
        for entries in (1, 3):
            for _ in range(entries):
                with lock as grant:
                    pass
            self.assertEqual(self.node.run(["break", "a", "--fence", str(grant.fence)]), 0)
            until("the client is told", lambda: not self.client._session.machine._kept)
            self.assertEqual(self.holders(), [])
            self.assertGreater(self.enter(), grant.fence + 1)
        self.assertEqual(told, [], "the program was outside")
        with self.assertRaises(doorway.Lost) as raised:
            with lock as grant:
                self.assertEqual(self.holders(), [grant.fence - 1], "it was entered again")
                self.assertEqual(self.node.run(["break", "a", "--fence", str(grant.fence)]), 0)
                until("the program is told", lambda: bool(told))
                self.assertRaises(doorway.Lost, grant.check)
        self.assertEqual((raised.exception.fence, told[0].fence), (grant.fence, grant.fence))
        self.assertGreater(self.enter(), grant.fence)

    def test_a_crash_of_the_node_ends_what_is_kept_outside(self) -> None:
        outside, inside = self.enter("a"), self.enter("b")
        with self.client.lock("b") as grant:
            self.assertEqual(grant.fence, inside + 1)
            self.node.kill()
            self.node.start()
            with self.other.lock("a", wait=PATIENCE) as theirs:
                self.assertGreater(theirs.fence, outside)
            self.assertIsNone(self.other.try_lock("b"))
            self.assertEqual(self.holders("b"), [inside])
            grant.check()
        with self.other.lock("b", wait=PATIENCE) as theirs:
            self.assertGreater(theirs.fence, grant.fence)
        self.assertGreater(self.enter("a"), outside + 1)
        self.assertGreater(self.enter("b"), theirs.fence)

    def test_a_node_that_stops_gets_everything_back(self) -> None:
        fence = self.enter()
        self.node.stop()
        self.node.start()
        with self.other.lock("a", wait=PATIENCE) as grant:
            self.assertGreater(grant.fence, fence)
        self.assertGreater(self.enter(), grant.fence)

    def test_a_silent_node_ends_what_is_kept(self) -> None:
        with self.node.client(ttl=1, keep=True) as client:
            with client.lock("b") as grant:
                pass
            self.node.signal(signal.SIGSTOP)
            time.sleep(0.6)  # More than half of the TTL.
            self.assertIsNone(client._session.reenter(client.lock("b")._ask, object(), None))
            self.node.signal(signal.SIGCONT)
            with client.lock("b", wait=PATIENCE) as again:
                self.assertGreater(again.fence, grant.fence)

    def test_a_process_that_is_stopped_loses_what_it_keeps_after_the_ttl(self) -> None:
        script = self.node.script(
            """
            import doorway, sys
            client = doorway.Client(ttl=1, keep=True)
            lock = client.lock("a")
            for _ in range(3):
                with lock as grant:
                    pass
            print(grant.fence, flush=True)
            sys.stdin.readline()
            print(client.try_lock("a"), flush=True)
            sys.stdin.readline()
            with lock as grant:
                print(grant.fence, flush=True)
            """
        )
        fence = int(script.line())
        script.process.send_signal(signal.SIGSTOP)
        with self.other.lock("a", wait=PATIENCE) as grant:
            self.assertGreater(grant.fence, fence)
            script.tell("go on")
            script.process.send_signal(signal.SIGCONT)
            self.assertEqual(script.line(), "None")
        script.tell("go on")
        self.assertGreater(int(script.line()), grant.fence)
        self.assertEqual(script.end(), 0)

    def test_a_forked_process_never_enters(self) -> None:
        script = self.node.script(
            """
            import doorway, os
            client = doorway.Client(keep=True)
            lock = client.lock("a")
            with lock as grant:
                print(grant.fence, flush=True)
            child = os.fork()
            if child == 0:
                try:
                    lock.acquire()
                except doorway.Forked:
                    print("Forked", flush=True)
                # It has no part of the session, and asks its own.
                print(client._session.reenter(lock._ask, object(), None), flush=True)
                with doorway.lock("a", wait=60) as own:
                    print(own.fence, flush=True)
                os._exit(0)
            os.waitpid(child, 0)
            with lock as grant:
                child = os.fork()
                if child == 0:
                    try:
                        grant.release()
                    except doorway.Forked:
                        print("Forked", flush=True)
                    os._exit(0)
                os.waitpid(child, 0)
                print(grant.fence, flush=True)
            with lock as again:
                print(again.fence - grant.fence, flush=True)
            """
        )
        first = int(script.line())
        self.assertEqual([script.line(), script.line()], ["Forked", "None"])
        child = int(script.line())
        self.assertGreater(child, first)
        self.assertEqual(script.line(), "Forked")
        self.assertGreater(int(script.line()), child)
        self.assertEqual((script.line(), script.end()), ("1", 0))

    def test_signals_at_any_moment_leave_nobody_inside(self) -> None:
        class Rang(Exception):
            pass

        def ring(*_: object) -> None:
            raise Rang

        random.seed(1)
        rang = 0
        lock = self.client.lock("a", on_lost=print)
        fences = [self.enter()]

        def enter() -> None:
            # If a signal comes before the release, the grant is released with this frame.
            grant = lock.acquire()
            fences.append(grant.fence)
            grant.release()

        before, report = signal.signal(signal.SIGALRM, ring), sys.unraisablehook
        # Python ignores an exception that comes in `__del__`, so the loop ends by itself.
        sys.unraisablehook = lambda _: None
        try:
            for _ in range(400):
                try:
                    signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00001, 0.0002))
                    for _ in range(200):
                        enter()
                except Rang:
                    rang += 1
        finally:
            sys.unraisablehook = report
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        self.assertGreater(rang, 200)
        self.assertEqual(fences, sorted(set(fences)))
        with self.other.lock("a", wait=PATIENCE) as theirs:
            self.assertGreater(theirs.fence, fences[-1])
        self.assertGreater(self.enter(), theirs.fence)

    def test_processes_take_turns_while_the_node_is_killed(self) -> None:
        log = self.node.directory / "entries"
        worker = f"""
            import doorway, random, time
            client = doorway.Client(patience=60, keep=True)
            print("open", flush=True)
            with open({str(log)!r}, "ab", buffering=0) as file:
                for _ in range(60):
                    for _ in range(random.randrange(1, 10)):
                        with client.lock("turn", wait=60) as grant:
                            begin = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
                            grant.check()
                            end = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
                            file.write(f"{{begin}} {{end}} {{grant.fence}}\\n".encode())
                    time.sleep(0.005)
            """
        scripts = [self.node.script(worker) for _ in range(4)]
        self.assertEqual([script.line() for script in scripts], ["open"] * 4)
        for _ in range(3):
            time.sleep(0.3)
            self.node.kill()
            self.node.start()
        self.assertEqual([script.end() for script in scripts], [0] * 4)
        entries = [tuple(map(int, line.split())) for line in log.read_text().splitlines()]
        entries.sort()
        for (_, end, fence), (begin, _, next_fence) in zip(entries, entries[1:]):
            self.assertLess(end, begin)
            self.assertLess(fence, next_fence)
        again = sum(b[2] == a[2] + 1 for a, b in zip(entries, entries[1:]))
        self.assertGreater(again, 100, "many entries did not ask the node")


class Asyncio(unittest.IsolatedAsyncioTestCase):
    """The asyncio client, with a real node."""

    def setUp(self) -> None:
        self.node = Node().start()
        self.addCleanup(self.node.end)

    def client(self, keep: bool = True, socket: Optional[str] = None) -> doorway.aio.Client:
        ttl = 600 if keep else None
        return doorway.aio.Client(socket or self.node.socket, ttl=ttl, patience=PATIENCE, keep=keep)

    async def test_entering_again_sends_nothing(self) -> None:
        tap = Tap(self.node)
        self.addCleanup(tap.close)
        async with self.client(socket=tap.socket) as client, self.client(keep=False) as other:
            lock = client.lock("a")
            async with lock as grant:
                fence = grant.fence
            before = tap.bytes
            for number in range(1, 500):
                async with lock as grant:
                    grant.check()
                    self.assertEqual(grant.fence, fence + number)
            self.assertEqual(tap.bytes, before)
            self.assertIs(grant.state, doorway.State.LOST)
            await grant.release()  # A second release has no effect.
            async with other.lock("a", wait=PATIENCE) as theirs:
                self.assertGreater(theirs.fence, grant.fence)
                self.assertIsNone(await client.try_lock("a"))
            async with client.lock("a", shared=True):
                pass
            self.assertEqual((await other.inspect("a")).holders, ())

    async def test_a_task_that_never_waits_gives_the_lock_to_others(self) -> None:
        # The other client has a thread of its own, because this event loop is busy.
        with self.node.client() as other:
            fences: List[int] = []
            theirs: List[int] = []

            def enter() -> None:
                for _ in range(10):
                    with other.lock("a", wait=PATIENCE) as grant:
                        theirs.append(grant.fence)

            async with self.client() as client:
                thread = threading.Thread(target=enter)
                thread.start()
                while thread.is_alive():
                    async with client.lock("a") as grant:
                        fences.append(grant.fence)
            every = fences + theirs
            self.assertEqual(len(set(every)), len(every))
            self.assertEqual((fences, theirs), (sorted(fences), sorted(theirs)))
            # The client gave the lock back before it had used up a range of fences.
            ends = [place for place, fence in enumerate(fences) if fence + 1 not in fences]
            shortest = min(end - begin for begin, end in zip([-1, *ends], ends[:-1]))
            self.assertLess(shortest, 1001)

    async def test_tasks_take_turns_and_may_be_cancelled(self) -> None:
        running: List[int] = []
        async with self.client() as client, self.client(keep=False) as other:

            async def task(number: int) -> None:
                for _ in range(10):
                    async with client.lock("a"):
                        running.append(number)
                        self.assertEqual(running, [number])
                        await asyncio.sleep(0)
                        running.remove(number)

            await asyncio.gather(*(task(number) for number in range(8)))
            for delay in range(20):
                waiting = asyncio.ensure_future(client.lock("a").acquire())
                await asyncio.sleep(delay / 20_000)
                waiting.cancel()
                try:
                    await (await waiting).release()
                except asyncio.CancelledError:
                    pass
            async with other.lock("a", wait=PATIENCE):
                pass

    async def test_a_lock_that_was_entered_again_can_be_lost(self) -> None:
        told: "asyncio.Future[doorway.Lost]" = asyncio.get_running_loop().create_future()

        async def on_lost(lost: doorway.Lost) -> None:
            told.set_result(lost)

        async with self.client() as client:
            async with client.lock("a") as first:
                pass
            grant = await client.lock("a", on_lost=on_lost).acquire()
            self.assertEqual(grant.fence, first.fence + 1)
            words = ["break", "a", "--fence", str(grant.fence)]
            self.assertEqual(await asyncio.to_thread(self.node.run, words), 0)
            self.assertEqual((await asyncio.wait_for(told, PATIENCE)).fence, grant.fence)
            with self.assertRaises(doorway.Lost):
                await grant.release()

    async def test_a_crash_of_the_node_ends_what_is_kept_outside(self) -> None:
        async with self.client() as client, self.client(keep=False) as other:
            fences: Dict[str, int] = {}
            for lock in ("a", "b"):
                async with client.lock(lock) as grant:
                    fences[lock] = grant.fence
            async with client.lock("b") as grant:
                self.node.kill()
                self.node.start()
                async with other.lock("a", wait=PATIENCE) as theirs:
                    self.assertGreater(theirs.fence, fences["a"])
                self.assertIsNone(await other.try_lock("b"))
                grant.check()
            async with other.lock("b", wait=PATIENCE) as theirs:
                self.assertGreater(theirs.fence, grant.fence)


if __name__ == "__main__":
    unittest.main()
