"""A task that runs once at a time, on however many machines its workers run.

With Celery::

    @app.task
    @once_at_a_time("reports/nightly")
    def nightly_report(*, fence: int) -> None:
        Report.objects.filter(name="nightly", fence__lte=fence).update(fence=fence, text=make_report())

The lock is taken in the worker, not where the task is sent. A second worker that gets the task while it
runs skips it. In a Django management command, ``handle`` calls the decorated function. The fence makes the
database refuse what a worker writes that was paused for too long, see docs/fences.md.
"""

import functools
import logging
import sys
from typing import Any, Callable, Optional, TypeVar

import doorway

T = TypeVar("T")


def once_at_a_time(name: str) -> Callable[[Callable[..., T]], Callable[..., Optional[T]]]:
    """Skip a task that runs already. The task gets the fence of its lock."""

    def decorate(task: Callable[..., T]) -> Callable[..., Optional[T]]:
        @functools.wraps(task)
        def run(*args: Any, **keywords: Any) -> Optional[T]:
            grant = doorway.try_lock(name)
            if grant is None:
                logging.info("%s runs already", name)
                return None
            with grant:
                return task(*args, fence=grant.fence, **keywords)

        return run

    return decorate


@once_at_a_time("reports/nightly")
def nightly_report(*, fence: int) -> str:
    """Work for as long as standard input is open."""
    print("report with fence", fence, flush=True)
    sys.stdin.read()
    return "done"


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    print(nightly_report(), flush=True)
