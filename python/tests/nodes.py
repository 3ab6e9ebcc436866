"""Real nodes for tests, and processes that use them. DOORWAY is the path of the program."""

import itertools
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
from typing import Callable, List, Optional

import doorway

#: How long a test waits for anything, on a machine that has much else to do, in seconds.
PATIENCE = 60.0

_numbers = itertools.count()


def program() -> str:
    """The program under test."""
    return os.environ.get("DOORWAY") or shutil.which("doorway") or "doorway"


def _is_stopped(pid: int) -> bool:
    """Have all threads of a process stopped?"""
    stats = pathlib.Path(f"/proc/{pid}/task").glob("*/stat")
    # After the name, which is in parentheses, comes the state.
    return all(stat.read_text().rsplit(") ", 1)[1].startswith("T") for stat in stats)


def until(what: str, is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > end:
            raise AssertionError(f"not within {PATIENCE} s: {what}")
        time.sleep(0.005)


def boot_time() -> float:
    """The clock that all processes of this machine share."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def skip(test: unittest.TestCase, why: str) -> None:
    """Skip this test. With CI=true that is a failure; otherwise ``cargo xtask test`` shows it."""
    if os.environ.get("CI") == "true":
        raise AssertionError(f"with CI=true every test must run, but {why}")
    if os.environ.get("DOORWAY_SKIPPED"):
        with open(os.environ["DOORWAY_SKIPPED"], "a", encoding="utf-8") as skipped:
            skipped.write(f"{test.id()}\t{why}\n")
    test.skipTest(why)


class Node:
    """A node of a test's own."""

    def __init__(self, settings: Optional[str] = None) -> None:
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="doorway-python-"))
        name = f"doorway-python-{os.getpid()}-{next(_numbers)}"
        self.socket = f"@{name}"
        self._settings = settings
        self._process: "Optional[subprocess.Popen[bytes]]" = None

    def start(self) -> "Node":
        """Start the node, and wait until it listens."""
        words = [program(), "serve", "--socket", self.socket, "--data", str(self.directory / "data")]
        if self._settings is None:
            words.append("--local")
        else:
            file = self.directory / "doorway.toml"
            file.write_text(self._settings)
            words += ["--config", str(file)]
        with open(self.directory / "log", "ab") as log:
            self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until("the node listens", self._listens)
        return self

    def _listens(self) -> bool:
        assert self._process is not None and self._process.poll() is None, self.log()
        with socket.socket(socket.AF_UNIX) as sock:
            return sock.connect_ex("\0" + self.socket[1:]) == 0

    def log(self) -> str:
        """What the node has written."""
        return (self.directory / "log").read_text()

    def run(self, words: List[str]) -> int:
        """Run the program with these words at this node. Returns its exit code."""
        done = subprocess.run([program(), *words, "--socket", self.socket], check=False)
        return done.returncode

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the node. After SIGSTOP, wait until all its threads have stopped."""
        assert self._process is not None
        self._process.send_signal(number)
        pid = self._process.pid
        if number == signal.SIGSTOP:
            until("it has stopped", lambda: _is_stopped(pid))

    def kill(self) -> None:
        """Kill the node, as in a crash."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """Stop the node as an operator does, and wait until it has ended."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(PATIENCE)
        self._process = None

    def end(self) -> None:
        """Kill the node, and remove what it has written."""
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def client(
        self, ttl: Optional[float] = None, patience: float = PATIENCE, keep: bool = False
    ) -> doorway.Client:
        """A client of this node."""
        return doorway.Client(self.socket, ttl=ttl, patience=patience, keep=keep)

    def script(self, text: str) -> "Script":
        """A process that runs this text, with this node as its default."""
        return Script(text, {"DOORWAY_SOCKET": self.socket})

    def waiters(self, lock: str) -> int:
        """How many requests wait for a lock."""
        with self.client() as client:
            return len(client.inspect(lock).waiters)


class Script:
    """A Python process. It talks to the test in lines."""

    def __init__(self, text: str, variables: "dict[str, str]", **options: "int | List[int]") -> None:
        source = str(pathlib.Path(doorway.__file__).parents[1])
        environment = {**os.environ, "PYTHONPATH": source, **variables}
        words = [sys.executable, "-X", "dev", "-c", textwrap.dedent(text)]
        self.process: "subprocess.Popen[str]" = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
            **options,  # type: ignore[call-overload]
        )

    def line(self) -> str:
        """The next line that the process prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def tell(self, text: str) -> None:
        """Send a line to the process."""
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def end(self) -> int:
        """Wait until the process has ended, and return its exit code."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        return code


class Tap:
    """A Unix socket that passes everything on to a node, and counts the bytes that clients send."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.socket = f"{node.socket}-tap"
        self.bytes = 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind("\0" + self.socket[1:])
        self._listener.listen()
        self._sockets: List[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect("\0" + self._node.socket[1:])
            self._sockets += [near, far]
            for one, other in ((near, far), (far, near)):
                args = (one, other, one is near)
                threading.Thread(target=self._pump, args=args, daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket, counts: bool) -> None:
        try:
            while True:
                received = one.recv(65536)
                if not received:
                    return other.shutdown(socket.SHUT_WR)
                self.bytes += len(received) if counts else 0
                other.sendall(received)
        except OSError:
            return

    def close(self) -> None:
        """End all connections."""
        for sock in self._sockets:
            sock.close()


class Proxy:
    """A network between clients and a node, which can be cut: it then loses every byte and every
    attempt to connect, without telling either side."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.is_cut = False
        self._sockets: List[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._to))
            self._sockets += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while True:
                received = one.recv(65536)
                if self.is_cut:
                    continue
                if not received:
                    return other.shutdown(socket.SHUT_WR)
                other.sendall(received)
        except OSError:
            return

    def close(self) -> None:
        """End the network."""
        self._listener.close()
        for sock in self._sockets:
            sock.close()


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
