"""Short lists of counters, cut from full reports, never contradict the full report."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from generators.partial_sets import metrics_of
from msgspec import Struct
from support.numbers_stored import stored_in

from rooflens.errors import InputError
from rooflens.ingest.reports.inputs import find_inputs, has_name_of_report
from rooflens.ingest.reports.read import read_report
from rooflens.ingest.reports.report import ReadOptions, ReadReport
from rooflens.model.analyze import analyze
from rooflens.model.findings.stalls import stall_shares
from rooflens.model.records import Analysis, Kernel
from rooflens.report.words.verdict import verdict_sentence

LISTS = ("agent-8", "agent-12", "agent-30", "print", "speed-of-light", "warp-states")
_PASSES_DIFFER = 0.002
"""A share that another metric gives was counted in another pass."""
_OF_CLOCKS = ("_clock_hz", "_peak_")
"""The clock of the SMs is that of the GPCs, which another pass counted up to 5 % apart, and peaks are made of it."""
_CYCLES, _BETWEEN = "smsp__average_warps_issue_stalled_", "smsp__average_warp_latency_per_inst_issued.ratio"
_DRAM = "{}.avg.pct_of_peak_sustained_elapsed"

Values = Mapping[str, float]


class Whole(Struct, frozen=True):
    """One kernel of a full report."""

    analysis: Analysis
    values: Values

    @property
    def kernel(self) -> Kernel:
        """The kernel itself."""
        return self.analysis.kernel


def _with_other_forms(values: dict[str, float]) -> dict[str, float]:
    """Add the forms that full reports do not store, computed from those they do."""
    between = values.get(_BETWEEN)
    for name, cycles in list(values.items()):
        if name.startswith(_CYCLES) and between:
            reason = name.removeprefix(_CYCLES).removesuffix("_per_issue_active.ratio")
            values[f"smsp__warp_issue_stalled_{reason}_per_warp_active.pct"] = 100 * cycles / between
    for op in ("ld", "st"):
        base = f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{op}"
        if f"{base}.ratio" in values:
            values[f"{base}.pct"] = 100 * values[f"{base}.ratio"] / 32
    if _DRAM.format("gpu__dram_throughput") in values:
        values.setdefault(_DRAM.format("dram__throughput"), values[_DRAM.format("gpu__dram_throughput")])
    return values


@pytest.fixture(scope="module")
def reports(corpus: Path) -> dict[str, list[Whole]]:
    """Read every report of the corpus with all its stored values."""
    jobs = [job for job in find_inputs([str(corpus)]).jobs if has_name_of_report(job.path)]
    return {
        job.path.name: [Whole(analyze(one.kernel), _with_other_forms(dict(one.numbers))) for one in stored_in(job.path)]
        for job in jobs
    }


def _read(path: Path, options: ReadOptions) -> ReadReport | None:
    """Read a report; None if it is refused."""
    try:
        return read_report(path, path.name, options)
    except InputError:
        return None


def _identity(one: Whole) -> dict[str, str]:
    grid, block = one.kernel.grid or "", one.kernel.block or ""
    named = {"ID": one.kernel.index, "Kernel Name": one.kernel.function_name, "Block Size": block, "Grid Size": grid}
    return {
        **{name: str(value) for name, value in named.items()},
        "Device": "0",
        "CC": one.kernel.compute_capability or "",
    }


def _unit(name: str) -> str:
    return "ns" if "__time_duration" in name else "%" if "pct" in name else "byte" if "__bytes" in name else ""


def _wide(kernels: list[Whole], names: tuple[str, ...]) -> str:
    """Print a raw page: every digit, one column per metric."""
    held = [name for name in names if any(name in one.values for one in kernels)]
    rows = [
        [*_identity(one).values(), *(repr(one.values[n]) if n in one.values else "" for n in held)] for one in kernels
    ]
    head = [*_identity(kernels[0]), *held]
    return _csv([head, ["" if name not in held else _unit(name) for name in head], *rows])


def _long(kernels: list[Whole], names: tuple[str, ...]) -> str:
    """Print as `--metrics` does: one row per metric, per cents and ratios to two digits."""
    head = [*_identity(kernels[0]), "Section Name", "Metric Name", "Metric Unit", "Metric Value"]
    rows = [
        [*_identity(one).values(), "Command line profiler metrics", name, _unit(name), _rounded(name, one.values[name])]
        for one in kernels
        for name in names
        if name in one.values
    ]
    return _csv([head, *rows])


def _rounded(name: str, value: float) -> str:
    return f"{value:,.2f}" if name.endswith(("pct", "ratio", "elapsed", "active", "per_second")) else repr(value)


def _csv(rows: list[list[str]]) -> str:
    stream = io.StringIO()
    csv.writer(stream, quoting=csv.QUOTE_ALL).writerows(rows)
    return stream.getvalue()


def _pairs(
    reports: Mapping[str, list[Whole]], key: str, write: Callable[[list[Whole], tuple[str, ...]], str], folder: Path
) -> Iterator[tuple[Whole, Analysis]]:
    """Yield each kernel with the analysis of a list's counters for it; exports without any share are refused."""
    for wholes in reports.values():
        of_gpu: defaultdict[str | None, list[Whole]] = defaultdict(list)
        for one in wholes:
            of_gpu[one.kernel.gpu].append(one)
        for gpu, members in of_gpu.items():
            path = folder / "cut.csv"
            path.write_text(write(members, metrics_of(key)), encoding="utf-8")
            if (report := _read(path, ReadOptions(gpu=gpu))) is not None:
                yield from zip(members, map(analyze, report.kernels), strict=True)


@pytest.mark.parametrize("write", [_wide, _long])
@pytest.mark.parametrize("key", LISTS)
def test_a_cut_list_contradicts_nothing(
    reports: dict[str, list[Whole]], key: str, write: Callable[[list[Whole], tuple[str, ...]], str], tmp_path: Path
) -> None:
    """Numbers are those of the full report or missing; a different class is given only at low confidence."""
    offenders, compared = [], 0
    for whole, cut in _pairs(reports, key, write, tmp_path):
        compared += 1
        where = f"{whole.kernel.source}#{whole.kernel.index}"
        said, of_whole = cut.verdict, whole.analysis.verdict
        if (
            said.bound not in {of_whole.bound, "unknown"}
            and said.confidence != "low"
            and not _has_few_blocks(cut.kernel)
        ):
            offenders.append(f"{where}: {of_whole.bound}, cut: {verdict_sentence(cut)}")
        offenders += [f"{where}: {name}: {text}" for name, text in _other_numbers(whole, cut.kernel, write is _long)]
    assert offenders == []
    assert compared >= (240 if key != "warp-states" else 50)


def _has_few_blocks(kernel: Kernel) -> bool:
    """Return whether SMs have no block: then no unit that was not measured can be full."""
    return (kernel.grid_blocks or 0) < kernel.counters.get("sm_count", 0.0)


def _other_numbers(whole: Whole, cut: Kernel, is_rounded: bool) -> Iterator[tuple[str, str]]:  # noqa: FBT001
    shares = {f"stall_{reason}_share": share for reason, share in stall_shares(whole.kernel).items()}
    known = {**shares, **whole.kernel.counters}
    for name, value in cut.counters.items():
        source, own = cut.counter_sources[name], whole.kernel.counter_sources.get(name)
        least = 0.0051 if is_rounded else 0.0
        least = least * 0.01 if name.endswith(("_share", "_rate", "_occupancy")) or name.startswith("sol_") else least
        is_other = own is not None and source != own
        least = max(least, _PASSES_DIFFER if is_other else 1e-12)
        if any(part in name for part in _OF_CLOCKS):
            continue
        if name not in known:
            yield name, f"{value} from {source}, of which the full report holds nothing"
        elif value != pytest.approx(known[name], rel=1e-3 if is_rounded else 1e-6, abs=least):
            yield name, f"{value} from {source}, not {known[name]} from {own}"


def test_occupancy_alone_gives_its_facts(reports: dict[str, list[Whole]], tmp_path: Path) -> None:
    """Occupancy alone gives no class except latency, and that surely only where SMs have no block."""
    compared = 0
    for wholes in reports.values():
        if not wholes or wholes[0].kernel.gpu is None:
            continue
        path = tmp_path / "occupancy.csv"
        path.write_text(_wide(wholes, metrics_of("occupancy")), encoding="utf-8")
        report = _read(path, ReadOptions(gpu=wholes[0].kernel.gpu))
        for one, kernel in zip(wholes, report.kernels if report else (), strict=report is not None):
            found = analyze(kernel)
            assert found.verdict.bound in {"unknown", "latency"}
            assert found.verdict.confidence == "low" or _has_few_blocks(kernel)
            for name in ("achieved_occupancy", "theoretical_occupancy"):
                if name in kernel.counters:
                    assert kernel.counters[name] == pytest.approx(one.kernel.counters[name])
                    compared += 1
    assert compared > 200
