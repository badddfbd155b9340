"""Processes of this machine as an executor: one that dies costs only the call it was making."""

from __future__ import annotations

from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from rooflens.ingest.children.child import keep_freed
from rooflens.ingest.children.children import Children

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class ProcessExecutor(Executor):
    """An executor of so many processes.

    Unlike `concurrent.futures.ProcessPoolExecutor` it can be used in daemonic workers and from scripts without a main
    guard, a process that dies fails only its own call, and none outlives us.
    """

    def __init__(self, count: int) -> None:
        keep_freed()  # calls and answers pass through us
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="rooflens-worker")
        self._children = Children("the worker", limited=False, sharers=count)

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Have a function that can be imported by its name called in one of the processes; arguments are pickled."""
        call = partial(fn, **kwargs) if kwargs else fn
        return self._threads.submit(self._children.call, call, args)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - the class's own signature
        """End the processes: after their calls, or at once if those are cancelled."""
        self._threads.shutdown(wait=wait and not cancel_futures, cancel_futures=cancel_futures)
        if wait or cancel_futures:
            self._children.close()
        if wait:
            self._threads.shutdown()
