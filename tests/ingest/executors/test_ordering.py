"""Hold that what is done side by side comes back in the order in which it was given."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from rooflens.errors import InputError
from rooflens.ingest.executors.opening import find_workers
from rooflens.ingest.executors.ordering import run_in_order


def later_first(number: int) -> int:
    """Take longest for the first ones, and fail for one."""
    time.sleep(0.02 / (1 + number))
    if number == 3:
        raise ValueError("three")
    return number * number


def test_results_come_in_the_order_of_the_items() -> None:
    """Whoever is done first: each item comes with its own result, and one that fails with the reason."""
    with ThreadPoolExecutor(3) as threads:
        found = list(run_in_order(find_workers(threads), later_first, iter(range(7))))
    assert [item for item, _ in found] == [0, 1, 2, 3, 4, 5, 6]
    assert [result for item, result in found if item != 3] == [0, 1, 4, 16, 25, 36]
    assert isinstance(found[3][1], InputError)
