"""Text in the planes of predictions, sweeps and comparisons: no word overlaps another, a mark or the edge."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from comparing import block, compared, fewer_bytes, on_gpu, page_of, timed
from drawn_text import DrawnPath, path_troubles
from forecasting import SQUARE, plane, row
from planes import random_kernels
from support.loops import for_all
from sweeping import gemms, ladder, the_sweep

from rooflens.model.predict.forecast import Row
from rooflens.report.forecast.plane import predict_spec
from rooflens.report.page.sweeps import sweep_spec

pytestmark = pytest.mark.if_changed("imports", "fixtures")

WIDTHS = (250, 270, 300, 490, 560, 640, 700, 740, 800)
"""Ends and middles of the usual widths of every class of sizes."""

FORECASTS = [
    row("gemm", **SQUARE),
    row("batched-gemm", batch="16", **SQUARE),
    row("gemm", gpu="a100-sxm4-80gb", m="n", k="n", n="64:4096:+64"),
    row("decode", batch="1:1024:x2"),
    row("prefill", length="512"),
    row("decode", batch="16", length="8192"),
    row("attention-naive", length="128:16384:x2"),
    row("custom", flop="64000000000", bytes="1000000000", measured_s=64e9 / 120e12),
]


def found(spec: dict[str, Any], level: str = "") -> list[object]:
    """List all that overlaps at every width."""
    return [(width, pair) for width in WIDTHS for pair in path_troubles(DrawnPath(spec, width, level))]


@for_all("one", FORECASTS, lambda one: f"{one.operation.name}-{len(one.steps)}")
def test_words_of_predictions_keep_apart(one: Row) -> None:
    """Labels of sizes and parts, of roofs and ridges, and of what was measured overlap nothing."""
    assert found(predict_spec(plane(one), title="t", subtitle=["s"], places={})) == []


@pytest.mark.parametrize("reports", [gemms((128, 1024, 4096, 8192)), ladder()], ids=["gemm", "ladder"])
def test_words_of_sweeps_keep_apart(reports: Any) -> None:
    """Labels of cases overlap nothing, and at most one of them finds no place."""
    spec = sweep_spec(the_sweep(reports), title="t", subtitle=["s"], groups={})
    assert found(spec) == []
    for slot in range(3):
        assert sum(not step["p"][slot] for step in spec["datasets"]["steps"]) <= 1


@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_words_of_comparisons_keep_apart(seed: int, shares: bool) -> None:  # noqa: FBT001 - a case
    """Names of random kernels that moved anywhere overlap nothing, at every level."""
    random = Random(100 + seed)  # noqa: S311 - a test repeats itself
    before = random_kernels(seed)
    head = [timed(fewer_bytes(a, random.uniform(0.4, 2)), random.uniform(0.4, 2)) for a in before]
    if shares:
        head = [on_gpu(a, "NVIDIA H200") for a in head]
    html = page_of([compared(before, head, (1.0,))])
    if "spec-arrows-p0" not in html or "labels" not in block(html, "spec-arrows-p0")["datasets"]:
        return
    spec = block(html, "spec-arrows-p0")
    for level in {one["level"] for one in spec["datasets"]["dots"]}:
        assert found(spec, level) == []
