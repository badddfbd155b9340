"""Run tasks in parallel, and return their results in the order in which they were given."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from rooflens.ingest.executors.running import Lost, run_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rooflens.errors import InputError
    from rooflens.ingest.executors.opening import Workers

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_in_order(
    workers: Workers, function: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[tuple[Item, Result | InputError]]:
    """Call a function for each item, on workers; yield each item with its result, or why there is none.

    Args:
        workers: Where to call it.
        function: As for `run_tasks`, but of one item.
        items: Consumed only as there is room.

    Raises:
        RooflensError, EnvironmentMissingError: As `run_tasks` does.
    """
    given: dict[int, Item] = {}
    done: dict[int, Result | InputError] = {}

    def tasks() -> Iterator[tuple[tuple[int, Item]]]:
        for numbered in enumerate(items):
            given[numbered[0]] = numbered[1]
            yield (numbered,)

    following = 0
    for found in run_tasks(workers, partial(_numbered, function), tasks()):
        number, result = (found.item[0], found.error) if isinstance(found, Lost) else found
        done[number] = result
        while following in done:
            yield given.pop(following), done.pop(following)
            following += 1


def _numbered(function: Callable[[Any], Result], items: tuple[tuple[int, Any]]) -> tuple[int, Result]:
    """Do the one item of a task, on the worker."""
    ((number, item),) = items
    return number, function(item)
