"""Hand-picked counters of real kernels: held to the full report of the same launch."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from rooflens.ingest.reports.resolve import resolve
from rooflens.model.analyze import analyze
from rooflens.model.records import Analysis, Kernel
from rooflens.model.roofline.datasheets import datasheet_of
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.words.verdict import verdict_sentence

_FEWEST = 0.95
"""Lists that draw a slope and a flat roof, at least."""
_BY_CLOCK = 0.12
"""A datasheet's clock may be that much above the profiled one, of memory."""

SASS = "{}__sass_thread_inst_executed_op_{}_pred_on.sum"
SINGLE = [SASS.format("sm", f"f{op}") for op in ("add", "mul", "fma")]
DOUBLE = [SASS.format("smsp", f"d{op}") for op in ("add", "mul", "fma")]
OWN: dict[str, list[str]] = {
    "rates": ["gpu__time_duration.sum", "dram__bytes.sum.per_second", *(f"{name}.per_second" for name in SINGLE)],
    "cycles of the clock domain": [
        "gpc__cycles_elapsed.max",
        "gpc__cycles_elapsed.avg.per_second",
        "dram__sectors_read.sum",
        "dram__sectors_write.sum",
        *(name.replace(".sum", ".sum.per_cycle_elapsed") for name in SINGLE),
    ],
    "means over SMs": [
        "gpu__time_duration.avg",
        "dram__bytes_read.sum",
        "dram__bytes_write.sum",
        *(name.replace(".sum", ".avg") for name in SINGLE),
    ],
    "both precisions and the caches": [
        "gpu__time_duration.sum",
        "dram__bytes.sum",
        "lts__t_bytes.sum",
        "l1tex__t_bytes.sum",
        *SINGLE,
        *DOUBLE,
    ],
    "a per cent of DRAM": [
        "gpu__time_duration.sum",
        "dram__bytes_read.sum.per_second",
        "dram__bytes_write.sum.per_second",
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        *SINGLE,
    ],
}
"""Further lists: other documented spellings of the same quantities."""


def stored(kernel: Kernel) -> dict[str, float]:
    """Write what a kernel's resolved counters say under every documented name that the lists ask for."""
    known, sms = kernel.counters, kernel.counters.get("sm_count", 0.0)
    time_ns, clock_hz = known["duration_ns"], known.get("sm_clock_hz", 0.0)
    cycles = time_ns * clock_hz / 1e9
    names = {f"gpu__time_duration.{rollup}": time_ns for rollup in ("sum", "avg", "max")}
    for unit in ("sm", "smsp", "gpc"):
        names |= {f"{unit}__cycles_elapsed.{rollup}": cycles for rollup in ("avg", "max")}
        names[f"{unit}__cycles_elapsed.avg.per_second"] = clock_hz
    for base, amount in _amounts(known).items():
        names[f"{base}.sum"] = amount
        names[f"{base}.sum.per_second"] = amount / time_ns * 1e9
        names[f"{base}.sum.per_cycle_elapsed"] = amount / cycles if cycles else 0.0
        if sms:
            names[f"{base}.avg"] = amount / (sms * (4 if base.startswith("smsp") else 1))
    if (share := known.get("dram_bus_share")) is not None:
        for base in ("dram__throughput", "gpu__dram_throughput"):
            names[f"{base}.avg.pct_of_peak_sustained_elapsed"] = share * 100
    return names


def _amounts(known: Mapping[str, float]) -> dict[str, float]:
    """Return amounts by the names of their metrics without roll-up, as far as they are known."""
    amounts = {"lts__t_bytes": known.get("l2_tag_bytes"), "l1tex__t_bytes": known.get("l1_tag_bytes")}
    parts = {"": "dram_bytes", "_read": "dram_read_bytes", "_write": "dram_write_bytes"}
    for part, counter in parts.items():
        amounts[f"dram__bytes{part}"] = known.get(counter)
        amounts[f"dram__sectors{part}"] = None if counter not in known else known[counter] / 32
    for op in (f"{letter}{op}" for letter in "dfh" for op in ("add", "mul", "fma")):
        for unit in ("sm", "smsp"):
            amounts[SASS.format(unit, op).removesuffix(".sum")] = known.get(f"{op}_threads")
    return {base: amount for base, amount in amounts.items() if amount is not None}


def lists() -> Iterator[tuple[str, list[str]]]:
    """Yield our own lists, and those of the outcomes beside the corpus."""
    yield from OWN.items()
    shared = Path(os.environ.get("ROOFLENS_CORPUS") or Path(__file__).parents[3] / "shared" / "corpus").parent
    table = shared / "outcomes" / "lists.tsv"
    if table.exists():
        with table.open(encoding="utf-8", newline="") as file:
            yield from ((row["list"], row["names"].split(",")) for row in csv.DictReader(file, delimiter="\t"))


def listed(kernel: Kernel, names: list[str], numbers: Mapping[str, float]) -> Analysis | None:
    """Analyze the list of a kernel: GPU and launch are known, and nothing else; None without bytes or FLOPs."""
    own = {name: numbers[name] for name in names if name in numbers}
    if not any("inst_executed_op" in name for name in own) or not any(name.startswith("dram__") for name in own):
        return None
    gpu = datasheet_of(kernel.gpu)
    launch = {"launch__grid_size": kernel.grid_blocks, "launch__block_size": kernel.block_threads}
    sms = {} if gpu is None else {"device__attribute_multiprocessor_count": gpu.sm_count.value}
    found = resolve({**own, **{name: float(value) for name, value in launch.items() if value}, **sms})
    bare = Kernel(
        digest=kernel.digest,
        source=kernel.source,
        index=kernel.index,
        name=kernel.name,
        function_name=kernel.function_name,
        status="ok",
        gpu=kernel.gpu,
        compute_capability=kernel.compute_capability,
        grid=kernel.grid,
        block=kernel.block,
        counters=found.values,
        counter_sources=found.sources,
    )
    return analyze(bare)


@pytest.fixture(scope="module")
def chosen(kernels: list[Kernel]) -> list[tuple[Kernel, Analysis]]:
    """Choose kernels with FLOPs by thread counters, DRAM bytes and a peak: two a program."""
    seen: Counter[str] = Counter()
    found = []
    for kernel in kernels:
        program = kernel.source.rpartition("/")[2].partition("__")[0]
        whole = analyze(kernel) if not kernel.failed and kernel.counters.get("dram_bytes") else None
        if whole is None or not whole.flop_total or (kernel.duration_ns or 0) < 5000 or seen[program] > 1:
            continue
        if not kernel.counters.get("ffma_threads") and not kernel.counters.get("dfma_threads"):
            continue
        if whole.levels["dram"].peak_source in {"report", "rate"}:
            seen[program] += 1
            found.append((kernel, whole))
    return found


def _is_wrong(part: Analysis, whole: Analysis) -> bool:
    bounds = {part.verdict.bound, whole.verdict.bound}
    is_open = bool(part.verdict.or_bound) or part.verdict.bound == "unknown"
    return len(bounds) > 1 and not is_open and "balanced" not in bounds


def _checks() -> dict[str, Callable[[Analysis, Analysis], bool]]:
    def near(one: float | None, other: float | None, within: float) -> bool:
        return one is not None and other is not None and abs(one / other - 1) <= within

    return {
        "slope": lambda part, whole: near(
            part.levels["dram"].peak_bytes_per_s, whole.levels["dram"].peak_bytes_per_s, _BY_CLOCK
        ),
        "flat roof": lambda part, _: bool(part.flop_peak_per_s),
        "bytes": lambda part, whole: near(part.levels["dram"].amount_bytes, whole.levels["dram"].amount_bytes, 0.02),
        "time": lambda part, whole: near(part.kernel.duration_ns, whole.kernel.duration_ns, 0.02),
    }


def test_any_list_draws_the_whole_roofline(chosen: list[tuple[Kernel, Analysis]]) -> None:
    """Lists of a time, bytes and FLOPs, in any documented spelling, have a slope, a flat roof, and no wrong class."""
    total, opened, wrong = 0, 0, []
    failed: dict[str, list[Any]] = {name: [] for name in _checks()}
    for kernel, whole in chosen:
        numbers = stored(kernel)
        for name, names in lists():
            if (part := listed(kernel, names, numbers)) is None:
                continue
            total += 1
            where = (kernel.source.rpartition("/")[2], kernel.index, name)
            for what, holds in _checks().items():
                if not holds(part, whole):
                    failed[what].append(where)
            opened += bool(part.verdict.or_bound)
            if part.verdict.or_bound and (part.levels["dram"].share or 0.0) >= default_thresholds().bound_share:
                wrong.append((*where, "open at a busy DRAM", verdict_sentence(part)))
            if _is_wrong(part, whole):
                wrong.append((*where, part.verdict.bound, whole.verdict.bound, verdict_sentence(part)))
            limit = part.verdict.limit
            if limit.floor_ns and part.kernel.duration_ns and limit.floor_ns > part.kernel.duration_ns * 1.02:
                wrong.append((*where, "limit", limit))
            if limit.by == "DRAM traffic" and not part.levels["dram"].peak_bytes_per_s:
                wrong.append((*where, "limit without a slope"))
    assert total > 60
    assert wrong == []
    assert {what: places for what, places in failed.items() if len(places) > (1 - _FEWEST) * total} == {}
    assert 0 < opened < total


def test_total_and_types_are_those_that_the_list_counts(chosen: list[tuple[Kernel, Analysis]]) -> None:
    """The FLOPs of a list are the report's of the types that it counts, and the others are named."""
    wrong = []
    for kernel, whole in chosen:
        # Counters of the SASS: an opcode table counts the same.
        counted = analyze(replace(kernel, thread_opcodes={}, warp_opcodes={}))
        numbers = stored(kernel)
        for dtype, letter in (("fp64", "d"), ("fp32", "f")):
            names = [SASS.format("sm", f"{letter}{op}") for op in ("add", "mul", "fma")]
            part = listed(kernel, ["gpu__time_duration.sum", "dram__bytes.sum", *names], numbers)
            if part is None or counted.flop_source.get(dtype) != "sass":
                continue
            if part.flop_total != pytest.approx(counted.flop[dtype], rel=1e-6) or dtype in part.flop_uncounted:
                wrong.append((kernel.source, kernel.index, dtype, part.flop_total, whole.flop))
            if set(part.flop_uncounted) < {"fp64", "fp32", "fp16"} - {dtype}:
                wrong.append((kernel.source, kernel.index, dtype, part.flop_uncounted))
    assert wrong == []
