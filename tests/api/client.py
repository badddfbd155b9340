"""A typical user program, checked by `make lint` with `mypy --strict`, and run by a test.

Each `type: ignore` marks a mistake that the checker must find: an unused mark is an error.
"""

from __future__ import annotations

import sys
from pathlib import Path

import rooflens as rl


def worst(report: rl.Report) -> rl.Kernel:
    """Find the kernel in which most time can be won."""
    return max(report, key=lambda kernel: (kernel.verdict.limit.factor or 1.0) * (kernel.time_share or 0.0))


def describe(kernel: rl.Kernel) -> str:
    """Print what is known about the kernel, each value with its type."""
    verdict: rl.Verdict = kernel.verdict
    limit: float | None = verdict.limit.factor
    first: float | None = verdict.gain.factor if verdict.gain else None
    dram_share: float | None = kernel.levels["dram"].share
    where: list[int | None] = [spot.line for spot in kernel.hotspots(by="line")]
    moves: list[str] = [move.text for move in verdict.moves]
    metric: float | int | str | None = kernel.metric("dram_bytes")
    sampled: float | None = series.interval_ns if (series := kernel.timeline()) else None
    return f"{kernel.key} {verdict.bound} {first} {limit} {dram_share} {where} {moves[:1]} {metric} {sampled}"


@rl.profile(tier="quick")
def double(value: int) -> int:
    """Stand for code that launches kernels."""
    return 2 * value


def main(path: str) -> None:
    """Use each function of the API."""
    report = rl.open(path, kernel=["attention_*", "flash*"])
    first: rl.Kernel = report[0]
    some: rl.Report = report["attention_*"]
    assert len(some) < len(report)
    assert [kernel.key for kernel in report[:1]] == [first.key]
    sys.stdout.write(describe(worst(report)))
    comparison = rl.compare(report, Path(path), threshold=0.05)
    failed: tuple[str, ...] = comparison.failed(0.05)
    forecast = rl.predict("gemm", gpu="h100-sxm", m=4096, n=4096, k=4096, dtype="bf16")
    sys.stdout.write(f"{failed} {forecast.regime} {report.to_arrow().num_rows} {report.to_polars().height}")


def mistakes(report: rl.Report) -> None:
    """Make mistakes; this is type-checked but never run."""
    report[0].to_pandas()  # type: ignore[attr-defined]  # that is a kernel
    report["gemm*"].verdict  # type: ignore[attr-defined]  # noqa: B018 - that is a report
    report[0].hotspots(by="block")  # type: ignore[arg-type]  # there is no such grain
    report[0].verdict.gain.factor  # type: ignore[union-attr]  # noqa: B018 - not every move has one
    report[0].verdict.limit.factor + 1  # type: ignore[operator]
    rl.profile(tier="all")  # type: ignore[call-overload]  # there is no such tier
    double("two")  # type: ignore[arg-type]  # a decorated function keeps its types
    rl.ingest_reports("reports")  # type: ignore[call-arg]  # into which store?
    rl.analyze("report")  # type: ignore[attr-defined]  # there is no such verb


if __name__ == "__main__":
    main(sys.argv[1])
