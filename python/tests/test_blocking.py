"""The blocking client, with a real node."""

import gc
import os
import random
import signal
import threading
import time
import unittest
from typing import List, Optional

import doorway
from nodes import Node, boot_time, until


class Blocking(unittest.TestCase):
    node: Node

    @classmethod
    def setUpClass(cls) -> None:
        cls.node = Node().start()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.node.end()

    def setUp(self) -> None:
        self.client = self.node.client()
        self.other = self.node.client()

    def tearDown(self) -> None:
        self.client.close()
        self.other.close()

    def test_a_lock_has_a_fence_that_grows(self) -> None:
        with self.client.lock("a", wait=30) as first:
            self.assertIs(first.state, doorway.State.HELD)
            self.assertIsNone(first.remaining())
            first.check()
            self.assertIsNone(self.other.try_lock("a"))
        with self.other.lock("a") as second:
            self.assertGreater(second.fence, first.fence)
        self.assertIs(first.state, doorway.State.LOST)
        first.release()  # A second release has no effect.

    def test_a_wait_ends_in_time(self) -> None:
        with self.client.lock("b"):
            begin = boot_time()
            with self.assertRaises(doorway.NotFree) as raised:
                with self.other.lock("b", wait=0.2):
                    self.fail("the lock is held")
            self.assertIs(raised.exception.code, doorway.Code.NOT_FREE)
            self.assertGreaterEqual(boot_time() - begin, 0.19)
            with self.assertRaises(TimeoutError):
                self.other.lock("b", wait=0).acquire()

    def test_shared_locks_and_permits(self) -> None:
        with self.client.lock("r", shared=True), self.other.lock("r", shared=True, wait=30):
            self.assertIsNone(self.client.try_lock("r"))
        two = self.client.lock("p", permits=2)
        with two as one, two as other:
            self.assertNotEqual(one.fence, other.fence)
            self.assertIsNone(self.other.try_lock("p", permits=2))
            with self.assertRaises(doorway.RefusedError) as raised:
                self.other.try_lock("p", permits=3)
            self.assertIs(raised.exception.code, doorway.Code.NOT_SERVED)

    def test_several_locks_are_taken_all_or_none(self) -> None:
        with self.client.lock_all(["y", "x", "y"], wait=30) as grants:
            self.assertEqual(list(grants), ["x", "y"])
            with self.assertRaises(doorway.NotFree):
                self.other.lock_all(["w", "y"], wait=0.1).acquire()
        with self.other.lock_all(["w", "x", "y"], wait=0) as grants:
            self.assertEqual(list(grants), ["w", "x", "y"])
        with self.assertRaisesRegex(TypeError, r"give a list of names, such as \['xy'\]"):
            self.client.lock_all("xy")

    def test_mistakes_are_errors_at_once(self) -> None:
        for wrong in ("", "a\nb", "x" * 201):
            with self.assertRaises(ValueError):
                self.client.lock(wrong)
        with self.assertRaisesRegex(ValueError, "wait= is a number of seconds from 0, not -1"):
            self.client.lock("a", wait=-1)
        with self.assertRaisesRegex(ValueError, "permits= is a number from 1"):
            self.client.lock("a", permits=0)
        with self.assertRaisesRegex(ValueError, "the shortest TTL is 0.5 seconds, not 0.1"):
            doorway.Client(self.node.socket, ttl=0.1)
        with self.assertRaisesRegex(doorway.EndpointError, "tcp:// needs ca=FILE"):
            doorway.Client("tcp://127.0.0.1:1")
        with self.assertRaisesRegex(doorway.Unavailable, "at @nobody-here .*Connection refused"):
            doorway.Client("@nobody-here")

    def test_a_lock_may_be_left_by_another_thread(self) -> None:
        lock = self.client.lock("left")
        entering = threading.Thread(target=lock.__enter__)
        entering.start()
        entering.join()
        lock.__exit__(None, None, None)
        with self.client.lock("left", wait=0):
            pass
        with self.assertRaisesRegex(RuntimeError, "this thread has not entered the lock"):
            lock.__exit__(None, None, None)

    def test_a_coroutine_function_cannot_be_told_of_a_loss(self) -> None:
        async def on_lost(lost: doorway.Lost) -> None:
            self.fail("nobody awaits it")

        with self.assertRaisesRegex(TypeError, "on_lost is a coroutine function"):
            self.client.lock("a", on_lost=on_lost)

    def test_a_function_runs_once_at_a_time(self) -> None:
        running: List[int] = []
        most: List[int] = []

        @self.client.lock("task", wait=60)
        def task(number: int) -> int:
            """Do it."""
            running.append(number)
            most.append(len(running))
            time.sleep(0.005)
            running.remove(number)
            return number

        threads = [threading.Thread(target=task, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((most, task.__doc__), ([1] * 8, "Do it."))

        async def wrong() -> None:
            pass

        with self.assertRaisesRegex(TypeError, "wrong is a coroutine function"):
            self.client.lock("task")(wrong)

    def test_reports_say_who_holds_a_lock(self) -> None:
        with self.client.lock("who"):
            [holder] = self.other.inspect("who").holders
            self.assertIn(f"pid {os.getpid()}", holder.client)
        self.assertEqual(self.client.inspect("who").holders, ())
        self.assertEqual(self.client.status().node, self.client.node)

    def test_an_error_in_the_block_is_not_hidden(self) -> None:
        with self.assertRaises(KeyError):
            with self.client.lock("e"):
                raise KeyError
        with self.other.lock("e", wait=0):
            pass

    def test_a_signal_ends_a_wait_and_withdraws_the_request(self) -> None:
        class Rang(Exception):
            pass

        def ring(*_: object) -> None:
            raise Rang

        before = signal.signal(signal.SIGALRM, ring)
        try:
            with self.other.lock("s"):
                signal.setitimer(signal.ITIMER_REAL, 0.1)
                with self.assertRaises(Rang):
                    self.client.lock("s").acquire()
                until("the request is withdrawn", lambda: self.node.waiters("s") == 0)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        with self.other.lock("s", wait=0):
            pass

    def test_signals_at_any_moment_leave_no_lock_behind(self) -> None:
        class Rang(Exception):
            pass

        def ring(*_: object) -> None:
            raise Rang

        random.seed(1)
        rang = 0
        before = signal.signal(signal.SIGALRM, ring)
        try:
            for number in range(150):
                try:
                    signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00002, 0.001))
                    self.client.lock(f"rang/{number}").acquire().release()
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except Rang:
                    rang += 1
        finally:
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        self.assertGreater(rang, 10)
        for number in range(150):
            with self.other.lock(f"rang/{number}", wait=60):
                pass

    def test_a_grant_that_nobody_uses_is_released(self) -> None:
        grant: Optional[doorway.Grant] = self.client.lock("g").acquire()
        self.assertIsNotNone(grant)
        grant = None
        gc.collect()
        with self.other.lock("g", wait=60):
            pass

    def test_a_client_that_nobody_uses_ends_its_session(self) -> None:
        client: Optional[doorway.Client] = self.node.client()
        assert client is not None
        grant: Optional[doorway.Grant] = client.lock("c").acquire()
        client = None
        gc.collect()
        assert grant is not None
        grant.check()  # The grant keeps its client alive.
        thread = grant._client._thread.thread
        grant = None
        gc.collect()
        until("the thread has ended", lambda: not thread.is_alive())
        with self.other.lock("c", wait=60):
            pass

    def test_a_client_that_is_closed_holds_nothing(self) -> None:
        grant = self.client.lock("d").acquire()
        lock = self.client.lock("d")
        self.client.close()
        self.client.close()
        with self.other.lock("d", wait=60):
            self.assertTrue(grant.is_lost)
        with self.assertRaises(doorway.Unavailable):
            lock.acquire()

    def test_a_lock_that_is_broken_is_lost(self) -> None:
        losses: List[doorway.Lost] = []
        with self.assertRaisesRegex(doorway.Lost, "lost the lock broken with fence") as raised:
            with self.client.lock("broken", on_lost=losses.append) as grant:
                words = ["break", "broken", "--fence", str(grant.fence)]
                self.assertEqual(self.node.run(words), 0)
                until("the loss is noticed", lambda: bool(losses))
                with self.assertRaises(doorway.Lost):
                    grant.check()
        self.assertEqual((losses[0].lock, losses[0].fence), ("broken", grant.fence))
        self.assertEqual(raised.exception.reason, losses[0].reason)

    def test_a_function_that_is_told_of_a_loss_may_fail_and_use_the_client(self) -> None:
        told: List[str] = []

        def tell(lost: doorway.Lost) -> None:
            with self.client.lock("elsewhere", wait=60):
                told.append(lost.lock)
            raise RuntimeError("the test does this")

        with self.assertLogs("doorway", "ERROR"):
            for name in ("one", "two"):
                grant = self.client.lock(name, on_lost=tell).acquire()
                self.node.run(["break", name, "--fence", str(grant.fence)])
                until("the loss is told", lambda: told[-1:] == [name])


if __name__ == "__main__":
    unittest.main()
