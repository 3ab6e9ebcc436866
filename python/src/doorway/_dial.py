"""Connecting to a node, and starting the node of this user if none runs. These functions wait."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import threading
import time
from typing import IO, Optional

from ._clock import MS, SECOND, now
from ._endpoint import MACHINE, VARIABLE, Backoff, Endpoint

#: How long a node may take until it listens, in seconds.
_PATIENCE = 5.0
#: How long to wait between two attempts to start a node.
_PAUSE = SECOND


def connect(endpoint: Endpoint, limit: float) -> socket.socket:
    """Connect to a node.

    ``limit`` is how long to wait, in seconds, for a node that is stopped, or for a network that
    loses every packet. If this is the node of this user, the process that listens must run as this
    user or as root.
    """
    limit = min(max(limit, 0.001), 3600.0)
    if endpoint.port is not None:
        return _connect_tcp(endpoint.name, endpoint.port, limit)
    name = endpoint.name
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # A connect that may not block fails at once if the backlog of the node is full.
        seconds, rest = divmod(round(limit * 1_000_000), 1_000_000)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", seconds, rest))
        sock.connect("\0" + name[1:] if name.startswith("@") else name)
        if endpoint.is_own:
            _check_peer(sock)
    except BlockingIOError:
        sock.close()
        why = "the process that listens there accepts no connections; it may be stopped"
        raise TimeoutError(why) from None
    except PermissionError as error:
        sock.close()
        raise _explain(name, error) from None
    except BaseException:
        sock.close()
        raise
    return sock


def _connect_tcp(host: str, port: int, limit: float) -> socket.socket:
    """Connect to the first address of the host that answers. Each gets an equal part of the time,
    and one part is left for the node to answer."""
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    parts = len(addresses) + 1 if len(addresses) > 1 else 1
    failed = OSError("the host has no address")
    for family, kind, protocol, _, address in addresses:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(max(limit / parts, 0.001))
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        except OSError as error:
            sock.close()
            failed = error
        except BaseException:
            sock.close()
            raise
    raise failed


def _check_peer(sock: socket.socket) -> None:
    """Check that the process at the other end runs as this user or as root. Any user could listen on
    an abstract socket with the name of this user's node."""
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    _, peer, _ = struct.unpack("iII", credentials)
    if peer not in (0, os.geteuid()):
        raise OSError(
            f"user {peer} listens where the node of user {os.geteuid()} should listen, so it is not "
            f"trusted; set {VARIABLE} to use another node"
        )


def _explain(name: str, error: PermissionError) -> OSError:
    """Say who may open a socket, where the system only says that this user may not."""
    if name.startswith("@"):
        return error
    remedy = f"its users have to be in the group of the socket: see `ls -l {name}`"
    if name == MACHINE:
        remedy = (
            "its users have to be in the group `doorway`: as root, `usermod -aG doorway USER`, and "
            "log in again"
        )
    return PermissionError(f"{error.strerror}; {remedy}")


class CannotStart(Exception):
    """The node of this user cannot be started."""


class Starter:
    """Starts the node of this user, as ``doorway run`` does."""

    def __init__(self) -> None:
        self._process: Optional["subprocess.Popen[bytes]"] = None
        self._errors: Optional[IO[bytes]] = None
        self._not_before = 0

    def dial(self, endpoint: Endpoint, limit: float) -> socket.socket:
        """Connect to the node of this user. If none listens, start it and wait until one does: the
        one that was started, or one that another process started at the same time."""
        until = time.monotonic() + _PATIENCE
        delays = Backoff(MS, 20 * MS)
        while True:
            try:
                return connect(endpoint, limit)
            except ConnectionRefusedError:
                self._start_if_gone(endpoint)
            if time.monotonic() > until:
                raise _failed(endpoint, f"it did not listen within {_PATIENCE:.0f} s")
            time.sleep(delays.next_delay() / SECOND)

    def _start_if_gone(self, endpoint: Endpoint) -> None:
        """Start a node unless the last one still runs. Raise an error if it could not serve."""
        process = self._process
        if process is not None:
            code = process.poll()
            if code is None:
                return
            self._process = None
            if code > 0:
                raise _failed(endpoint, self._last_words())
        if now() < self._not_before:
            return
        self._not_before = now() + _PAUSE
        program = shutil.which("doorway")
        if program is None:
            raise CannotStart(
                f"no node runs for this user at {endpoint}, and no program `doorway` is in PATH that "
                "could be started"
            )
        # A pipe would end with this process.
        self._errors = os.fdopen(os.memfd_create("errors"), "w+b")
        self._process = process = subprocess.Popen(
            [program, "serve", "--local"],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            start_new_session=True,
        )
        # When the node stops, nobody else would collect its exit status.
        threading.Thread(target=process.wait, name="doorway-node", daemon=True).start()

    def _last_words(self) -> str:
        """The last line that the node wrote to standard error."""
        text = b""
        if self._errors is not None:
            self._errors.seek(0)
            text = self._errors.read()
        lines = [line.strip() for line in text.decode("utf-8", "replace").splitlines()]
        last = next((line for line in reversed(lines) if line), "it ended without a message")
        return last[len("doorway: ") :] if last.startswith("doorway: ") else last


def _failed(endpoint: Endpoint, why: str) -> CannotStart:
    return CannotStart(
        f"cannot start a local node at {endpoint}: {why} (`doorway serve --local` shows more)"
    )
