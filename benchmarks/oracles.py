"""Compare rooflens' results for published reports with independent numbers in the same reports.

Ours come from an analysis of the report, theirs from its stored values, read without our resolver. Each row of the
table from `compare` is one comparison over all results that have both. `benchmarks/accuracy.py` prints the rows,
`tests/corpus` checks their tolerances. Rows of the tensor cores are in `oracle_tensors.py`.
"""

from __future__ import annotations

import csv
import gzip
from decimal import Decimal
from typing import TYPE_CHECKING

from msgspec.structs import replace
from oracle_rows import AS_USUAL, COUNTS, PASSES, ROUNDED, SAME_COUNTERS, Pair, Row, pair_of, relative
from oracle_tensors import products, published_warpgroup, tensor_activity, tensor_counters

from rooflens.ingest.reports.resolve import resolve
from rooflens.model.analyze import analyze
from rooflens.model.roofline.units import DATA, L2_INTERNAL, SHARED_DATA, wavefronts_a_cycle
from rooflens.model.verdict.nvidia_rules import agrees, read_nvidia

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from oracle_rows import Result

    from rooflens.model.records import Kernel

DURATION = "gpu__time_duration.sum"
DRAM_PCT = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
SMEM_PCT = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed"
TO_L2 = ("l1tex__m_xbar2l1tex_read_bytes.sum", "l1tex__m_l1tex2xbar_write_bytes.sum")
ATOMICS = ("lts__t_sectors_srcunit_tex_op_atom_dot_alu.sum", "lts__t_sectors_srcunit_tex_op_atom_dot_cas.sum")
DRAM_PARTS = (
    ("dram__bytes_read.sum", "dram__bytes_write.sum"),
    ("dram__bytes_op_read.sum", "dram__bytes_op_write.sum"),
)
SASS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
SM_CLOCK = "smsp__cycles_elapsed.avg.per_second"
SOL_COUNTERS = ("sol_compute", "sol_memory")
"""Our names of NVIDIA's Speed-Of-Light pair: withheld where our verdict is compared with NVIDIA's."""

CLI_EXPORTS = "*.raw.base.csv.gz"
NO_VALUE = ("", "no data")
"""What the command line prints where a report has no value."""


def compare(results: Sequence[Result], folder: Path) -> list[Row]:
    """Make all comparisons; a row without pairs means that the folder has no such numbers."""
    return [
        *(_fp_share(results, dtype) for dtype in ("fp32", "fp64")),
        _dram_share(results),
        _smem_share(results),
        _to_l2(results),
        _dram_rate(results),
        *(_flop(results, *dtype) for dtype in (("fp64", "d", 1), ("fp32", "f", 1), ("fp16", "h", 2))),
        *tensor_counters(results),
        *tensor_activity(results),
        products(results),
        published_warpgroup(),
        _classes("class_fp", "verdict class, kernels with FP counters", [r for r in results if _has_fp(r.kernel)]),
        _classes("class_other", "verdict class, all other kernels", [r for r in results if not _has_fp(r.kernel)]),
        *_cli(results, folder),
    ]


def _fp_share(results: Iterable[Result], dtype: str) -> Row:
    """Compare a share of peak with the per cent stated in the text of NVIDIA's roofline rule."""
    pairs = []
    for result in results:
        nvidia = read_nvidia(result.kernel.rules)
        theirs = {"fp32": nvidia.fp32_pct_of_peak, "fp64": nvidia.fp64_pct_of_peak}[dtype]
        if theirs is not None:
            pipe = result.analysis.pipes.get(dtype)
            share = float("inf") if pipe is None or pipe.share is None else pipe.share
            pairs.append(pair_of(result, share * 100 - theirs))
    why = "NVIDIA's text rounds to whole per cents and truncates some of them"
    what = f"{dtype} per cent of peak"
    return Row(f"share_{dtype}", what, "text of NVIDIA's rule `SOLFPRoofline`", "points", 1.0, why, tuple(pairs))


def _dram_share(results: Iterable[Result]) -> Row:
    """Compare bytes over time and peak with NVIDIA's per cent, leaving out shares read from that per cent."""
    pairs = []
    for result in results:
        theirs, sources = result.number(DRAM_PCT), result.kernel.counter_sources
        known = {"dram_bytes", "dram_bus_peak_bytes_per_s"} <= sources.keys()
        if theirs and known and " / " not in sources["dram_bus_peak_bytes_per_s"]:
            ours = result.analysis.levels["dram"].share or 0.0
            pairs.append(pair_of(result, relative(ours * 100, theirs)))
    return Row(
        "share_dram", "DRAM share: bytes / time / peak", f"`{DRAM_PCT}`", "relative", AS_USUAL, PASSES, tuple(pairs)
    )


def _smem_share(results: Iterable[Result]) -> Row:
    """Compare wavefronts with NVIDIA's per cent, whose peak is one per cycle and SM on every chip."""
    pairs = []
    for result in results:
        theirs = result.number(SMEM_PCT)
        known = {"l1_shared_data_bytes", "l1_data_peak_bytes_per_s"} <= result.kernel.counters.keys()
        if theirs and known:
            ours = result.analysis.levels["l1"].stages[SHARED_DATA] * wavefronts_a_cycle(result.kernel)
            pairs.append(pair_of(result, relative(ours * 100, theirs)))
    what = "shared-memory share: wavefronts / (SM x cycle)"
    return Row("share_smem", what, f"`{SMEM_PCT}`", "relative", AS_USUAL, PASSES, tuple(pairs))


def _to_l2(results: Iterable[Result]) -> Row:
    """Compare sectors x 32 with the bytes between L1 and L2, if both are stored."""
    pairs = []
    for result in results:
        crossed = result.total(TO_L2)
        if not crossed or not result.kernel.counter_sources.get("l2_bytes", "").startswith("lts__t_sectors_srcunit"):
            continue
        ours = result.kernel.counters["l2_bytes"]
        atomics = 32 * sum(result.number(name) or 0.0 for name in ATOMICS)
        with_atomics = relative(ours + atomics, crossed)
        why = f"atomics cross in both directions and are one look-up: with their sectors twice, {with_atomics:+.2%}"
        explained = atomics and abs(with_atomics) <= AS_USUAL
        pairs.append(pair_of(result, relative(ours, crossed), why if explained else ""))
    what = "bytes between SMs and L2: `lts__t_sectors_srcunit_tex` x 32"
    oracle = "`l1tex__m_xbar2l1tex_read_bytes` + `l1tex__m_l1tex2xbar_write_bytes`"
    return Row("bytes_l2", what, oracle, "relative", AS_USUAL, PASSES, tuple(pairs))


def _dram_rate(results: Iterable[Result]) -> Row:
    """Resolve the bytes from their rate alone, as in reports without parts, and compare with the parts."""
    pairs = []
    for result in results:
        theirs = next((total for parts in DRAM_PARTS if (total := result.total(parts)) is not None), None)
        kept = {name: result.number(name) for name in (DURATION, "dram__bytes.sum.per_second")}
        numbers = {name: value for name, value in kept.items() if value is not None}
        if theirs is None or len(numbers) < len(kept):
            continue
        pairs.append(pair_of(result, relative(resolve(numbers).values["dram_bytes"], theirs)))
    what = "DRAM bytes: `dram__bytes.sum.per_second` x time"
    return Row("bytes_dram", what, "bytes read + bytes written", "relative", ROUNDED, SAME_COUNTERS, tuple(pairs))


def _flop(results: Iterable[Result], dtype: str, letter: str, packed: int) -> Row:
    """Compare opcode tables with SASS counters, on kernels where either counts any work."""
    pairs = []
    for result in results:
        theirs = _sass_flop(result, letter, packed) if result.kernel.thread_opcodes else None
        ours = result.analysis.flop.get(dtype, 0.0)
        if dtype == "fp16":  # NVIDIA counts the constants that multiply-adds load
            ours += 4 * result.kernel.code_totals.get("fp16_constant_threads", 0.0)
        if theirs is not None and (ours or theirs):
            pairs.append(pair_of(result, relative(ours, theirs)))
    oracle = f"SASS counters `{SASS.format(f'{letter}{{add,mul,fma}}')}`"
    what = f"{dtype} FLOPs by thread opcode table" + (", packed" if packed > 1 else "")
    return Row(f"flop_{dtype}", what, oracle, "relative", ROUNDED, COUNTS, tuple(pairs))


def _sass_flop(result: Result, letter: str, packed: int) -> float | None:
    """Add NVIDIA's counters; a missing one counts as zero only if the table has none of its opcodes either."""
    total = 0.0
    for op, flop in (("add", 1), ("mul", 1), ("fma", 2)):
        count = _sass_count(result, f"{letter}{op}")
        opcode = f"{letter}{op}".upper()
        if count is None and (
            op == "fma" or any(name.startswith(opcode) and "F32" not in name for name in result.kernel.thread_opcodes)
        ):
            return None
        total += packed * flop * (count or 0.0)
    return total


def _sass_count(result: Result, op: str) -> float | None:
    count, per_cycle = result.number(SASS.format(op)), result.number(f"{SASS.format(op)}.per_cycle_elapsed")
    clock_hz, duration_ns = result.number(SM_CLOCK), result.number(DURATION)
    if count is not None or per_cycle is None or clock_hz is None or duration_ns is None:
        return count
    return per_cycle * clock_hz * duration_ns / 1e9


def _has_fp(kernel: Kernel) -> bool:
    return "ffma_threads" in kernel.counters


def _classes(key: str, what: str, results: Iterable[Result]) -> Row:
    """Compare our class with NVIDIA's, without NVIDIA's own summary and rules in ours."""
    pairs = []
    for result in results:
        theirs = read_nvidia(result.kernel.rules).bottleneck
        if theirs is None:
            continue
        counters = {name: value for name, value in result.kernel.counters.items() if name not in SOL_COUNTERS}
        blind = analyze(replace(result.kernel, counters=counters, rules=()))
        same = agrees(theirs, blind.verdict, blind.levels["l1"]) is True
        reason = "" if same else f"NVIDIA: {theirs}; ours: {blind.verdict.bound}"
        if not same and result.analysis.verdict.bound == "unknown":
            reason += ", with NVIDIA's summary too: the report lacks the counters of one side"
        if not same and blind.levels["l2"].leading_stage == L2_INTERNAL:
            reason += " at L2, by a part of it that NVIDIA's summary leaves out: the fabric of a split L2"
        if not same and blind.levels["l1"].leading_stage == DATA and wavefronts_a_cycle(result.kernel) < 1:
            reason += " at L1, whose data stage NVIDIA's summary counts against twice of what the chip passes"
        if not same and blind.phases is not None:
            reason += f", {blind.verdict.cause}: a series that the summary averages"
        pairs.append(pair_of(result, 0.0 if same else 1.0, reason))
    oracle = "NVIDIA's rule `SOLBottleneck`, its summary and rules withheld from ours"
    return Row(key, what, oracle, "class", 0.0, "a class is the same or it is not", tuple(pairs))


def _cli(results: Sequence[Result], folder: Path) -> Iterator[Row]:
    """Compare every value our reader stores with NVIDIA's command line; values missing there have their own row."""
    stored = {(result.report, result.kernel.index): result for result in results}
    printed, blank = list[Pair](), list[Pair]()
    for export in sorted((folder / "cli").glob(CLI_EXPORTS)):
        report = export.name.removesuffix(CLI_EXPORTS[1:]) + ".ncu-rep"
        with gzip.open(export, "rt", encoding="utf-8", newline="") as stream:
            _, *rows = csv.DictReader(stream)
        for row in rows:
            result = stored.get((report, int(row["ID"])))
            for name, text in row.items():
                if result and name in result.stored:
                    (blank if text in NO_VALUE else printed).append(_printed(result, name, text))
    oracle = "NVIDIA's command line, `--page raw --print-units base`"
    why = "the command line rounds to the digits it prints"
    yield Row("cli", "every value the reader takes from a report", oracle, "digits", 0.5, why, tuple(printed))
    why = "a value is missing or it is not"
    yield Row("cli_blank", "values that are missing", oracle, "class", 0.0, why, tuple(blank))


def _printed(result: Result, name: str, text: str) -> Pair:
    """Compare one value with its print: missing or not, the same text or not, else in units of the last digit."""
    ours, deviation = result.stored[name], 0.0
    if text in NO_VALUE and ours is not None:
        deviation = 1.0
    elif isinstance(ours, str) or (ours is None and text not in NO_VALUE):
        deviation = 0.0 if ours == text else float("inf")
    elif ours is not None:
        theirs = Decimal(text.partition(" ")[0].replace(",", ""))
        deviation = float(abs(Decimal(ours) - theirs).scaleb(-int(theirs.as_tuple().exponent)))
    return Pair(result.report, result.kernel.index, name, round(deviation, 6))
