"""The locks of redis-py, as a program would use them."""

import sys
import threading
import time

import redis
from redis.exceptions import LockError, LockNotOwnedError, ResponseError

port, ca, token = sys.argv[1:]


def connect(**more):
    return redis.Redis(
        "127.0.0.1", int(port), ssl=True, ssl_ca_certs=ca, username="all", password=token, **more
    )


def refused(error, call):
    try:
        call()
    except error as why:
        return str(why)
    raise AssertionError(f"{call} did not raise {error}")


for protocol in [2, 3]:
    client = connect(protocol=protocol)
    assert client.ping()
    mine, yours = client.lock("report", timeout=1.5), client.lock("report", timeout=1.5)
    assert not mine.locked()
    assert mine.acquire(blocking=False)
    assert mine.locked() and mine.owned()
    assert not yours.acquire(blocking=False)
    assert not yours.acquire(blocking=True, blocking_timeout=0.2)
    assert mine.reacquire()
    assert mine.extend(2, replace_ttl=True)
    assert 1000 < client.pttl("report") <= 2000
    assert "[limits]" in refused(ResponseError, lambda: mine.extend(60))
    assert int(client.execute_command("DOORWAY.FENCE", "report")) > 0
    mine.release()
    refused(LockError, mine.release)
    with client.lock("report", timeout=1):
        refused(LockError, client.lock("report", timeout=1, blocking_timeout=0.1).__enter__)
    # A lease that has ended is noticed.
    assert mine.acquire(blocking=False)
    client.delete("report")
    assert yours.acquire(blocking=False)
    refused(LockNotOwnedError, mine.release)
    assert not mine.owned() and yours.owned()
    yours.release()
    # Without a time to live the error says what to do.
    assert "timeout=10" in refused(ResponseError, lambda: client.lock("report").acquire())
    client.close()

inside = 0
entries = 0


def work():
    global inside, entries
    with connect() as client:
        for _ in range(5):
            with client.lock("counter", timeout=2, sleep=0.01):
                inside += 1
                assert inside == 1
                time.sleep(0.002)
                entries += 1
                inside -= 1


threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert entries == 20, entries
print("all is well")
