from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import pytest

from rooflens.ingest.children import beside
from rooflens.ingest.children.beside import Shared, kept, prepare

if TYPE_CHECKING:
    from collections.abc import Iterator

ITEMS = tuple(range(40))
SLOW_S = 0.02
LONG_S = 60.0


def worked(item: int) -> int:
    """Take a moment; return the process that did it."""
    time.sleep(SLOW_S + 0 * item)
    return os.getpid()


def die_elsewhere(here: int, item: int) -> int:
    """End the process, unless it is the first one."""
    if os.getpid() != here:
        os._exit(1)
    return -item


def fail_at_seven(item: int) -> int:
    """Raise what a bug raises."""
    time.sleep(SLOW_S)
    if item == 7:
        raise LookupError("seven")
    return item


def hang_elsewhere(here: int, item: int) -> int:
    """Take long, unless it is the first process."""
    if os.getpid() != here:
        time.sleep(LONG_S)
    return item


def has_imported(module: str, _: int) -> tuple[int, bool]:
    """Say who we are, and whether we have a module."""
    time.sleep(SLOW_S)
    return os.getpid(), module in sys.modules


@pytest.fixture(autouse=True)
def no_process_yet() -> Iterator[None]:
    """Begin and end with no other process."""
    beside._others.cache_clear()
    yield
    beside._others.cache_clear()


def _is_there(process: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(process, 0)
        return True
    return False


def test_two_processes_share_the_work_and_the_other_one_ends_with_the_block() -> None:
    """Each item is done once, here or in one other process, which serves again within the block and is gone after."""
    with kept():
        others: set[int] = set()
        for _ in range(2):
            with Shared(worked, ITEMS) as shared:
                others.add(shared._done.get(timeout=LONG_S)[1])  # it has begun, however busy the machine is
                processes = {process for _, process in shared.results()}
            others |= processes - {os.getpid()}
            assert os.getpid() in processes
        assert len(others) == 1
        assert all(map(_is_there, others))
    assert not any(map(_is_there, others))


@pytest.mark.parametrize("module", ["colorsys", "no_module_of_this_name"])
def test_the_other_process_begins_before_there_is_work_and_serves_then(module: str) -> None:
    """It has imported what it was told to, and no third one starts; a module that there is not costs nothing."""
    with kept():
        prepare(module)
        assert not beside._others.cache_info().currsize
        prepare(module, start=True)
        prepare(module)
        with Shared(partial(has_imported, module), ITEMS) as shared:
            _, (other, is_there) = shared._done.get(timeout=LONG_S)
            answers = {answer for _, answer in shared.results()}
        assert {process for process, _ in answers} <= {other, os.getpid()}
        assert other != os.getpid()
        assert is_there == (module == "colorsys")
    assert not _is_there(other)


def test_every_item_comes_once() -> None:
    """All results come, with their items, whoever had them."""
    with kept(), Shared(worked, ITEMS) as shared:
        assert sorted(item for item, _ in shared.results()) == list(ITEMS)


def test_what_the_other_process_dies_of_is_done_here() -> None:
    """A process that dies costs time and no result."""
    with kept(), Shared(partial(die_elsewhere, os.getpid()), ITEMS) as shared:
        assert sorted(shared.results()) == [(item, -item) for item in ITEMS]


def test_an_error_is_raised_here_whoever_met_it() -> None:
    """What the function raises of an item is raised where the results are asked for."""
    with pytest.raises(LookupError, match="seven"), kept(), Shared(fail_at_seven, ITEMS) as shared:
        list(shared.results())


def test_work_that_nobody_waits_for_is_given_up() -> None:
    """Who leaves early does not wait for the other process."""
    started_s = time.monotonic()
    with kept(), Shared(partial(hang_elsewhere, os.getpid()), ITEMS):
        time.sleep(SLOW_S)
    assert time.monotonic() - started_s < LONG_S / 2
