"""The machine does what the machine of the Rust client did, step by step, and other tests of parts
that need no node."""

import ast
import pathlib
import threading
import unittest

from doorway import _endpoint, _wire as wire
from doorway import _machine as machine
from doorway._clock import MS, NEVER, LeaseClock, now
from doorway._lease import UNLIMITED
from doorway._machine import SessionMachine, Setup
from doorway.errors import EndpointError

REPOSITORY = pathlib.Path(__file__).parents[2]
TRACE = REPOSITORY / "crates/doorway-client/tests/golden/machine.txt"


def camel(value: "wire.Code | wire.Scope") -> str:
    """The name of a variant, as Rust writes it."""
    return value.name.title().replace("_", "")


def line(event: machine.Event) -> str:
    """An event in one line, as in the file."""
    if isinstance(event, machine.Welcomed):
        ttl = event.ttl // MS
        session = f"{camel(event.scope)} {event.session} {ttl} {str(event.resumed).lower()}"
        return f"welcomed {event.node} {event.version} {session}"
    if isinstance(event, machine.Stopping):
        return f"stopping {event.within // MS}"
    if isinstance(event, machine.Closed):
        return f"closed {camel(event.refusal.code)} {event.refusal.text}"
    if isinstance(event, (machine.Refused, machine.Unknown)):
        kind = type(event).__name__.lower()
        return f"{kind} {event.number} {camel(event.refusal.code)} {event.refusal.text}"
    if isinstance(event, machine.Answer):
        if isinstance(event.report, wire.LockReport):
            return f"answer {event.number} lock {event.report.lock}"
        if isinstance(event.report, wire.NodeStatus):
            return f"answer {event.number} status {event.report.node}"
        return f"answer {event.number}"
    if isinstance(event, machine.Released):
        return f"released {event.number} {str(event.held).lower()}"
    return " ".join([type(event).__name__.lower(), *map(str, event)])


def start(words: "list[str]") -> SessionMachine:
    ttl, patience, nodes = map(int, words[:3])
    who = wire.ClientInfo("x", "h", 7)
    return SessionMachine(Setup(who, None, ttl * MS, patience * MS, nodes, words[3:] == ["keep"]), 0)


def step(one: SessionMachine, now: int, words: "list[str]") -> None:
    """Give an input to the machine."""
    kind, rest = words[0], words[1:]
    if kind == "cannot":
        one.cannot_connect(rest[0], " ".join(rest[1:]))
    elif kind == "connect":
        one.connected_to(now, rest[0], rest[1] == "true")
    elif kind == "disconnect":
        one.disconnected(now)
    elif kind == "receive":
        one.receive(now, bytes.fromhex(rest[0]))
    elif kind == "acquire":
        lock, shared, permits, wait = rest
        mode = wire.Mode.SHARED if shared == "true" else wire.Mode.EXCLUSIVE
        count = None if permits == "-" else int(permits)
        time = {"no": wire.Wait.NO, "forever": wire.Wait.FOREVER}.get(wait)
        one.acquire(now, wire.Ask(lock, mode, count, int(wait) if time is None else time))
    elif kind == "withdraw":
        one.withdraw(int(rest[0]))
    elif kind == "release":
        one.release(now, rest[0], int(rest[1]))
    elif kind == "inspect":
        one.inspect(now, rest[0])
    elif kind == "holder":
        if one.take_holder() is not None:
            one.show_holder(now)
    elif kind in ("status", "tick"):
        getattr(one, kind)(now)
    elif kind == "bye":
        one.bye()
    else:
        raise ValueError(f"unknown input {words}")


def outcome(one: SessionMachine, now: int) -> str:
    """What the machine wants and sends, as in the file."""
    flags = [
        one.wants_connection,
        one.must_close,
        one.is_talking,
        one.is_bound(),
        one.is_turned_away,
    ]
    bits = "".join("1" if flag else "0" for flag in flags)
    state = "lost" if one.session is None else one.session.state(now).value
    deadline = one.deadline()
    shown = "-" if deadline is None else str(deadline)
    sent = bytes(one.outgoing).hex()
    one.outgoing.clear()
    return f"= {one.next_due()} {bits} {state} {shown} {sent}"


class Trace(unittest.TestCase):
    def test_the_machine_does_what_the_rust_machine_did(self) -> None:
        one, now, machines = start(["1", "1", "1"]), 0, 0
        for number, text in enumerate(TRACE.read_text(encoding="utf-8").splitlines(), 1):
            words = text.split(" ")
            with self.subTest(line=number):
                if words[0] == "machine":
                    one = start(words[1:])
                    machines += 1
                elif words[0] == "=":
                    self.assertEqual(outcome(one, now), text)
                elif words[0] == "!":
                    self.assertEqual("! " + line(one.events.popleft()), text)
                else:
                    self.assertFalse(one.events, "an event that the Rust machine did not have")
                    now = int(words[0])
                    step(one, now, words[1:])
        self.assertGreaterEqual(machines, 52)


class Parts(unittest.TestCase):
    def test_a_slewed_clock_never_slows_a_holder(self) -> None:
        for rates in ([917], [1083], [917, 1083], [1000, 900, 1100]):
            clock, boot, raw = LeaseClock(), 5, 7
            begin = clock.read(lambda: (boot, raw))
            for index in range(500):
                boot += 20 * MS * rates[index % len(rates)] // 1000
                raw += 20 * MS
                clock.read(lambda: (boot, raw))
            self.assertGreaterEqual(clock.read(lambda: (boot, raw)) - begin, 10_000 * MS)

    def test_a_holder_counts_the_time_in_which_its_machine_is_suspended(self) -> None:
        clock, hour = LeaseClock(), 3_600_000 * MS
        begin = clock.read(lambda: (1, 1))
        self.assertEqual(clock.read(lambda: (1 + hour, 1)) - begin, hour)

    def test_moments_of_threads_never_go_back(self) -> None:
        moments: "list[int]" = []
        wrong: "list[int]" = []

        def read() -> None:
            for _ in range(5000):
                before = moments[-1] if moments else 0
                moment = now()
                if moment < before:
                    wrong.append(before - moment)
                moments.append(moment)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((wrong, len(moments)), ([], 20_000))

    def test_without_a_ttl_nothing_expires(self) -> None:
        one = start([str(UNLIMITED // MS), "1000", "1"])
        self.assertIsNone(one.deadline())
        self.assertEqual(one.next_due(), NEVER)

    def test_endpoints_are_written_as_they_are_parsed(self) -> None:
        for text in ("/run/doorway/socket", "@name", "tcp://north:7000", "tcp://[::1]:7000"):
            self.assertEqual(str(_endpoint.parse_one(text)), text)
        self.assertEqual(len(_endpoint.parse("@a,@b,@a")), 2)
        wrong = ["", "@", "tcp://", "tcp://north", "tcp://north:", "tcp://north:0", "a\0b"]
        wrong += ["tcp://north:70000", "tcp://:7000", "tcp://::1:7000", "http://north:80", "x" * 108]
        for text in [*wrong, "@a,", ",@a"]:
            with self.assertRaisesRegex(EndpointError, "give a path, @name or tcp://host:port$"):
                _endpoint.parse(text)

    def test_the_configuration_of_a_machine_names_its_socket(self) -> None:
        def socket(text: str) -> str:
            return str(_endpoint.configured(text, "/etc/doorway"))

        self.assertEqual(socket("# nothing\n"), "/run/doorway/socket")
        self.assertEqual(socket(' socket="/x" # y\n'), "/x")
        self.assertEqual(socket("socket = 'relative'"), "/etc/doorway/relative")
        self.assertEqual(socket('socket = "@a"'), "@a")
        self.assertEqual(socket('[http]\nsocket = "/x"'), "/run/doorway/socket")
        self.assertEqual(socket('socket = "tcp://a:1"'), "/run/doorway/socket")

    def test_names_are_checked(self) -> None:
        wire.check_name("über/uns")
        for name in ("", "a\n", "x" * 201, "\ud800"):
            with self.assertRaises(ValueError):
                wire.check_name(name)

    def test_every_file_is_python_3_9(self) -> None:
        files = sorted((REPOSITORY / "python").glob("*/**/*.py"))
        self.assertGreater(len(files), 10)
        for file in files:
            ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 9))


if __name__ == "__main__":
    unittest.main()
