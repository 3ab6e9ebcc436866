"""What holders learn when nodes and processes are killed or stopped, and when processes fork."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import textwrap
import threading
import time
import unittest
from typing import List

import doorway
from nodes import PATIENCE, Node, boot_time, program, skip, until


class Faults(unittest.TestCase):
    def setUp(self) -> None:
        self.node = Node().start()
        self.addCleanup(self.node.end)

    def test_a_lock_survives_a_crash_of_its_node(self) -> None:
        with self.node.client() as client, self.node.client(ttl=30) as leased:
            losses: List[doorway.Lost] = []
            with client.lock("a", on_lost=losses.append) as grant, leased.lock("b") as other:
                self.node.kill()
                grant.check()
                self.node.start()
                with self.node.client() as third:
                    self.assertIsNone(third.try_lock("a"))
                    self.assertIsNone(third.try_lock("b"))
                    [holder] = third.inspect("a").holders
                self.assertEqual(holder.fence, grant.fence)
                grant.check()
                other.check()
            self.assertEqual(losses, [])
            with client.lock("a", wait=60) as again:
                self.assertGreater(again.fence, grant.fence)

    def test_a_request_waits_for_a_node_that_comes_back(self) -> None:
        with self.node.client() as client, self.node.client() as other:
            with other.lock("a"):
                entered = threading.Event()

                def enter() -> None:
                    with client.lock("a"):
                        entered.set()

                thread = threading.Thread(target=enter)
                thread.start()
                until("the request waits", lambda: self.node.waiters("a") == 1)
                self.node.kill()
                self.node.start()
                self.assertFalse(entered.is_set())
            thread.join(PATIENCE)
            self.assertTrue(entered.is_set())

    def test_a_silent_node_costs_the_lock_by_our_own_clock(self) -> None:
        with self.node.client(ttl=1) as client:
            lost: List[float] = []
            grant = client.lock("a", on_lost=lambda _: lost.append(boot_time())).acquire()
            left = grant.remaining()
            assert left is not None and left <= 0.95
            self.node.signal(signal.SIGSTOP)
            stopped = boot_time()
            until("the lock may be lost soon", lambda: grant.state is not doorway.State.HELD)
            until("the lock is lost", lambda: bool(lost))
            self.assertLess(lost[0] - stopped, 30)
            with self.assertRaisesRegex(doorway.Lost, "nothing was heard of the node for"):
                grant.release()
            self.node.signal(signal.SIGCONT)
            with client.lock("a", wait=60) as again:
                self.assertGreater(again.fence, grant.fence)

    def test_a_node_that_hangs_is_noticed_without_a_ttl(self) -> None:
        with self.node.client(patience=1) as client:
            grant = client.lock("a").acquire()
            self.node.signal(signal.SIGSTOP)
            with self.assertRaisesRegex(doorway.Unavailable, "no node answered within"):
                client.try_lock("b")
            with self.assertRaisesRegex(doorway.Unavailable, "no node answered within"):
                client.inspect("a")
            self.assertIs(grant.state, doorway.State.HELD)
            with self.assertRaises(doorway.ReleaseUnknown):
                grant.release()
            self.node.signal(signal.SIGCONT)
            with self.node.client() as other, other.lock_all(["a", "b"], wait=30):
                pass

    def test_a_process_that_is_stopped_beyond_its_ttl_has_lost(self) -> None:
        script = self.node.script(
            """
            import doorway, sys, threading
            client = doorway.Client(ttl=1)
            told = threading.Event()
            grant = client.lock("a", on_lost=lambda lost: told.set()).acquire()
            print(grant.fence, flush=True)
            sys.stdin.readline()
            try:
                grant.check()
                print("held")
            except doorway.Lost as lost:
                print("lost", told.wait(60))
            """
        )
        fence = int(script.line())
        script.process.send_signal(signal.SIGSTOP)
        with self.node.client() as client, client.lock("a", wait=60) as grant:
            self.assertGreater(grant.fence, fence)
            script.tell("go on")
            script.process.send_signal(signal.SIGCONT)
            self.assertEqual(script.line(), "lost True")
        self.assertEqual(script.end(), 0)

    def test_a_process_that_is_killed_holds_nothing(self) -> None:
        script = self.node.script(
            """
            import doorway, sys
            with doorway.lock("a"):
                print("inside", flush=True)
                sys.stdin.readline()
            """
        )
        self.assertEqual(script.line(), "inside")
        with self.node.client() as client:
            self.assertIsNone(client.try_lock("a"))
            script.process.kill()
            with client.lock("a", wait=60):
                pass
        script.end()

    def test_a_program_that_ends_leaves_nothing_behind(self) -> None:
        script = self.node.script(
            """
            import doorway
            grant = doorway.lock("a").acquire()
            print("inside", flush=True)
            """
        )
        self.assertEqual((script.line(), script.end()), ("inside", 0))
        with self.node.client() as client, client.lock("a", wait=60):
            pass

    def test_a_forked_process_does_not_use_the_session_of_its_parent(self) -> None:
        script = self.node.script(
            """
            import doorway, os, sys
            client = doorway.Client()
            with doorway.lock("a") as grant:
                child = os.fork()
                if child == 0:
                    for refused in (grant.check, grant.release, client.lock("b").acquire):
                        try:
                            refused()
                            print("no error", flush=True)
                        except doorway.Forked:
                            print("Forked", flush=True)
                    client.close()
                    print(grant.is_lost, doorway.try_lock("a"), flush=True)
                    with doorway.lock("b", wait=60) as own:
                        print("own", own.is_lost, flush=True)
                    # The block of the parent's lock ends here too.
                else:
                    os.waitpid(child, 0)
                    grant.check()
                    print("parent holds", doorway.Client().try_lock("a"), flush=True)
            if child == 0:
                os._exit(0)
            print("parent leaves", grant.is_lost, flush=True)
            """
        )
        lines = [script.line() for _ in range(7)]
        self.assertEqual(script.end(), 0)
        expected = ["Forked", "Forked", "Forked", "True None", "own False", "parent holds None"]
        self.assertEqual(lines, [*expected, "parent leaves True"])

    def test_a_forked_process_does_not_keep_the_locks_of_its_parent(self) -> None:
        script = self.node.script(
            """
            import doorway, os, sys, signal
            with doorway.lock("a"):
                child = os.fork()
                if child == 0:
                    signal.pause()
                print(child, flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            """
        )
        child = int(script.line())
        try:
            with self.node.client() as client, client.lock("a", wait=60):
                os.kill(child, 0)  # It is alive, and holds nothing.
        finally:
            os.kill(child, signal.SIGKILL)
            script.end()

    def test_processes_take_turns_while_the_node_is_killed(self) -> None:
        log = self.node.directory / "entries"
        worker = f"""
            import doorway, time
            client = doorway.Client(patience=60)
            print("open", flush=True)
            for _ in range(25):
                with client.lock("turn", wait=60) as grant:
                    begin = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
                    grant.check()
                    end = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
                    with open({str(log)!r}, "a") as file:
                        file.write(f"{{begin}} {{end}} {{grant.fence}}\\n")
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
        self.assertEqual(len(entries), 100)
        entries.sort()
        for (_, end, fence), (begin, _, next_fence) in zip(entries, entries[1:]):
            self.assertLess(end, begin)
            self.assertLess(fence, next_fence)


class Start(unittest.TestCase):
    """The node of a user is started when it is needed. It depends on the user ID alone, so the tests
    run under a user ID that nobody has."""

    def setUp(self) -> None:
        if os.geteuid() != 0 or os.path.isdir("/etc/doorway"):
            skip(self, "it needs root, and a machine without /etc/doorway")
        self.user = 3_000_000 + os.getpid() % 1_000_000
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="doorway-python-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.addCleanup(shutil.rmtree, f"/var/tmp/doorway-{self.user}", ignore_errors=True)
        self.directory.chmod(0o755)
        # Neither the package nor the interpreter may be where another user can read them.
        shutil.copytree(pathlib.Path(doorway.__file__).parent, self.directory / "doorway")
        self.python = next((one for one in ("/usr/bin/python3",) if os.access(one, os.X_OK)), "")
        if not self.python:
            skip(self, "it needs /usr/bin/python3, which every user may run")

    def run_as(self, text: str, path: str) -> str:
        done = subprocess.run(
            [self.python, "-c", textwrap.dedent(text)],
            env={"PATH": path, "PYTHONPATH": str(self.directory), "PYTHONDONTWRITEBYTECODE": "1"},
            cwd="/",
            user=self.user,
            group=self.user,
            extra_groups=[],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.stdout

    def test_the_node_of_a_user_is_started_once(self) -> None:
        missing = self.run_as("import doorway; doorway.Client()", str(self.directory / "bin"))
        self.assertIn("no program `doorway` is in PATH", missing)
        self.assertIn("doorway.errors.Unavailable", missing)
        binaries = self.directory / "bin"
        binaries.mkdir()
        # A symbolic link would not help a user who may not read the directory of the program.
        subprocess.run(["cp", program(), str(binaries / "doorway")], check=True)
        text = """
            import doorway
            with doorway.lock("a", wait=30) as grant:
                print(doorway.Client().status().pid, grant.fence)
            """
        (pid, first), (again, second) = (
            self.run_as(text, str(binaries)).split() for _ in range(2)
        )
        try:
            self.assertEqual(pid, again)
            self.assertGreater(int(second), int(first))
        finally:
            os.kill(int(pid), signal.SIGTERM)


if __name__ == "__main__":
    unittest.main()
