"""Sessions over a network: certificates, tokens and a network that is cut."""

import subprocess
import threading
import unittest
from typing import ContextManager, List, Optional

import doorway
import doorway.aio
from nodes import PATIENCE, Node, Proxy, boot_time, free_port, program, until

TOKEN = "0123456789abcdef0123456789abcdef"


def certificates(node: Node, name: str) -> str:
    """Make an authority, a certificate for a node and one for a client, and return their
    directory."""
    directory = str(node.directory / name)
    for words in (
        ["init", "--group", "shop", "--dir", directory],
        ["node", "a", "--address", "127.0.0.1", "--dir", directory],
        ["client", "ci", "--dir", directory],
    ):
        subprocess.run([program(), "ca", *words], check=True, stdout=subprocess.DEVNULL)
    return directory


class Remote(unittest.TestCase):
    node: Node
    #: Directories with an authority each, of which the node trusts the first.
    ca: str
    wrong: str
    port: int
    http: int

    @classmethod
    def setUpClass(cls) -> None:
        cls.node = Node("")
        cls.ca, cls.wrong = certificates(cls.node, "ca"), certificates(cls.node, "wrong")
        (cls.node.directory / "token").write_text(TOKEN)
        cls.port, cls.http = free_port(), free_port()
        cls.node._settings = f"""
group = "shop"
node = "a"
[tls]
ca = "{cls.ca}/ca.crt"
certificate = "{cls.ca}/a.crt"
key = "{cls.ca}/a.key"
[sessions]
listen = "127.0.0.1:{cls.port}"
[http]
listen = "127.0.0.1:{cls.http}"
[[client]]
name = "ci"
rights = [{{ names = "*", may = ["acquire", "inspect"] }}]
[[client]]
name = "token"
token_file = "{cls.node.directory}/token"
rights = [{{ names = "deploy/*", may = ["acquire"] }}]
"""
        cls.node.start()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.node.end()

    def client(
        self,
        port: Optional[int] = None,
        ca: Optional[str] = None,
        identity: Optional[str] = None,
        token: Optional[str] = None,
        ttl: Optional[float] = None,
        server_name: Optional[str] = None,
        patience: float = PATIENCE,
        keep: bool = False,
    ) -> doorway.Client:
        return doorway.Client(
            f"tcp://127.0.0.1:{port or self.port}",
            ca=f"{ca or self.ca}/ca.crt",
            certificate=identity and f"{identity}/ci.crt",
            key=identity and f"{identity}/ci.key",
            token=token,
            ttl=ttl,
            server_name=server_name,
            patience=patience,
            keep=keep,
        )

    def test_a_certificate_or_a_token_opens_a_session(self) -> None:
        with self.client(identity=self.ca) as client:
            with client.lock("deploy/a", wait=60) as grant:
                left = grant.remaining()
                assert left is not None and 0 < left <= 9.5, "the default over a network is 10 s"
                with self.client(token=TOKEN, server_name="a.shop.doorway") as other:
                    self.assertIsNone(other.try_lock("deploy/a"))
                    with self.assertRaises(doorway.RefusedError) as raised:
                        other.try_lock("elsewhere")
                    self.assertIs(raised.exception.code, doorway.Code.FORBIDDEN)

    def test_a_wrong_certificate_is_refused_by_either_side(self) -> None:
        def is_refused(expected: str) -> ContextManager[object]:
            return self.assertRaisesRegex(doorway.RefusedError, expected)

        with is_refused("over TLS: .*certificate verify failed"):
            self.client(ca=self.wrong, identity=self.ca)
        with is_refused("certificate is not valid for 'b.shop.doorway'"):
            self.client(identity=self.ca, server_name="b.shop.doorway")
        with is_refused("over TLS"):
            self.client(identity=self.wrong)
        with is_refused("certificate|token"):
            self.client()
        with is_refused("token"):
            self.client(token=TOKEN + "x")

    def test_a_wrong_port_or_a_wrong_file_is_named(self) -> None:
        with self.assertRaisesRegex(doorway.RefusedError, "HTTP port"):
            self.client(port=self.http, identity=self.ca)
        with self.assertRaisesRegex(doorway.Unavailable, "Connection refused"):
            self.client(port=free_port(), identity=self.ca)
        with self.assertRaisesRegex(doorway.Unavailable, r"at tcp://a\.\.b:7 \("):
            doorway.Client("tcp://a..b:7", ca=f"{self.ca}/ca.crt")
        with self.assertRaisesRegex(doorway.EndpointError, "cannot use the authority in .*nowhere"):
            self.client(ca="/nowhere")
        with self.assertRaisesRegex(doorway.EndpointError, "belong together"):
            doorway.Client("tcp://a:1", ca=f"{self.ca}/ca.crt", certificate="x")

    def test_a_holder_behind_a_lost_network_knows_before_anyone_else_enters(self) -> None:
        proxy = Proxy(self.port)
        self.addCleanup(proxy.close)
        lost: List[float] = []
        with self.client(port=proxy.port, identity=self.ca, ttl=1) as client:
            grant = client.lock("cut", on_lost=lambda _: lost.append(boot_time())).acquire()
            proxy.is_cut = True
            with self.node.client() as other, other.lock("cut", wait=60) as next_grant:
                entered = boot_time()
                self.assertTrue(grant.is_lost, "the clock says so, without any message")
                until("the loss is told", lambda: bool(lost))
            self.assertGreater(next_grant.fence, grant.fence)
            # The thread that tells it may have waited for a processor, but not for the network.
            self.assertLess(lost[0], entered + 1)
            self.assertTrue(proxy.is_cut)

    def test_a_session_survives_a_network_that_is_cut_for_a_moment(self) -> None:
        proxy = Proxy(self.port)
        self.addCleanup(proxy.close)
        with self.client(port=proxy.port, identity=self.ca, ttl=8) as client:
            with client.lock("moment") as grant:
                for sock in proxy._sockets:
                    sock.close()
                connected = len(proxy._sockets)
                until("the client is connected again", lambda: len(proxy._sockets) > connected)
                with client.lock("another", wait=60):
                    grant.check()

    def test_a_kept_lock_behind_a_lost_network_is_given_to_others_after_the_ttl(self) -> None:
        proxy = Proxy(self.port)
        self.addCleanup(proxy.close)
        with self.client(port=proxy.port, identity=self.ca, ttl=2, keep=True) as client:
            lock = client.lock("kept", wait=PATIENCE)
            with lock as first:
                pass
            with lock as again:
                self.assertEqual(again.fence, first.fence + 1)
            proxy.is_cut = True
            with self.node.client() as other, other.lock("kept", wait=PATIENCE) as grant:
                self.assertGreater(grant.fence, again.fence)
                self.assertIsNone(client._session.reenter(lock._ask, object(), None))
                proxy.close()
            # Nobody answers the client, and it does not enter by itself.
            with self.assertRaises(doorway.Unavailable):
                client.lock("kept", wait=1).acquire()

    def test_several_nodes_are_tried_in_turn(self) -> None:
        nobody = f"tcp://127.0.0.1:{free_port()}"
        with doorway.Client(
            f"{nobody},tcp://127.0.0.1:{self.port}",
            ca=f"{self.ca}/ca.crt",
            certificate=f"{self.ca}/ci.crt",
            key=f"{self.ca}/ci.key",
        ) as client:
            with client.lock("turn", wait=60):
                pass

    def test_many_requests_do_not_block_each_other(self) -> None:
        with self.client(identity=self.ca) as client:
            entered: List[int] = []

            def enter(number: int) -> None:
                with client.lock(f"many/{number % 3}", wait=60):
                    entered.append(number)

            threads = [threading.Thread(target=enter, args=(number,)) for number in range(30)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(sorted(entered), list(range(30)))


if __name__ == "__main__":
    unittest.main()
