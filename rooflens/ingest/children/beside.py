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
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
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
_preparing: threading.Thread | None = None


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
        if is_last and _preparing is not None:
            _end(_preparing)
        if is_last and _others.cache_info().currsize:
            _others().rest()


def prepare(module: str, *, start: bool = False) -> None:
    """Have the other process import a module that it will need, while we do what comes before.

    Args:
        module: Its name.
        start: Start the process where there is none; by default nothing is done then.
    """
    global _preparing  # noqa: PLW0603 - one process, whoever works with it
    if start or _others.cache_info().currsize:
        _wait_until_prepared()
        _preparing = threading.Thread(target=_prepare, args=(_others(), module), name="rooflens-prepare", daemon=True)
        _preparing.start()


def _prepare(others: Children, module: str) -> None:
    with suppress(Exception):  # whoever shares work with it is told what is wrong
        others.call(_import, (module,))


def _import(module: str) -> None:
    import_module(module)


def _wait_until_prepared() -> None:
    """Wait for the other process: a second call at once would start a third one."""
    if _preparing is not None:
        _preparing.join()


def _end(thread: threading.Thread) -> None:
    """End a thread that waits for the other process, by ending that."""
    while thread.is_alive() and thread.ident is not None:
        _others().abandon({thread.ident})
        thread.join(_STOP_SECONDS)


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
        _end(self._other)

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

        _wait_until_prepared()
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
