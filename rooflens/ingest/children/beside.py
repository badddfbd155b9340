"""Share work with a second process of ours, which takes another core.

    with kept(), Shared(read, paths) as shared:
        ...
        for path, report in shared.results():
            ...

Both take items from one queue, so neither waits for the other until the end. The results are those that one process
alone would give: where the other one dies or fails, we do its part ourselves.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import contextmanager
from functools import cache
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Self

    from rooflens.ingest.children.children import Children

Item = TypeVar("Item")
Result = TypeVar("Result")

_PROCESSES = 2
_STOP_SECONDS = 0.05

_lock = threading.Lock()
_blocks = 0


@cache
def _others() -> Children:
    from rooflens.ingest.children.children import Children  # noqa: PLC0415 - only where there is enough to share

    return Children("the other process", limited=False, sharers=_PROCESSES)


@contextmanager
def kept() -> Iterator[None]:
    """Keep the other process alive, once it has started, until the outermost such block ends."""
    global _blocks  # noqa: PLW0603 - one process, whoever works with it
    with _lock:
        _blocks += 1
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            is_last = not _blocks
        if is_last and _others.cache_info().currsize:
            _others().rest()


class Shared(Generic[Item, Result]):
    """Items that another process works on from now on, and this one as soon as results are asked for.

    What is not done when the block ends is given up.

    Args:
        function: Called with one item at a time; it, the items and the results are pickled.
        items: What it is called with.
    """

    def __init__(self, function: Callable[[Item], Result], items: Iterable[Item]) -> None:
        self._function = function
        self._waiting = deque(items)
        self._done: SimpleQueue[tuple[Item, Result]] = SimpleQueue()
        self._undone: deque[Item] = deque()
        self._other = threading.Thread(target=self._have_done, name="rooflens-beside", daemon=True)
        self._other.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._waiting.clear()
        while self._other.is_alive() and self._other.ident is not None:
            _others().abandon({self._other.ident})
            self._other.join(_STOP_SECONDS)

    def results(self) -> Iterator[tuple[Item, Result]]:
        """Yield every item with its result, in any order; what the function raises is raised here."""
        yield from self._do(self._waiting)
        self._other.join()
        yield from self._come()
        yield from self._do(self._undone)

    def _do(self, items: deque[Item]) -> Iterator[tuple[Item, Result]]:
        while True:
            try:
                item = items.popleft()
            except IndexError:
                return
            yield item, self._function(item)
            yield from self._come()

    def _come(self) -> Iterator[tuple[Item, Result]]:
        """Yield what has come from the other process so far."""
        while True:
            try:
                yield self._done.get_nowait()
            except Empty:
                return

    def _have_done(self) -> None:
        """Feed the other process items until none is left, or it has died."""
        from rooflens.ingest.children.children import ChildDiedError  # noqa: PLC0415 - as above

        while True:
            try:
                item = self._waiting.popleft()
            except IndexError:
                return
            try:
                self._done.put((item, _others().call(self._function, (item,))))
            except ChildDiedError:
                self._undone.append(item)
                return
            except Exception:  # noqa: BLE001 - whatever it is: it is raised again where we do it
                self._undone.append(item)
