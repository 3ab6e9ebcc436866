"""TLS for sessions over a network, without a socket."""

from __future__ import annotations

import ssl
from typing import Optional

from .errors import EndpointError


class TlsConfig:
    """Which nodes a client trusts, and how it proves its own identity."""

    def __init__(
        self,
        ca: Optional[str],
        certificate: Optional[str],
        key: Optional[str],
        server_name: Optional[str],
    ) -> None:
        if ca is None:
            raise EndpointError(
                "a node at tcp:// needs ca=FILE, the authority of its certificate"
            )
        if (certificate is None) != (key is None):
            raise EndpointError("certificate= and key= belong together: give both or none")
        self.server_name = server_name
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_3
        what = f"the authority in {ca}"
        try:
            self.context.load_verify_locations(ca)
            if certificate is not None:
                what = f"the certificate in {certificate} with the key in {key}"
                self.context.load_cert_chain(certificate, key)
        except (OSError, ssl.SSLError) as error:
            raise EndpointError(f"cannot use {what}: {error}") from None


class Encryption:
    """One encrypted connection. Errors are ``ssl.SSLError``."""

    def __init__(self, config: TlsConfig, host: str) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = config.context.wrap_bio(
            self._incoming, self._outgoing, server_hostname=config.server_name or host
        )
        self._waiting = bytearray()
        self._greeted = False
        self._shake_hands()

    @property
    def is_handshaking(self) -> bool:
        """Is the handshake not complete?"""
        return not self._greeted

    def _shake_hands(self) -> None:
        if self._greeted:
            return
        try:
            self._tls.do_handshake()
            self._greeted = True
        except ssl.SSLWantReadError:
            pass

    def encrypt(self, plain: bytearray) -> bytes:
        """Take bytes that are to be sent, and give bytes for the connection. What is taken before
        the handshake is complete is kept until then."""
        self._waiting += plain
        plain.clear()
        if self._greeted and self._waiting:
            self._tls.write(self._waiting)
            self._waiting.clear()
        return self._outgoing.read()

    def decrypt(self, received: bytes) -> "tuple[bytes, bool]":
        """Take bytes of the connection, and give what the node has sent, and whether it has closed
        the connection."""
        self._incoming.write(received)
        self._shake_hands()
        plain = bytearray()
        while self._greeted:
            try:
                part = self._tls.read(65536)
            except ssl.SSLWantReadError:
                break
            except ssl.SSLZeroReturnError:
                return bytes(plain), True
            if not part:
                return bytes(plain), True
            plain += part
        return bytes(plain), False
