"""The asyncio client, with a real node."""

import asyncio
import signal
import unittest
from typing import List

import doorway
import doorway.aio
from nodes import PATIENCE, Node


async def nobody_waits(client: doorway.aio.Client, lock: str) -> None:
    """Wait until no request waits for a lock."""
    while (await client.inspect(lock)).waiters:
        await asyncio.sleep(0.005)


class Asyncio(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.node = Node().start()
        self.addCleanup(self.node.end)

    def client(self, ttl: "float | None" = None) -> doorway.aio.Client:
        return doorway.aio.Client(self.node.socket, ttl=ttl, patience=PATIENCE)

    async def test_locks_of_every_kind(self) -> None:
        async with self.client() as client, self.client() as other:
            async with client.lock("a", wait=30) as first:
                first.check()
                self.assertIsNone(await other.try_lock("a"))
                with self.assertRaises(doorway.NotFree):
                    async with other.lock("a", wait=0.1):
                        self.fail("the lock is held")
                self.assertEqual(len((await other.inspect("a")).holders), 1)
            async with other.lock("a") as second:
                self.assertGreater(second.fence, first.fence)
            async with client.lock("r", shared=True), other.lock("r", shared=True, wait=30):
                pass
            async with client.lock_all(["y", "x"], wait=30) as grants:
                self.assertEqual(list(grants), ["x", "y"])
                with self.assertRaises(doorway.NotFree):
                    await other.lock_all(["w", "y"], wait=0).acquire()
            async with other.lock_all(["w", "y"], wait=0):
                pass
            self.assertEqual((await client.status()).node, client.node)

    async def test_tasks_take_turns(self) -> None:
        running: List[int] = []
        async with self.client() as client:

            @client.lock("task", wait=60)
            async def task(number: int) -> None:
                running.append(number)
                self.assertEqual(running, [number])
                await asyncio.sleep(0.002)
                running.remove(number)

            await asyncio.gather(*(task(number) for number in range(20)))
            with self.assertRaisesRegex(TypeError, "is not a coroutine function"):
                client.lock("task")(print)  # type: ignore[type-var]

    async def test_a_task_that_is_cancelled_withdraws_its_request(self) -> None:
        async with self.client() as client, self.client() as other:
            async with other.lock("a"):
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(client.lock("a").acquire(), 0.1)
                await asyncio.wait_for(nobody_waits(client, "a"), PATIENCE)
            # A grant that comes at the moment of the cancellation is given back.
            for delay in range(20):
                waiting = asyncio.ensure_future(client.lock("b").acquire())
                await asyncio.sleep(delay / 20_000)
                waiting.cancel()
                try:
                    await (await waiting).release()
                except asyncio.CancelledError:
                    pass
            async with other.lock("b", wait=60):
                pass

    async def test_a_crash_of_the_node_costs_nothing_and_its_silence_the_lock(self) -> None:
        async with self.client() as client, self.client(ttl=1) as leased:
            lost: "asyncio.Future[doorway.Lost]" = asyncio.get_running_loop().create_future()
            async with client.lock("a") as grant:
                self.node.kill()
                self.node.start()
                async with client.lock("b", wait=60):
                    grant.check()
            other = await leased.lock("c", on_lost=lost.set_result).acquire()
            self.node.signal(signal.SIGSTOP)
            self.assertEqual((await asyncio.wait_for(lost, PATIENCE)).lock, "c")
            with self.assertRaises(doorway.Lost):
                await other.release()
            self.node.signal(signal.SIGCONT)

    async def test_a_task_that_is_cancelled_while_it_leaves_keeps_nothing(self) -> None:
        async with self.client() as client, self.client() as other:
            grants = await client.lock_all(["a", "b", "c"]).acquire()
            await client.lock("d").acquire()  # Nobody keeps this grant.
            scope = client.lock_all(["e", "f", "g"])

            async def leave() -> None:
                async with scope:
                    self.node.signal(signal.SIGSTOP)

            leaving = asyncio.ensure_future(leave())
            await asyncio.sleep(0.1)
            leaving.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await leaving
            self.node.signal(signal.SIGCONT)
            async with other.lock_all(["d", "e", "f", "g"], wait=30):
                self.assertEqual(len(grants), 3)
                self.assertIsNone(await other.try_lock("a"))

    async def test_a_lock_may_be_left_by_another_task(self) -> None:
        async with self.client() as client:
            lock = client.lock("a")
            await asyncio.ensure_future(lock.__aenter__())
            await lock.__aexit__(None, None, None)
            async with client.lock("a", wait=0):
                pass
            with self.assertRaisesRegex(RuntimeError, "this task has not entered the lock"):
                await lock.__aexit__(None, None, None)

    async def test_a_coroutine_is_told_of_a_loss(self) -> None:
        told: "asyncio.Future[doorway.Lost]" = asyncio.get_running_loop().create_future()

        async def on_lost(lost: doorway.Lost) -> None:
            await asyncio.sleep(0)
            told.set_result(lost)

        async with self.client() as client:
            grant = await client.lock("a", on_lost=on_lost).acquire()
            words = ["break", "a", "--fence", str(grant.fence)]
            self.assertEqual(await asyncio.to_thread(self.node.run, words), 0)
            self.assertEqual((await asyncio.wait_for(told, 30)).lock, "a")

    async def test_mistakes_are_errors(self) -> None:
        with self.assertRaisesRegex(RuntimeError, "is not open"):
            await self.client().status()
        with self.assertRaises(doorway.Unavailable):
            async with doorway.aio.Client("@nobody-here"):
                pass


class Whole(unittest.TestCase):
    def test_a_lock_with_a_session_of_its_own(self) -> None:
        node = Node().start()
        self.addCleanup(node.end)
        script = node.script(
            """
            import asyncio, doorway, doorway.aio
            async def main():
                async with doorway.aio.lock("a", wait=30) as grant:
                    grant.check()
                    async with doorway.aio.Client() as client:
                        print(await client.try_lock("a"), flush=True)
                async with doorway.aio.lock_all(["a", "b"], wait=30) as grants:
                    print(sorted(grants), flush=True)
            asyncio.run(main(), debug=True)
            """
        )
        self.assertEqual([script.line(), script.line()], ["None", "['a', 'b']"])
        self.assertEqual(script.end(), 0)


if __name__ == "__main__":
    unittest.main()
