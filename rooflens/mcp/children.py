"""The processes that make the calls: a few, so that a call which takes long delays no other, and can be ended."""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import Self

from rooflens.errors import InputError
from rooflens.ingest.reports.child import Child

MOST_CALLS = 4
"""Calls that are made side by side; more wait for one to end."""

DEADLINE_SECONDS = 60.0
_AT_START = 2
"""One for the first call, and one that is ready beside it, however soon the second comes."""

_WHO = "the call"
_LATE_HINT = "name a smaller place, or use the command line, which has no such limit"
_MODULE = "rooflens.mcp.call"


class Children:
    """Idle children beside those that make a call: one at least is ready, or starts, up to `MOST_CALLS` in all.

    A child starts in half a second, most of which are imports, and then keeps what it has analyzed. So children are
    kept, and the one that was used last is taken first: calls one after the other find their report analyzed.

    To be used in one thread, the main one: Linux ends a child with the thread that started it.
    """

    def __init__(self) -> None:
        """Start the first children.

        Raises:
            InputError: They cannot be started.
        """
        self._busy: set[Child] = set()
        self._idle = [_started() for _ in range(_AT_START)]

    def take(self) -> Child:
        """Take a child for a call, and start the next if none is left.

        Raises:
            InputError: None can be started.
        """
        child = None
        while self._idle and child is None:
            child = self._idle.pop()
            if not child.is_alive():  # as happens when memory runs out
                child.end()
                child = None
        child = child or _started()
        self._busy.add(child)
        if not self._idle and len(self._busy) < MOST_CALLS:
            with suppress(InputError):  # the next call will say so
                self._idle.append(_started())
        return child

    def give_back(self, child: Child) -> None:
        """Give a child back after its call; one that did not survive is ended."""
        self._busy.discard(child)
        if child.is_alive():
            self._idle.append(child)
        else:
            child.end()

    def end(self, child: Child) -> None:
        """End a child in the middle of its call."""
        self._busy.discard(child)
        child.end()

    def __enter__(self) -> Self:
        """Begin a block after which no child is left."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End all children."""
        self.end_all()

    def end_all(self) -> None:
        """End all children: first all are killed, then each is waited for."""
        every = [*self._idle, *self._busy]
        for child in every:
            child.kill()
        for child in every:
            child.end()
        self._idle.clear()
        self._busy.clear()


def _started() -> Child:
    return Child(_WHO, _LATE_HINT, module=_MODULE, sharers=MOST_CALLS)
