"""Kernels of one report that do the same work: which ones count, and what is reported for the slower one."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from support.kernels import make_kernel

from rooflens.model.analyze import analyze
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
