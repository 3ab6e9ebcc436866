"""Where nodes listen, and which of them to connect to next."""

from __future__ import annotations

import os
import random
from typing import List, NamedTuple, Optional, Sequence

from ._clock import MS, SECOND, after, since
from .errors import EndpointError

#: The environment variable that names the endpoints, if the program does not.
VARIABLE = "DOORWAY_SOCKET"
#: The socket of the machine's node, unless its configuration names another one.
MACHINE = "/run/doorway/socket"
#: The directory that exists if this machine has a node of its own.
MACHINE_CONFIG = "/etc/doorway"


class Endpoint(NamedTuple):
    """Where a node listens: a Unix socket, or a host and a port."""

    #: The path of a Unix socket, ``@name`` for an abstract Unix socket, or the host.
    name: str
    #: The port, for sessions over TCP with TLS.
    port: Optional[int] = None

    @property
    def is_network(self) -> bool:
        """Does a connection cross a network?"""
        return self.port is not None

    @property
    def is_own(self) -> bool:
        """Is this the node of this user? That one may be started if it does not run."""
        return self == own()

    def __str__(self) -> str:
        if self.port is None:
            return self.name
        host = f"[{self.name}]" if ":" in self.name else self.name
        return f"tcp://{host}:{self.port}"


def own() -> Endpoint:
    """The node of this user. It depends on the effective user ID alone, never on the environment."""
    return Endpoint(f"@doorway-{os.geteuid()}")


def parse_one(text: str) -> Endpoint:
    """Read an endpoint: a path, ``@name`` or ``tcp://host:port``."""

    def wrong(why: str) -> EndpointError:
        return EndpointError(
            f"{text!r} is not an endpoint: {why}; give a path, @name or tcp://host:port"
        )

    if text.startswith("tcp://"):
        host, colon, digits = text[len("tcp://") :].rpartition(":")
        if not colon:
            raise wrong("it has no port")
        if not (digits.isascii() and digits.isdigit() and int(digits) <= 65535):
            raise wrong("its port is not a number up to 65535")
        bare = host.startswith("[") and host.endswith("]")
        if not bare and ":" in host:
            raise wrong("an IPv6 address must be in brackets")
        host = host[1:-1] if bare else host
        if not host or int(digits) == 0:
            raise wrong("its host or its port is missing")
        return Endpoint(host, int(digits))
    if not text:
        raise wrong("it is empty")
    if "\0" in text:
        raise wrong("it contains a zero byte")
    if text == "@":
        raise wrong("a name must follow the @")
    if "://" in text and not text.startswith("@"):
        raise wrong("the only scheme is tcp://")
    # The system has room for 108 bytes, of which one is a zero.
    if len(os.fsencode(text)) > 107:
        raise wrong("it is longer than 107 bytes")
    return Endpoint(text)


def parse(text: str) -> List[Endpoint]:
    """Read endpoints with commas between them. All of them must lead to nodes of one group."""
    return list(dict.fromkeys(parse_one(part) for part in text.split(",")))


def resolve(named: Optional[str]) -> List[Endpoint]:
    """Decide which nodes to use: those that are named, else those that DOORWAY_SOCKET names, else
    the machine's node if there is one, else the node of this user."""
    if named is not None:
        return parse(named)
    variable = os.environ.get(VARIABLE)
    if variable is not None:
        try:
            return parse(variable)
        except EndpointError as wrong:
            raise EndpointError(f"{VARIABLE} is set: {wrong}") from None
    if os.path.isdir(MACHINE_CONFIG):
        try:
            with open(os.path.join(MACHINE_CONFIG, "doorway.toml"), encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError):
            text = ""
        return [configured(text, MACHINE_CONFIG)]
    return [own()]


def configured(text: str, directory: str) -> Endpoint:
    """The socket that the configuration of a machine's node names, or MACHINE if it names none.

    The configuration is TOML, of which only the line ``socket = "..."`` before the first table is
    read. A socket whose name needs escapes must be given to clients.
    """
    found = Endpoint(MACHINE)
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            break
        key, equals, value = (part.strip() for part in line.partition("="))
        if key != "socket" or not equals or value[:1] not in ('"', "'") or not value:
            continue
        name, quote, _ = value[1:].partition(value[0])
        if not quote or "\\" in name:
            continue
        try:
            endpoint = parse_one(name)
        except EndpointError:
            endpoint = Endpoint(MACHINE)
        if endpoint.is_network:
            endpoint = Endpoint(MACHINE)
        path = endpoint.name
        found = endpoint if path.startswith("@") else Endpoint(os.path.join(directory, path))
    return found


class Backoff:
    """Delays between attempts: each up to twice as long as the one before, with jitter."""

    def __init__(self, first: int, longest: int) -> None:
        self._first, self._longest = first, longest
        self._bound = first

    def next_delay(self) -> int:
        """How long to wait before the next attempt, in nanoseconds."""
        delay = round(self._bound * random.uniform(0.5, 1.0))
        self._bound = min(2 * self._bound, self._longest)
        return delay

    def reset(self) -> None:
        """Begin with short delays again, after an attempt has succeeded."""
        self._bound = self._first


class Route:
    """Which of several nodes to connect to next, and when.

    If a node cannot be reached, the next one is tried at once. If none of them can be reached, there
    is a delay before the next round, which grows. A connection that ends before the node has served
    the client for a while counts like a failure.
    """

    #: If the node has served us for this long, the next delay is short again.
    STEADY = SECOND

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self.endpoints = endpoints
        #: When to try to connect next.
        self.due = 0
        self._current = self._failures = self._round = 0
        self._backoff = Backoff(5 * MS, 500 * MS)
        self._served_since: Optional[int] = None

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint of the connection, or of the next attempt to connect."""
        return self.endpoints[self._current]

    @property
    def rounds(self) -> int:
        """How often all endpoints have failed since a node last served this client."""
        return self._failures // len(self.endpoints)

    def serves(self, now: int) -> None:
        """The node has welcomed the client. Calling this again has no effect."""
        if self._served_since is None:
            self._served_since = now
        self._failures = self._round = 0

    def failed(self, now: int, stay: bool) -> None:
        """The node cannot be reached, or does not serve the client. If ``stay`` is true, no other
        node will do."""
        self._served_since = None
        self._failures += 1
        self._round += 1
        if not stay:
            self._current = (self._current + 1) % len(self.endpoints)
        self.due = now
        if stay or self._round >= len(self.endpoints):
            self._round = 0
            self.due = after(now, self._backoff.next_delay())

    def ended(self, now: int, stay: bool) -> None:
        """The connection has ended. The node that served the client until then is tried first."""
        served, self._served_since = self._served_since, None
        if served is None:
            self.failed(now, stay)
        elif since(now, served) >= self.STEADY:
            self._backoff.reset()
            self.due = now
        else:
            self.due = after(now, self._backoff.next_delay())
