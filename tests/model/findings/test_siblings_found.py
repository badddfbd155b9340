"""Kernels of one report that do the same work: which ones count, and what is reported for the slower one."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from msgspec.structs import replace
from support.kernels import make_kernel

from rooflens.model.analyze import analyze
from rooflens.model.findings import siblings
from rooflens.model.findings.siblings import SIBLING, with_siblings
from rooflens.model.records import Analysis, Limit
from rooflens.model.verdict.thresholds import default_thresholds

_LIMITS = default_thresholds()


def _made(name: str, time_ns: float, flop: float | None = 2e9, written: float | None = 1e6, **changes: Any) -> Analysis:
    counters = {"duration_ns": time_ns, "l2_write_bytes": written, "global_ideal_sectors": 1e6}
    made = analyze(make_kernel(counters, name=f"{name}<4>", function_name=name))
    by = changes.pop("by", "FP32 arithmetic")
    limit = Limit(changes.pop("limit", 100.0), by=by, proven=by != "DRAM traffic")
    return replace(
        made,
        flop_total=flop,
        flop={changes.pop("dtype", "fp32"): flop or 0.0},
        verdict=replace(made.verdict, limit=limit, confidence="high"),
    )


@pytest.mark.parametrize(
    ("other", "confidence"),
    [
        (_made("tiled", 2.5e5), "medium"),
        (_made("tiled", 2.5e5, flop=2.09e9), "medium"),
        (_made("tiled", 2.5e5, flop=2.2e9), None),
        (_made("tiled", 2.5e5, written=1.5e6), "low"),
        (_made("tiled", 2.5e5, written=None), "low"),
        (_made("tiled", 2.5e5, written=3e6), None),
        (_made("tiled", 2.5e5, flop=2.09e9, written=None), None),
        (_made("tiled", 8.5e5), None),
        (_made("naive", 2.5e5), None),
        (_made("tiled", 4999.0), None),
    ],
    ids=["same", "5 %", "10 %", "output", "no output", "other output", "unsure", "1.18x", "one name", "short"],
)
def test_the_same_work_is_as_many_operations_and_an_output_of_the_same_size(
    other: Analysis, confidence: str | None
) -> None:
    """With 1 ms and 250 us the slower kernel refers to the faster, with a gain if the work is certainly the same."""
    slow, fast = with_siblings([_made("naive", 1e6), other], _LIMITS)
    said = [finding for finding in slow.findings if finding.id == SIBLING]
    assert [finding.confidence for finding in said] == ([confidence] if confidence else [])
    assert fast == other
    if said:
        move = slow.verdict.moves[-1].text.replace("\u00a0", " ")
        assert move == "compare it with `tiled`, which in this report does the same 2.00 GFLOP 4.0x faster (250 µs)"
        assert (said[0].gain and said[0].gain.factor) == (4.0 if confidence == "medium" else None)


def test_without_operations_names_must_be_alike() -> None:
    """Two copies of equally many bytes may have nothing to do with each other."""
    slow = _made("transpose_naive", 1e6, flop=None)
    for name, said in (("transpose_tiled", True), ("relu", False)):
        found = with_siblings([slow, _made(name, 2.5e5, flop=None)], _LIMITS)[0]
        assert any(finding.id == SIBLING for finding in found.findings) is said


@pytest.mark.parametrize(
    ("changes", "gain"),
    [
        ({"limit": 2.0}, None),
        ({"limit": 2.0, "by": "DRAM traffic"}, "bytes"),
        ({"limit": 2.0, "dtype": "fp64"}, "types"),
    ],
)
def test_a_sibling_beyond_the_limit_moves_fewer_bytes_or_does_other_work(
    changes: dict[str, Any], gain: str | None
) -> None:
    """Four times as fast with a limit of two: by fewer bytes or another type; otherwise it is not a sibling."""
    slow = with_siblings([_made("naive", 1e6, **changes), _made("tiled", 2.5e5)], _LIMITS)[0]
    assert [finding.gain.changes for finding in slow.findings if finding.gain and finding.id == SIBLING] == (
        [gain] if gain else []
    )


def test_libraries_are_not_told_of_faster_kernels() -> None:
    """Callers cannot change a library's code, but a library's kernel may be the faster one."""
    library, own = _made("ampere_sgemm_128x64_nn", 1e6), _made("gemm", 2.5e5)
    assert with_siblings([library, own], _LIMITS) == (library, own)
    told = with_siblings([replace(own, kernel=_made("gemm", 4e6).kernel), library], _LIMITS)[0]
    assert any(finding.id == SIBLING for finding in told.findings)


def _sibling(analysis: Analysis) -> float | None:
    """Return the time of the kernel that a finding names; None without one."""
    return next((one.evidence[1].value for one in analysis.findings if one.id == SIBLING), None)


def test_of_all_that_do_the_same_work_the_fastest_is_named() -> None:
    """Among many kernels a kernel refers to the fastest of those that it refers to if the two stand alone."""
    chance = Random(1)  # noqa: S311 - repeatable
    amounts = (1.8e9, 1.9e9, 1.9001e9, 1.99e9, 2e9, 2.01e9, 2.099e9, 2.1e9, 2.2e9, None)
    written: dict[tuple[str, float | None], float | None] = {}
    many = []
    for _ in range(60):
        name = chance.choice(("copy_rows", "copy_tiled", "naive", "tiled", "ampere_sgemm_128x64_nn"))
        amount = chance.choice(amounts)
        output = written.setdefault((name, amount), chance.choice((1e6, 1.04e6, 1.6e6, 3e6, None)))
        many.append(_made(name, chance.choice((2e4, 1e5, 2e5, 5e5, 1e6)), amount, output))
    wrong = []
    for at, (one, told) in enumerate(zip(many, with_siblings(many, _LIMITS), strict=True)):
        alone = (_sibling(with_siblings([one, other], _LIMITS)[0]) for other in many)
        if _sibling(told) != min(filter(None, alone), default=None):
            wrong.append(at)
    assert wrong == []
    assert sum(_sibling(told) is not None for told in with_siblings(many, _LIMITS)) > 10


def test_twice_as_many_kernels_of_the_same_work_take_twice_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel is held against few others, however many do the same work under other names."""
    held: list[object] = []
    match = siblings._match
    monkeypatch.setattr(siblings, "_match", lambda *both: (held.append(both), match(*both))[1])
    one = _made("kernel", 1e6)
    counts = []
    for size in (200, 400):
        held.clear()
        names = [f"kernel{number}" for number in range(size)]
        many = [
            replace(
                one, kernel=replace(one.kernel, name=name, counters={**one.kernel.counters, "duration_ns": 1e6 + at})
            )
            for at, name in enumerate(names)
        ]
        slow = replace(one, kernel=replace(one.kernel, counters={**one.kernel.counters, "duration_ns": 5e6}))
        told = with_siblings([*many, *[slow] * size], _LIMITS)
        assert sum(_sibling(each) is not None for each in told) == size
        counts.append(len(held))
    assert counts[1] <= 2.2 * counts[0]
