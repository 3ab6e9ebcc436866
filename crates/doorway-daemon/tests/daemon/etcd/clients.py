"""Locks with unmodified Python clients of etcd.

Usage: clients.py CLIENT check|enter|hold ADDRESS SOCKET CERTIFICATES [LOG|LOCK]

`check` tries what the client can do. `enter` enters the lock `shared` once, and writes into LOG when it
was inside, with the fence. `hold` enters LOCK, says `in`, and stays inside for a minute.
"""

import asyncio
import base64
import json
import os
import signal
import ssl
import sys
import time
import urllib.request

client, what, address, socket, place = sys.argv[1:6]
host, port = address.split(":")
ca, certificate, key = (os.path.join(place, name) for name in ("ca.crt", "ci.crt", "ci.key"))
os.environ["REQUESTS_CA_BUNDLE"] = ca
os.environ["GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"] = ca

# The time to live of a lease that nobody renews, in seconds. Another process starts meanwhile.
LONG = 15


def inside(fence):
    with open(sys.argv[6], "a") as log:
        log.write(f"in {fence} {time.time_ns()} {client}\n")
        log.flush()
        time.sleep(0.02)
        log.write(f"out {fence} {time.time_ns()} {client}\n")


def stay():
    print("in", flush=True)
    time.sleep(60)


def unix():
    # The abstract socket of a test, as gRPC names it.
    kind, name = ("unix-abstract", socket[1:]) if socket.startswith("@") else ("unix", socket)
    return {"host": kind, "port": name, "options": {"grpc.default_authority": "doorway"}}


async def aetcd_check():
    import aetcd

    async with aetcd.Client(**unix()) as one, aetcd.Client(**unix()) as other:
        mine, yours = one.lock(b"k", ttl=5), other.lock(b"k", ttl=5)
        assert await mine.acquire(timeout=5)
        assert await mine.is_acquired() and not await yours.is_acquired()
        assert not await yours.acquire(timeout=1)
        waiting = asyncio.create_task(yours.acquire(timeout=10))
        await asyncio.sleep(0.3)
        before = time.monotonic()
        assert await mine.release()
        assert await waiting
        assert time.monotonic() - before < 2
        assert yours.revision > mine.revision
        await yours.refresh()
        assert not await mine.release()
        assert await yours.release()
        assert not await yours.is_acquired()


async def aetcd_enter():
    import aetcd

    async with aetcd.Client(**unix()) as one:
        lock = one.lock(b"shared", ttl=5)
        if await lock.acquire(timeout=20):
            inside(lock.revision)
            await lock.release()


async def aetcd_hold():
    import aetcd

    async with aetcd.Client(**unix()) as one:
        if await one.lock(sys.argv[6].encode(), ttl=LONG).acquire(timeout=40):
            stay()


def gateway():
    import etcd3gw

    return etcd3gw.client(
        host=host, port=int(port), protocol="https", api_path="/v3/", timeout=20,
        ca_cert=ca, cert_cert=certificate, cert_key=key,
    )


async def etcd3gw_check():
    mine, yours = gateway().lock("k", ttl=5), gateway().lock("k", ttl=5)
    assert mine.acquire() and mine.is_acquired()
    assert not yours.acquire()
    assert mine.refresh() == 5
    assert not yours.release()
    assert mine.release()
    assert yours.acquire()
    yours.lease.revoke()
    assert not yours.is_acquired()


async def etcd3gw_enter():
    # The prefix of its locks is /locks/, and those of the others have none.
    import etcd3gw.lock

    etcd3gw.lock.LOCK_PREFIX = ""
    lock = gateway().lock("shared", ttl=5)
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if lock.acquire():
            (_, about), = gateway().get("shared", metadata=True)
            inside(about["mod_revision"])
            lock.release()
            return
        time.sleep(0.05)


async def etcd3gw_hold():
    import etcd3gw.lock

    etcd3gw.lock.LOCK_PREFIX = ""
    lock = gateway().lock(sys.argv[6], ttl=LONG)
    # Nothing is awaited here, so asyncio would not notice an interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    while not lock.acquire():
        time.sleep(0.05)
    stay()


def etcetra_client():
    import etcetra

    with open(os.path.join(place, "ci.token")) as token:
        user = etcetra.EtcdCredential("ci", token.read().strip())
    pair = etcetra.HostPortPair(host, int(port))
    return etcetra.EtcdClient(pair, credentials=user, secure=True)


async def etcetra_check():
    async with etcetra_client().with_lock("k", ttl=5):
        try:
            async with etcetra_client().with_lock("k", timeout=1, ttl=5):
                raise AssertionError("two are inside")
        except asyncio.TimeoutError:
            pass
    async with etcetra_client().with_lock("k", timeout=5):
        pass


def holder(first, end):
    """The revision of the key that holds a lock, which the client itself does not tell."""
    tls = ssl.create_default_context(cafile=ca)
    tls.load_cert_chain(certificate, key)
    body = {"key": base64.b64encode(first).decode(), "range_end": base64.b64encode(end).decode()}
    request = urllib.request.Request(f"https://{address}/v3/kv/range", json.dumps(body).encode())
    with urllib.request.urlopen(request, context=tls, timeout=20) as answer:
        return json.load(answer)["kvs"][0]["mod_revision"]


async def etcetra_enter():
    async with etcetra_client().with_lock("shared", timeout=20, ttl=5):
        inside(holder(b"shared/", b"shared0"))


async def etcetra_hold():
    async with etcetra_client().with_lock(sys.argv[6], timeout=40, ttl=LONG):
        stay()


asyncio.run(globals()[f"{client}_{what}"]())
print("all is well")
