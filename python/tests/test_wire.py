"""The bytes of messages are those of the Rust crate, which keeps them in a file."""

import pathlib
import random
import unittest
from typing import Any, Dict, List

from doorway import _wire as wire
from doorway._wire import Claim, Claims, Code, Mode, Wait

GOLDEN = pathlib.Path(__file__).parents[2] / "crates/doorway-protocol/tests/golden/version_1.txt"

FENCE = 3 << 40 | 77

#: The messages of a node whose names no request has.
REPLIES = "Granted Refused Released Lock Done Lost Stopping Kept Wanted".split()


def golden() -> "Dict[str, bytes]":
    """The frames in the file, by the text of their values."""
    lines = GOLDEN.read_text(encoding="utf-8").splitlines()
    return {text: bytes.fromhex(hexadecimal) for text, hexadecimal in zip(lines[::2], lines[1::2])}


def debug(value: Any, field: str = "") -> str:
    """A value as Rust's ``Debug`` writes it."""
    if field == "fence":
        return f"{value >> 40}:{value & ((1 << 40) - 1)}"
    if field in ("permits", "view", "session", "place", "token", "reclaiming_ms", "circle"):
        if field == "session" and isinstance(value, tuple):
            return f"Some((SessionId({value[0]}), Secret(..)))"
        if not (field == "permits" and not isinstance(value, int)) and value is not None:
            return f"Some({debug(value)})"
    if value is None:
        return "None"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (Mode, Code, wire.Scope, Wait)):
        return value.name.title().replace("_", "")
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (wire.Refusal, wire.LockReport, wire.NodeStatus, wire.Ask, Claims, Claim)):
        return struct(value)
    if isinstance(value, (wire.Holder, wire.Waiter, wire.Absent, wire.ClientInfo, wire.Kept)):
        return struct(value)
    if hasattr(value, "_fields"):  # A request or a reply.
        fields = (debug(part, name) for part, name in zip(value, value._fields))
        name = {"AskStatus": "Status"}.get(type(value).__name__, type(value).__name__)
        return name + (f"({', '.join(fields)})" if value else "")
    if isinstance(value, tuple):
        return f"[{', '.join(debug(part) for part in value)}]"
    return str(value)


def struct(value: Any) -> str:
    name = type(value).__name__
    fields = (f"{key}: {debug(part, key)}" for key, part in zip(value._fields, value))
    shown = f"{name} {{ {', '.join(fields)} }}"
    # How many permits a lock has is always known.
    report = isinstance(value, wire.LockReport)
    return shown.replace(f"permits: Some({value.permits})", f"permits: {value.permits}") if report else shown


def welcome(value: wire.Welcome) -> str:
    fields = struct(value)
    if value.directory is not None:
        shown = f"Some(DirectoryId({value.directory.hex()}))"
        fields = fields[: fields.index("directory: ")] + f"directory: {shown} }}"
    return f"Ok({fields})"


class Golden(unittest.TestCase):
    def setUp(self) -> None:
        self.golden = golden()

    def test_requests_have_the_bytes_of_the_file(self) -> None:
        def ask(mode: Mode, permits: "int | None", wait: "Wait | int") -> wire.Ask:
            return wire.Ask("deploy", mode, permits, wait)

        requests: "List[Claims | wire.Request]" = [
            wire.Acquire(1, ask(Mode.EXCLUSIVE, None, Wait.FOREVER)),
            wire.Acquire(2, ask(Mode.SHARED, None, Wait.NO)),
            wire.Withdraw(4),
            wire.Release(5, "deploy", FENCE),
            wire.Alive(6),
            wire.Inspect(7, "über/uns"),
            wire.AskStatus(9),
            wire.Bye(),
            wire.Evidence(14),
            wire.InUse("deploy", FENCE),
            Claims((Claim("deploy", Mode.SHARED, 4, FENCE, 9),), (13,), False),
        ]
        for request in requests:
            with self.subTest(request=request):
                self.assertEqual(wire.encode(request), self.golden[debug(request)])
        timed = wire.Acquire(300, ask(Mode.EXCLUSIVE, 3, 2500))
        text = debug(timed).replace("wait: 2500", "wait: Ms(2500)")
        self.assertEqual(wire.encode(timed), self.golden[text])
        keep = wire.Keep(26, ask(Mode.EXCLUSIVE, None, 2000))
        text = debug(keep).replace("wait: 2000", "wait: Ms(2000)")
        self.assertEqual(wire.encode(keep), self.golden[text])

    def test_greetings_have_the_bytes_of_the_file(self) -> None:
        who = wire.ClientInfo("backup.sh", "north", 77)
        claims = Claims((Claim("deploy", Mode.SHARED, 4, FENCE, 9),), (11, 12), True)
        texts = list(self.golden)
        new = [text for text in texts if "New {" in text and "inherited: false" in text]
        old = [text for text in texts if "Resume { node: None" in text]
        named = [text for text in texts if "Resume { node: Some" in text]
        node = wire.NodeIdentity("one", b"\x09" * 16)
        secret = b"\x07" * 16
        for found, opening in (
            (new, wire.New(500)),
            (old, wire.Resume(None, 5, secret, 10_000, claims, True)),
            (named, wire.Resume(node, 5, secret, 10_000, claims, True)),
        ):
            [text] = found
            self.assertIn("Connection {", text)
            hello = wire.Hello((1, 1), who, "sesame", opening)
            self.assertEqual(wire.encode(hello), self.golden[text])

    def test_every_message_of_a_node_is_read(self) -> None:
        replies = greetings = 0
        for text, frame in self.golden.items():
            kind = text.split("(")[0]
            if kind in ("Ok", "Err"):
                greeting = wire.decode_greeting(frame[4:])
                shown = f"Err({struct(greeting)})"
                if isinstance(greeting, wire.Welcome):
                    shown = welcome(greeting)
                self.assertEqual(shown, text)
                greetings += 1
            elif kind.split(" ")[0] in REPLIES or (
                text == "Alive(4)" or kind == "Status" and "NodeStatus" in text
            ):
                self.assertEqual(debug(wire.decode_reply(frame[4:])), text)
                replies += 1
        self.assertEqual((replies, greetings), (19, 3))

    def test_garbage_is_refused_and_nothing_else_happens(self) -> None:
        random.seed(1)
        frames = list(self.golden.values())
        for _ in range(20_000):
            frame = bytearray(random.choice(frames)[4:])
            if frame and random.random() < 0.9:
                frame[random.randrange(len(frame))] = random.randrange(256)
            frame = frame[: random.randrange(len(frame) + 1)]
            for decode in (wire.decode_greeting, wire.decode_reply):
                try:
                    decode(bytes(frame))
                except wire.FrameError:
                    pass

    def test_frames_arrive_in_any_pieces(self) -> None:
        frame = wire.encode(wire.Alive(300))
        for cut in range(len(frame) + 1):
            frames = wire.Frames()
            frames.feed(frame[:cut])
            self.assertEqual(frames.take(), frame[4:] if cut == len(frame) else None)
            frames.feed(frame[cut:] + frame)
            taken = [frames.take(), frames.take(), frames.take()]
            whole = 1 if cut == len(frame) else 2
            self.assertEqual([one for one in taken if one], [frame[4:]] * whole)

    def test_a_frame_that_is_too_long_is_refused_before_it_arrives(self) -> None:
        frames = wire.Frames()
        frames.feed((wire.MAX_FRAME + 1).to_bytes(4, "little"))
        with self.assertRaisesRegex(wire.FrameError, "a frame of 262145 bytes"):
            frames.take()


if __name__ == "__main__":
    unittest.main()
