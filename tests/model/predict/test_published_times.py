"""Published times compared with our floors: none is below, and the attained shares hold for left-out sources."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from rooflens.format import significant
from rooflens.model.predict.compared import compared_times, time_words
from rooflens.model.predict.forecast import forecast
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.predict.published import (
    LONG_S,
    PublishedPoint,
    PublishedTimes,
    attainable,
    floor_words,
    published_points,
)
from rooflens.model.roofline.datasheets import the_datasheet

DOCUMENT = Path(__file__).parents[3] / "docs" / "explanation" / "accuracy.md"

PRODUCTS = ("gemm", "batched-gemm", "grouped-gemm")
NORMS = ("rmsnorm", "layernorm", "softmax")
ALONE = ("attention-flash", "attention-flash-backward", "cross-entropy-loss", "decode", "elementwise", "gemv")
KINDS = {"products": PRODUCTS, "norms and softmax": NORMS, **{name: (name,) for name in ALONE}}


def test_no_published_time_lies_below_our_floor() -> None:
    """The best of 261 kernels take at least 1.08 times the floor from cold caches, which no kernel can beat."""
    below = [point for point in published_points() if point.over_floor < 1]
    assert below == []
    assert len(published_points()) == 261


GEFORCE_PRODUCTS = Path(__file__).with_name("geforce_products.csv")
"""Square products on GeForce boards that people have published, with addresses; `apart`: why one tells nothing."""


def test_no_product_on_a_board_above_its_rated_clock_lies_below_the_floor() -> None:
    """Of 56 products on 17 boards 31 lie below the floor at the rated clock, none at the highest one."""
    lines = GEFORCE_PRODUCTS.read_text(encoding="utf-8").splitlines()
    rows = [row for row in csv.DictReader(lines) if not row["apart"]]
    over, over_rated = [], []
    for row in rows:
        size = int(row["size"])
        step = forecast(OPERATIONS["gemm"], dict.fromkeys("mnk", size), row["dtype"], the_datasheet(row["gpu"]))
        time_s = step.flop / (float(row["tflop_per_s"]) * 1e12)
        over.append((time_s / step.t_lower_s, row))
        over_rated.append(time_s / (step.flop / step.rated_flop_per_s))
    assert [one for one in over if one[0] < 1] == []
    assert (len(rows), len({row["gpu"] for row in rows})) == (56, 17)
    assert sum(ratio < 1 for ratio in over_rated) == 31


def test_times_of_data_that_fits_in_l2_have_a_warm_floor_too() -> None:
    """The warm floor is below the cold one if DRAM sets that, and equal if arithmetic does; no time is below it."""
    wrong = []
    for point in published_points():
        gpu = the_datasheet(point.gpu)
        found = forecast(OPERATIONS[point.operation], point.sizes, point.dtype, gpu)
        assert gpu.l2_size is not None
        warm_s = found.t_lower_warm_s
        if (warm_s is not None) != (found.moved_bytes <= gpu.l2_size.value):
            wrong.append((point, "fits"))
        elif warm_s is not None and not (warm_s < point.floor_s or warm_s == max(found.t_math_s, found.special_s)):
            wrong.append((point, "no lower"))
        elif warm_s is not None and point.time_s < warm_s:
            wrong.append((point, "beaten"))
    assert wrong == []


def left_out() -> Iterator[tuple[str, str, list[tuple[PublishedPoint, PublishedTimes]]]]:
    """Yield each operation and source with its tuned times, and the interval of all other sources for each."""
    points = published_points()
    for operation in (name for operations in KINDS.values() for name in operations):
        own = [point for point in points if point.operation == operation and not point.untuned]
        for source in sorted({point.source for point in own}):
            others = [point for point in points if point.source != source]
            mine = [point for point in own if point.source == source]
            judged = [(point, attainable(operation, point.floor_s, others, rereads=point.rereads)) for point in mine]
            if known := [(point, interval) for point, interval in judged if interval is not None]:
                yield operation, source, known


FEW = {("rmsnorm", "linkedin/Liger-Kernel"), ("cross-entropy-loss", "ScalingIntelligence/KernelBench")}
"""Six and one times, of which the interval of the others holds less than four of five: the document says so."""


def test_four_of_five_times_of_a_source_lie_in_the_interval_of_the_others() -> None:
    """This holds for each operation and source but the two that the table of docs/explanation/accuracy.md shows."""
    rows, short = [], set()
    for operation, source, judged in left_out():
        inside = sum(interval.low_s <= point.time_s <= interval.high_s for point, interval in judged)
        width = significant(median(interval.high_s / interval.low_s for _, interval in judged), 3)
        rows.append(f"| {operation} | {source} | {len(judged)} | {inside} | {width} |")
        if inside < 0.8 * len(judged):
            short.add((operation, source))
    assert short == FEW
    assert "\n".join(rows) in DOCUMENT.read_text(encoding="utf-8"), "\n".join(rows)


def test_the_interval_of_a_product_is_narrow_from_20_us_on() -> None:
    """Its ends differ by a factor of at most 2.5; below the length of a launch times may be ten times the floor."""
    for floor_s in (LONG_S, 1e-4, 1e-3, 1.0):
        for name in PRODUCTS:
            found = attainable(name, floor_s)
            assert found is not None
            assert found.proven
            assert floor_s < found.low_s < found.typical_s < found.high_s <= 2.5 * found.low_s
    short = attainable("gemm", 1e-6)
    assert short is not None
    assert short.high_s > 10e-6


def test_a_longer_floor_never_takes_less() -> None:
    """There is no step down between short kernels, which have a launch added, and long ones."""
    floors_s = [at * 1e-6 for at in range(1, 60)]
    found = [attainable("gemm", floor_s) for floor_s in floors_s]
    for part in ("low_s", "typical_s", "high_s"):
        times_s = [getattr(one, part) for one in found]
        assert times_s == sorted(times_s)


def test_the_shares_of_operations_are_those_of_the_document() -> None:
    """docs/explanation/accuracy.md gives the share of the floor, and the attainable one, for each kind."""
    rows = []
    for kind, operations in KINDS.items():
        found = attainable(operations[0], 1.0)
        assert found is not None
        own = [point for point in published_points() if point.operation in operations and not point.untuned]
        over = [point.over_floor for point in own if point.is_long]
        taken = f"{significant(min(over), 3)} to {significant(max(over), 3)}" if over else "-"
        low, typical, high = (significant(time_s, 3) for time_s in (found.low_s, found.typical_s, found.high_s))
        rows.append(f"| {kind} | {len(own)} | {taken} | {low} to {high} | {typical} | {len(found.sources)} |")
    assert "\n".join(rows) in DOCUMENT.read_text(encoding="utf-8"), "\n".join(rows)


def test_times_that_are_not_tuned_are_told_in_the_document() -> None:
    """docs/explanation/accuracy.md lists each reason with the number of such times."""
    reasons = [point.untuned for point in published_points() if point.untuned]
    rows = "\n".join(f"| {reason} | {reasons.count(reason)} |" for reason in sorted(set(reasons)))
    assert rows in DOCUMENT.read_text(encoding="utf-8"), rows


def test_kinds_share_their_points_and_others_have_none() -> None:
    """Softmax uses the points of norms and a batch those of products; an embedding, or what lacks a floor, has none."""
    assert attainable("softmax", 1e-3) == attainable("rmsnorm", 1e-3)
    assert attainable("batched-gemm", 1e-3) == attainable("gemm", 1e-3)
    assert attainable("embedding", 1e-3) is None
    assert attainable("gemm", 0.0) is None
    assert attainable("gemm", 1e-3, []) is None


def test_one_source_proves_nothing() -> None:
    """Elementwise work, decoding and gradients of attention were each measured by only one source."""
    for name in ("elementwise", "decode", "attention-flash-backward"):
        found = attainable(name, 1e-3)
        assert found is not None
        assert not found.proven
        assert "unproven: one source" in floor_words(1e-3, found)


@pytest.mark.parametrize(
    ("time_s", "words"),
    [
        (
            0.5e-3,
            "0.500 times the floor: the card ran above 2.82 GHz, its operands or sums have a narrower type, or it did",
        ),
        (
            0.9e-3,
            "0.900 times the floor from cold caches: L2 held some of its data, its operands or sums have a narrower",
        ),
        (
            1.2e-3,
            "1.20 times the floor and 0.800 times the median of published kernels: faster than half of them; stop",
        ),
        (1.8e-3, "1.80 times the floor and 1.20 times the median of published kernels: slower than half of them; the"),
        (4e-3, "4.00 times the floor and 2.67 times the median of published kernels: slower than nearly all of them"),
    ],
)
def test_a_time_is_set_against_both(time_s: float, words: str) -> None:
    """Below the warm floor, below the floor, in the faster half, in the slower half, beyond all."""
    found = PublishedTimes(low_s=1.1e-3, typical_s=1.5e-3, high_s=2e-3, points=4, sources=("a", "b"))
    assert words in time_words(time_s, 1e-3, found, without_dram_s=0.6e-3, clock_hz=2.82e9)


@pytest.mark.parametrize(
    ("time_s", "floor", "attained"),
    [
        (0.59e-3, "too fast", "faster than half"),
        (0.6e-3, "below the floor", "faster than half"),
        (1e-3, "near the floor", "faster than half"),
        (1.25e-3, "near the floor", "faster than half"),
        (1.5e-3, "above the floor", "faster than half"),
        (1.51e-3, "above the floor", "slower than half"),
        (2.01e-3, "above the floor", "slower than most"),
    ],
)
def test_a_time_is_judged_by_floor_and_published_kernels(time_s: float, floor: str, attained: str) -> None:
    """The verdict changes at the time without DRAM, at the floor, at 80 % of its rate, at the median and at 95 %."""
    found = PublishedTimes(low_s=1.1e-3, typical_s=1.5e-3, high_s=2e-3, points=4, sources=("a", "b"))
    rows = compared_times(time_s * 1e9, 1e6, found, 0.6e6)
    assert [(row.name, row.verdict) for row in rows] == [("floor", floor), ("attainable", attained)]
    assert [row.factor for row in rows] == pytest.approx([time_s / 1e-3, time_s / 1.5e-3])
    assert [row.name for row in compared_times(1e6, 1e6, None)] == ["floor"]


def test_a_clock_that_is_known_is_no_reason() -> None:
    """Counters give the clock of a measured kernel, and its peak is for that."""
    assert "the card ran" not in time_words(0.5e-3, 1e-3, None, without_dram_s=0.6e-3)


def test_a_kernel_for_all_steps_is_told_from_one_for_each() -> None:
    """Between both floors a time is that of a fused kernel."""
    rows = compared_times(0.8e6, 0.7e6, None, 0.6e6, 1e6)
    assert [(row.name, row.verdict) for row in rows] == [("floor", "near the floor"), ("separate", "fused")]
    rows = compared_times(1.3e6, 0.7e6, None, 0.6e6, 1e6)
    assert [(row.name, row.verdict) for row in rows] == [("floor", "above the floor"), ("separate", "above the floor")]


def test_rows_too_long_for_an_sm_are_read_twice_by_most() -> None:
    """58,368 numbers fit; the floor has longer rows once, and the best kernel may, but typical ones take half more."""
    short, long = (
        forecast(OPERATIONS["softmax"], {"rows": 4096, "width": width}, "fp32", the_datasheet("h100-sxm"))
        for width in (58_368, 58_369)
    )
    assert (short.rereads, long.rereads) == (1, pytest.approx(1.5))
    assert short.attainable is not None
    assert long.attainable is not None
    assert long.attainable.low_s == pytest.approx(short.attainable.low_s, rel=1e-3)
    assert long.attainable.typical_s == pytest.approx(1.5 * short.attainable.typical_s, rel=1e-3)
    assert long.attainable.high_s == pytest.approx(1.5 * short.attainable.high_s, rel=1e-3)


def test_words_without_published_kernels() -> None:
    """Only the floors can be compared; where arithmetic sets the floor, it is the same from warm caches."""
    assert floor_words(1e-3, None) == "floor 1.00 ms"
    assert floor_words(1e-3, None, 0.4e-3) == "floor 1.00 ms from cold caches, 400 µs with its data in L2"
    assert floor_words(1e-3, None, 1e-3) == "floor 1.00 ms from cold caches or with its data in L2"
    assert floor_words(1e-3, None, fused_s=0.8e-3) == "floor 1.00 ms as separate kernels, 800 µs fused"
    assert time_words(2e-3, 1e-3, None) == "2.00 ms is 2.00 times the floor"
