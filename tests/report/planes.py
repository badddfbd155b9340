"""Planes for the tests of the roofline: of made and of random kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import Any

from support import samples

from rooflens.model.records import Analysis, AnalyzedReport
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import build_content
from rooflens.report.plane.plane import Plane
from rooflens.report.roofline.chart import roofline_spec
from rooflens.report.roofline.launches import plane

START_UNIX_S = 1_700_000_000

BOUNDS = ("memory", "compute", "latency", "balanced")


def make_plane(analyses: Sequence[Analysis], ranks: Mapping[str, int] = MappingProxyType({})) -> Plane:
    """Place analyses of one GPU."""
    page = build_content([samples.report(analyses)], "test", default_thresholds())
    return plane(page, page.gpus[0], ranks)


def make_spec(
    analyses: Sequence[Analysis], ranks: Mapping[str, int] = MappingProxyType({"k2": 1}), **more: Any
) -> dict[str, Any]:
    """Specify the chart of one GPU, with its first point selected."""
    return roofline_spec(make_plane(analyses, ranks), **{"title": "A100", "picked": "k0"} | more)


def version(at: int, *names: str, name: str = "", seconds: int | None = None) -> AnalyzedReport:
    """Make the report of one version: each is faster than the last, and moves fewer bytes."""
    digest = f"{at:064d}"
    moved = {"dram": 1e9 / (at + 1), "l2": 2e9}
    kernels = [
        samples.analysis(samples.Sample(kernel, "memory", 400 / (at + 1), "dram", moved, {"fp32": 1e9}), index, digest)
        for index, kernel in enumerate(names)
    ]
    run = samples.run(
        digest=digest,
        source=f"reports/{name or f'attention_v{at}'}.ncu-rep",
        created_unix_s=START_UNIX_S + (at if seconds is None else seconds),
    )
    return AnalyzedReport(run, tuple(kernels))


def plane_of(reports: Sequence[AnalyzedReport]) -> Plane:
    """Place the contents of these reports."""
    page = build_content(reports, "test", default_thresholds())
    return plane(page, page.gpus[0])


def spec_of(reports: Sequence[AnalyzedReport]) -> dict[str, Any]:
    """Specify the chart of these reports."""
    return roofline_spec(plane_of(reports), title="A100", picked="")


def random_kernels(seed: int) -> list[Analysis]:
    """Make up to 80 kernels anywhere in the plane, with names of any length."""
    random = Random(seed)  # noqa: S311 -- a test repeats itself
    return [_random_kernel(random, i) for i in range(random.choice((1, 3, 12, 80)))]


def _random_kernel(random: Random, index: int) -> Analysis:
    seconds = 10 ** random.uniform(-6, -2)
    flop = {"fp32": seconds * 10 ** random.uniform(9, 13.2)}
    if random.random() < 0.3:
        flop["tensor_bf16"] = seconds * 10 ** random.uniform(12, 14.4)
    level_bytes = {
        level: sum(flop.values()) / 10 ** random.uniform(-1, 3)
        for level in ("dram", "l2", "l1", "smem")
        if random.random() < 0.8
    }
    name = "k" * random.randint(1, 40) + str(index)
    bound = random.choice(BOUNDS)
    sample = samples.Sample(name, bound, seconds * 1e6, "dram", level_bytes, flop)  # type: ignore[arg-type]
    return samples.analysis(sample, index)


def walk(node: Any) -> Iterator[dict[str, Any]]:
    """Visit every object of a specification."""
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from walk(child)
