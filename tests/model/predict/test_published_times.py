"""Published times against our floors: none lies below, and what they attain holds for GPUs left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from rooflens.model.predict.published import Attainable, Point, attainable, floor_words, published_points, time_words

DOCUMENT = Path(__file__).parents[3] / "docs" / "explanation" / "accuracy.md"


def test_no_published_time_lies_below_our_floor() -> None:
    """The best kernels of 168 reach 5 to 91 % of what no kernel can beat."""
    below = [point for point in published_points() if point.eta > 1]
    assert below == []
    assert len(published_points()) == 168


def left_out(gpu: str) -> tuple[int, int]:
    """Count the times of a GPU that lie in the interval of all others, and all of its times."""
    own = [point for point in published_points() if point.gpu == gpu]
    others = [point for point in published_points() if point.gpu != gpu]
    return sum(_is_in(point, attainable(point.operation, point.floor_s, others)) for point in own), len(own)


def _is_in(point: Point, interval: Attainable | None) -> bool:
    return interval is not None and interval.low_s <= point.time_s <= interval.high_s


def test_times_of_a_gpu_lie_in_the_interval_of_the_others() -> None:
    """Four of five do, and docs/explanation/accuracy.md has the table of it."""
    counts = {gpu: left_out(gpu) for gpu in sorted({point.gpu for point in published_points()})}
    inside, all_of_them = (sum(numbers) for numbers in zip(*counts.values(), strict=True))
    assert inside >= 0.8 * all_of_them
    rows = [f"| {gpu} | {times} | {found} |" for gpu, (found, times) in counts.items()]
    rows = [*rows, f"| all | {all_of_them} | {inside} |"]
    assert "\n".join(rows) in DOCUMENT.read_text(encoding="utf-8"), "\n".join(rows)


def test_the_shares_of_operations_are_those_of_the_document() -> None:
    """docs/explanation/accuracy.md says for each operation what its published kernels take of the floor."""
    rows = []
    for name in sorted({point.operation for point in published_points()}):
        found = attainable(name, 1.0)
        assert found is not None
        times = sum(point.operation == name for point in published_points())
        words = floor_words(1.0, found).partition("reach ")[2].replace(" times that (median ", " | ").rstrip(")")
        rows.append(f"| {name} | {times} | {words.partition(';')[0]} | {len(found.sources)} |")
    assert "\n".join(rows) in DOCUMENT.read_text(encoding="utf-8"), "\n".join(rows)


def test_kinds_share_their_points_and_others_have_none() -> None:
    """Softmax is judged by the norms, an embedding by nothing, and what has no floor neither."""
    softmax = attainable("softmax", 1e-3)
    assert softmax is not None
    assert softmax == attainable("rmsnorm", 1e-3)
    assert not softmax.proven
    assert attainable("embedding", 1e-3) is None
    assert attainable("gemm", 0.0) is None
    assert attainable("gemm", 1e-3, []) is None


@pytest.mark.parametrize(
    ("time_s", "words"),
    [
        (0.9e-3, "0.900 times the floor: it did less work than predicted, or the time is wrong"),
        (
            1.2e-3,
            "1.20 times the floor and 0.800 times the median of published kernels: faster than half of them, stop",
        ),
        (1.8e-3, "1.80 times the floor and 1.20 times the median of published kernels: slower than half of them; the"),
        (4e-3, "4.00 times the floor and 2.67 times the median of published kernels: slower than all of them"),
    ],
)
def test_a_time_is_set_against_both(time_s: float, words: str) -> None:
    """Below the floor, among the faster half, among the slower half, beyond all."""
    found = Attainable(low_s=1.1e-3, typical_s=1.5e-3, high_s=2e-3, points=4, sources=("a", "b"))
    assert words in time_words(time_s, 1e-3, found)


def test_words_without_published_kernels() -> None:
    """Only the floor is there to be compared with."""
    assert floor_words(1e-3, None) == "floor 1.00 ms"
    assert time_words(2e-3, 1e-3, None) == "2.00 ms is 2.00 times the floor"
