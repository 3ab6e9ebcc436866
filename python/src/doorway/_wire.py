"""The messages of a session and their frames, as bytes.

A frame is the length of its content in four bytes, the lowest first, and then the content. The
content is one value, encoded as the Rust crate postcard does it: numbers as LEB128, texts and lists
with their length in front, enums with the number of their variant.

Only the messages that this package sends or receives are here. The file
crates/doorway-protocol/tests/golden/version_1.txt has the bytes of all messages, and a test compares
both languages with it.
"""

from __future__ import annotations

import enum
import unicodedata
from typing import Callable, List, NamedTuple, Optional, Tuple, TypeVar, Union

#: The first bytes of a connection.
MAGIC = b"\0doorway"
#: The maximum length of the content of a frame, in bytes.
MAX_FRAME = 1 << 18
#: The lowest and the highest version of the protocol that this package speaks.
VERSIONS = (1, 6)
#: How many grants, and as many requests, fit into a frame whatever the lengths of their names.
MAX_CLAIMS = 1000
#: The maximum length of the name of a lock, in bytes.
MAX_NAME = 200
#: The highest fence.
MAX_FENCE = (1 << 63) - 1
#: The version of the protocol since which a welcome tells the data directory of the node.
_DIRECTORY = 3

T = TypeVar("T")


class FrameError(Exception):
    """Received bytes that cannot be understood. The connection must be closed."""


class Mode(enum.IntEnum):
    """How a lock is held."""

    EXCLUSIVE = 0
    SHARED = 1


class Scope(enum.IntEnum):
    """Who shares the locks of a node."""

    #: The processes of one user on one machine.
    USER = 0
    #: All users of one machine who may use its node.
    MACHINE = 1
    #: All clients of a group of nodes.
    CLUSTER = 2


class Code(enum.IntEnum):
    """Why a request was refused."""

    #: The request is not valid.
    INVALID = 0
    #: The client has no right to do that.
    FORBIDDEN = 1
    #: The client has reached a limit of the node.
    BUSY = 2
    #: The lock was not free, or did not become free in time.
    NOT_FREE = 3
    #: The lock cannot be held in that way: not shared, or not with that number of permits.
    NOT_SERVED = 4
    #: The session or the grant does not exist any more.
    GONE = 5
    #: No node serves this client now, or the node does not grant locks yet.
    UNAVAILABLE = 6
    #: The lock is out of order until the next view begins.
    BROKEN = 7
    #: The session is one of another node, which may still keep it.
    ELSEWHERE = 8


class Wait(enum.Enum):
    """How long to wait for a lock, if not for a number of milliseconds."""

    #: Only for the answers of other nodes, but not for a client that holds the lock.
    NO = 0
    #: For as long as it takes.
    FOREVER = 2


class Refusal(NamedTuple):
    """Why a node does not do what a client asked for. The request has changed nothing."""

    code: Code
    text: str


class NodeIdentity(NamedTuple):
    """Which node gave a session."""

    name: str
    directory: bytes


class ClientInfo(NamedTuple):
    """A description of a client, shown to people who ask who holds a lock."""

    label: str
    host: str
    pid: int


class Claim(NamedTuple):
    """A grant that a client believes it holds."""

    lock: str
    mode: Mode
    permits: Optional[int]
    fence: int
    request: int


class Claims(NamedTuple):
    """More of what a client claims when it resumes a session, if one frame cannot hold it all."""

    held: Tuple[Claim, ...]
    waiting: Tuple[int, ...]
    more: bool


class New(NamedTuple):
    """The wish to open a session that ends with its connection."""

    ttl_ms: int
    #: True if other processes may have inherited the connection. This package never says so.
    inherited: bool = False


class Resume(NamedTuple):
    """The wish to resume the session that the client had before its connection broke."""

    node: Optional[NodeIdentity]
    session: int
    secret: bytes
    ttl_ms: int
    claims: Claims
    inherited: bool = False


class Hello(NamedTuple):
    """The first message of a client."""

    versions: Tuple[int, int]
    who: ClientInfo
    token: Optional[str]
    opening: Union[New, Resume]


class Welcome(NamedTuple):
    """The answer of a node to a client that it serves."""

    version: int
    node: str
    scope: Scope
    session: Optional[Tuple[int, bytes]]
    ttl_ms: int
    lost: Tuple[Claim, ...]
    directory: Optional[bytes]


class Ask(NamedTuple):
    """Which lock a client wants, and how."""

    lock: str
    mode: Mode
    permits: Optional[int]
    #: In milliseconds, if it is a number.
    wait: Union[Wait, int]


class Acquire(NamedTuple):
    """Acquire a lock."""

    number: int
    ask: Ask


class Withdraw(NamedTuple):
    """Withdraw the request with this number."""

    number: int


class Release(NamedTuple):
    """Release the grant with this fence."""

    number: int
    lock: str
    fence: int


class Alive(NamedTuple):
    """A heartbeat, and the answer to one."""

    number: int


class Inspect(NamedTuple):
    """Report about a lock."""

    number: int
    lock: str


class AskStatus(NamedTuple):
    """Report about the node."""

    number: int


class Bye(NamedTuple):
    """End the session."""


class Evidence(NamedTuple):
    """Look for the socket that the processes of this session hold open."""

    number: int


class Keep(NamedTuple):
    """Acquire a lock, and keep it after the client has left it, until somebody else wants it."""

    number: int
    ask: Ask


class InUse(NamedTuple):
    """The client is inside with this grant, which it was told is wanted, and will release it."""

    lock: str
    fence: int


Request = Union[
    Acquire, Withdraw, Release, Alive, Inspect, AskStatus, Bye, Evidence, Keep, InUse
]


class Granted(NamedTuple):
    """The client holds the lock now."""

    number: int
    fence: int


class Refused(NamedTuple):
    """The request was refused."""

    number: int
    refusal: Refusal


class Released(NamedTuple):
    """The grant is not held any more. It was held until now if ``held`` is true."""

    number: int
    held: bool


class Done(NamedTuple):
    """The request was carried out."""

    number: int


class Holder(NamedTuple):
    """A client that holds a lock."""

    #: The name of the client's node.
    node: str
    #: The number of the client's session at that node.
    session: Optional[int]
    #: What the client says about itself: its label, its process and its host.
    client: str
    #: True if the client shares the lock with others.
    shared: bool
    #: The fence of the grant.
    fence: int
    #: For how long the client has held the lock, in milliseconds.
    held_ms: int


class Waiter(NamedTuple):
    """A client that waits for a lock."""

    #: The name of the client's node.
    node: str
    #: The number of the client's session at that node.
    session: Optional[int]
    #: What the client says about itself: its label, its process and its host.
    client: str
    #: True if the client wants to share the lock with others.
    shared: bool
    #: The client's position in the queue of its node, counted from 0, if it is known.
    place: Optional[int]
    #: For how long the client has waited, in milliseconds.
    waited_ms: int
    #: The members whose answer to the request is still missing.
    missing: Tuple[str, ...]
    #: If the client is part of a deadlock: every session in the cycle as ``node/session``.
    circle: Optional[Tuple[str, ...]]


class Absent(NamedTuple):
    """A member of the group that cannot be reached."""

    #: The name of the member.
    node: str
    #: For how long the member has been unreachable, in milliseconds.
    for_ms: int


class LockReport(NamedTuple):
    """Everything that a node could find out about one lock."""

    #: The name of the lock.
    lock: str
    #: The algorithm that serves the lock.
    algorithm: str
    #: How many clients may hold the lock at once.
    permits: int
    #: The number of the current view; none while the members agree on the next view.
    view: Optional[int]
    #: The clients that hold the lock, at every node that answered.
    holders: Tuple[Holder, ...]
    #: The clients that wait for the lock. Those of this node come first, in the order of its queue.
    waiters: Tuple[Waiter, ...]
    #: The members that cannot be reached.
    away: Tuple[Absent, ...]
    #: The names of the members that did not answer in time.
    silent: Tuple[str, ...]


class NodeStatus(NamedTuple):
    """The state of a node."""

    #: The name of the node.
    node: str
    #: The name of the node's group.
    group: str
    #: The version of the program.
    version: str
    #: Who shares the locks of the node.
    scope: Scope
    #: The process ID of the node.
    pid: int
    #: For how long the node has run, in milliseconds.
    up_ms: int
    #: The number of the current view; none while the members agree on the next view.
    view: Optional[int]
    #: The names of all members, in order.
    members: Tuple[str, ...]
    #: The members that cannot be reached.
    away: Tuple[Absent, ...]
    #: How much longer the node grants nothing, in milliseconds; none if it grants locks.
    reclaiming_ms: Optional[int]
    #: The number of open sessions.
    sessions: int
    #: The number of grants that are held.
    held: int
    #: The number of requests that wait.
    waiting: int
    #: The number of grants since the node was started.
    grants: int


class Lock(NamedTuple):
    """A report about a lock."""

    number: int
    report: LockReport


class Status(NamedTuple):
    """A report about the node."""

    number: int
    report: NodeStatus


class Lost(NamedTuple):
    """News: the client does not hold this grant any more."""

    lock: str
    fence: int
    reason: str


class Stopping(NamedTuple):
    """News: the node stops in this many milliseconds, and takes no more requests."""

    ms: int


class Kept(NamedTuple):
    """The client holds the lock now, and may keep it after it has left."""

    number: int
    fence: int
    #: How many numbers after the fence belong to the grant.
    more: int


class Wanted(NamedTuple):
    """News: somebody else wants the lock that the client keeps with this grant."""

    lock: str
    fence: int


Reply = Union[
    Granted, Refused, Released, Alive, Lock, Status, Done, Lost, Stopping, Kept, Wanted
]


def check_name(name: str) -> None:
    """Raise ValueError if this cannot be the name of a lock."""
    if not name:
        raise ValueError("the name of a lock must not be empty")
    try:
        length = len(name.encode())
    except UnicodeEncodeError as error:
        raise ValueError(f"the name of a lock must be text that UTF-8 can encode: {error}") from None
    if length > MAX_NAME:
        raise ValueError(f"the name of a lock has at most {MAX_NAME} bytes, not {length}")
    for character in name:
        if unicodedata.category(character) == "Cc":
            raise ValueError(
                f"the name of a lock must not contain the control character {character!r}"
            )


def cut(text: str, most: int) -> str:
    """Cut a text so that it has at most this many bytes. Characters that UTF-8 cannot encode are
    replaced."""
    return text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def _number(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _text(value: str) -> bytes:
    content = value.encode()
    return _number(len(content)) + content


def _option(value: Optional[T], write: Callable[[T], bytes]) -> bytes:
    return b"\0" if value is None else b"\1" + write(value)


def _claims(claims: Claims) -> bytes:
    out = [_number(len(claims.held))]
    for claim in claims.held:
        out += (
            _text(claim.lock),
            _number(claim.mode),
            _option(claim.permits, _number),
            _number(claim.fence),
            _number(claim.request),
        )
    out.append(_number(len(claims.waiting)))
    out += map(_number, claims.waiting)
    out.append(_number(claims.more))
    return b"".join(out)


def _life(inherited: bool) -> bytes:
    """What ends a session of this package, besides its TTL: its connection."""
    return b"\0" + _number(inherited)


def _opening(opening: Union[New, Resume]) -> bytes:
    if isinstance(opening, New):
        return b"\1" + _number(opening.ttl_ms) + _life(opening.inherited)
    begin = b"\2"
    if opening.node is not None:
        begin = b"\3" + _text(opening.node.name) + opening.node.directory
    session = _number(opening.session) + opening.secret + _number(opening.ttl_ms)
    return begin + session + _life(opening.inherited) + _claims(opening.claims)


def _hello(hello: Hello) -> bytes:
    (low, high), who = hello.versions, hello.who
    client = _text(who.label) + _text(who.host) + _number(who.pid)
    token = _option(hello.token, _text)
    return _number(low) + _number(high) + client + token + _opening(hello.opening)


def _ask(ask: Ask) -> bytes:
    lock, mode, permits, wait = ask
    time = b"\1" + _number(wait) if isinstance(wait, int) else _number(wait.value)
    return _text(lock) + _number(mode) + _option(permits, _number) + time


def _request(request: Request) -> bytes:
    if isinstance(request, Acquire):
        return b"\0" + _number(request.number) + _ask(request.ask)
    if isinstance(request, Release):
        return b"\2" + _number(request.number) + _text(request.lock) + _number(request.fence)
    if isinstance(request, Withdraw):
        return b"\1" + _number(request.number)
    if isinstance(request, Alive):
        return b"\3" + _number(request.number)
    if isinstance(request, Inspect):
        return b"\4" + _number(request.number) + _text(request.lock)
    if isinstance(request, AskStatus):
        return b"\6" + _number(request.number)
    if isinstance(request, Evidence):
        return b"\x0c" + _number(request.number)
    if isinstance(request, Keep):
        return b"\x10" + _number(request.number) + _ask(request.ask)
    if isinstance(request, InUse):
        return b"\x11" + _text(request.lock) + _number(request.fence)
    return b"\x09"


def encode(message: Union[Hello, Claims, Request]) -> bytes:
    """The frame of a message."""
    if isinstance(message, Hello):
        content = _hello(message)
    elif isinstance(message, Claims):
        content = _claims(message)
    else:
        content = _request(message)
    return len(content).to_bytes(4, "little") + content


class Reader:
    """Reads the values in the content of a frame, one after the other."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def end(self) -> None:
        """Check that nothing is left."""
        if self._at != len(self._content):
            raise _garbled()

    def bytes(self, count: int) -> bytes:
        """Read this many bytes."""
        begin, self._at = self._at, self._at + count
        if self._at > len(self._content):
            raise _garbled()
        return self._content[begin : self._at]

    def number(self, bits: int = 64) -> int:
        """Read a number of at most this many bits."""
        value = shift = 0
        while True:
            if self._at >= len(self._content):
                raise _garbled()
            byte = self._content[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if value >> bits or shift >= bits:
                raise _garbled()
            if byte < 0x80:
                return value
            shift += 7

    def flag(self) -> bool:
        """Read a bool."""
        byte = self.bytes(1)[0]
        if byte > 1:
            raise _garbled()
        return byte == 1

    def text(self) -> str:
        """Read a text."""
        try:
            return self.bytes(self.number()).decode()
        except UnicodeDecodeError:
            raise _garbled() from None

    def name(self) -> str:
        """Read the name of a lock."""
        name = self.text()
        try:
            check_name(name)
        except ValueError:
            raise _garbled() from None
        return name

    def fence(self) -> int:
        """Read a fence."""
        fence = self.number()
        if not 1 <= fence <= MAX_FENCE:
            raise _garbled()
        return fence

    def variant(self, kinds: "type[E]") -> "E":
        """Read a variant of an enum without fields."""
        try:
            return kinds(self.number(32))
        except ValueError:
            raise _garbled() from None

    def option(self, read: Callable[[], T]) -> Optional[T]:
        """Read a value that may be missing."""
        return read() if self.flag() else None

    def list(self, read: Callable[[], T]) -> Tuple[T, ...]:
        """Read a list."""
        values: List[T] = []
        for _ in range(self.number()):
            values.append(read())
        return tuple(values)

    def _claim(self) -> Claim:
        lock, mode = self.name(), self.variant(Mode)
        permits = self.option(lambda: self.number(32))
        return Claim(lock, mode, permits, self.fence(), self.number())

    def _refusal(self) -> Refusal:
        return Refusal(self.variant(Code), self.text())

    def _absent(self) -> Absent:
        return Absent(self.text(), self.number())

    def _holder(self) -> Holder:
        node, session = self.text(), self.option(self.number)
        return Holder(node, session, self.text(), self.flag(), self.fence(), self.number())

    def _waiter(self) -> Waiter:
        node, session, client = self.text(), self.option(self.number), self.text()
        shared, place = self.flag(), self.option(lambda: self.number(32))
        waited, missing = self.number(), self.list(self.text)
        circle = self.option(lambda: self.list(self.text))
        return Waiter(node, session, client, shared, place, waited, missing, circle)

    def _lock_report(self) -> LockReport:
        lock, algorithm, permits = self.text(), self.text(), self.number(32)
        view, holders = self.option(self.number), self.list(self._holder)
        waiters, away = self.list(self._waiter), self.list(self._absent)
        silent = self.list(self.text)
        return LockReport(lock, algorithm, permits, view, holders, waiters, away, silent)

    def _status(self) -> NodeStatus:
        node, group, version = self.text(), self.text(), self.text()
        scope, pid, up = self.variant(Scope), self.number(32), self.number()
        view, members = self.option(self.number), self.list(self.text)
        away, reclaiming = self.list(self._absent), self.option(self.number)
        sessions, held, waiting, grants = (self.number() for _ in range(4))
        return NodeStatus(
            node,
            group,
            version,
            scope,
            pid,
            up,
            view,
            members,
            away,
            reclaiming,
            sessions,
            held,
            waiting,
            grants,
        )

    def greeting(self) -> Union[Welcome, Refusal]:
        """Read the first message of a node."""
        if self.flag():
            return self._refusal()
        version, node, scope = self.number(16), self.text(), self.variant(Scope)
        session = self.option(lambda: (self.number(), self.bytes(16)))
        ttl_ms, lost = self.number(32), self.list(self._claim)
        directory = None
        if version >= _DIRECTORY:
            directory = self.option(lambda: self.bytes(16))
        return Welcome(version, node, scope, session, ttl_ms, lost, directory)

    def reply(self) -> Reply:
        """Read a later message of a node. Answers to questions that this package does not ask are
        unknown here."""
        kind = self.number(32)
        if kind == 0:
            return Granted(self.number(), self.fence())
        if kind == 1:
            return Refused(self.number(), self._refusal())
        if kind == 2:
            return Released(self.number(), self.flag())
        if kind == 3:
            return Alive(self.number())
        if kind == 4:
            return Lock(self.number(), self._lock_report())
        if kind == 6:
            return Status(self.number(), self._status())
        if kind == 7:
            return Done(self.number())
        if kind == 8:
            return Lost(self.name(), self.fence(), self.text())
        if kind == 9:
            return Stopping(self.number())
        if kind == 14:
            return Kept(self.number(), self.fence(), self.number(32))
        if kind == 15:
            return Wanted(self.name(), self.fence())
        raise _garbled()


E = TypeVar("E", bound=enum.IntEnum)


def _garbled() -> FrameError:
    return FrameError("the other side sent a frame that cannot be decoded")


def decode_greeting(content: bytes) -> Union[Welcome, Refusal]:
    """The first message of a node, from the content of its frame."""
    reader = Reader(content)
    greeting = reader.greeting()
    reader.end()
    return greeting


def decode_reply(content: bytes) -> Reply:
    """A later message of a node, from the content of its frame."""
    reader = Reader(content)
    reply = reader.reply()
    reader.end()
    return reply


class Frames:
    """The received bytes of a connection, out of which whole frames are taken."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, received: bytes) -> None:
        """Append received bytes."""
        self._bytes += received

    def take(self) -> Optional[bytes]:
        """Take the content of the next frame, or nothing if it has not arrived completely."""
        if len(self._bytes) < 4:
            return None
        length = int.from_bytes(self._bytes[:4], "little")
        if length > MAX_FRAME:
            raise FrameError(
                f"the other side sent a frame of {length} bytes; at most {MAX_FRAME} are allowed"
            )
        end = 4 + length
        if len(self._bytes) < end:
            return None
        content = bytes(self._bytes[4:end])
        del self._bytes[:end]
        return content
