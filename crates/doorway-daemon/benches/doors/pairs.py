"""Pairs of acquire and release: pairs.py KIND SOCKET SECONDS prints their times in nanoseconds."""

import sys
import time

kind, socket, seconds = sys.argv[1:]

if kind in ("doorway", "kept"):
    import doorway

    session = doorway.Client(socket, keep=kind == "kept")

    def lock():
        return session.lock("orders/1", wait=10)

else:
    import redis

    connection = redis.Redis(unix_socket_path=socket)

    def lock():
        return connection.lock("orders/1", timeout=30)


def pair():
    begin = time.perf_counter_ns()
    with lock():
        pass
    return time.perf_counter_ns() - begin


for _ in range(20):
    pair()
end = time.perf_counter() + float(seconds)
times = []
while time.perf_counter() < end:
    times.append(pair())
print("\n".join(map(str, times)))
