"""Write machine code of Hopper, and reports of kernels that run it, with counts and samples by instruction."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from support.cubin_writer import END, SET_ADDRESS, cubin, line_table, source_of
from support.ncu_rep_writer import Instances, KernelSpec, MetricValue, ReportSpec, write_report

START = 0x1000
"""Where `source_of` says that the code lies."""

_TRUE, _ZERO, _NO_SCOREBOARD = 7, 255, 7
_OF_4_BYTES, _OF_64_BITS = 4 << 73, 1 << 72
"""An access of 4 bytes, and one by an address of 64 bits."""


def encoded(  # noqa: PLR0913 - the fields of an instruction
    operation: int,
    d: int = _ZERO,
    a: int = _ZERO,
    b: int = _ZERO,
    c: int = _ZERO,
    *,
    guard: int = _TRUE,
    written: int = _NO_SCOREBOARD,
    waits: int = 0,
    more: int = 0,
) -> bytes:
    """Write an instruction: its first 12 bits, registers, predicate, scoreboard, those it waits for, and other bits."""
    fields = operation | guard << 12 | d << 16 | a << 24 | b << 32 | c << 64
    control = written << 110 | _NO_SCOREBOARD << 113 | waits << 116
    return (fields | control | more).to_bytes(16, "little")


def jump(trips_back: int, guard: int) -> bytes:
    """Write a jump over so many instructions back, under a predicate."""
    words = -4 * (trips_back + 1)
    return encoded(0x947, words & 0xFF, 0, 0, 0, guard=guard, more=(words >> 8 & (1 << 48) - 1) << 34 | _TRUE << 87)


def loads_then_sums() -> bytes:
    """Write a loop that copies values to shared memory, one that sums products of them, and the store of the sum."""
    return b"".join(
        (
            encoded(0x202, d=3, b=_ZERO),  # MOV R3, RZ
            encoded(0x981, d=2, a=8, written=0, more=_OF_4_BYTES | _OF_64_BITS),  # LDG.E R2, [R8.64]
            encoded(0x388, a=9, b=2, waits=0b01, more=_OF_4_BYTES),  # STS [R9], R2
            jump(2, guard=0),  # @P0 BRA to the load
            encoded(0x984, d=4, a=9, written=1, more=_OF_4_BYTES),  # LDS R4, [R9]
            encoded(0x223, d=3, a=4, b=5, c=3, waits=0b10),  # FFMA R3, R4, R5, R3
            jump(2, guard=1),  # @P1 BRA to the load from shared memory
            encoded(0x986, a=8, b=3, more=_OF_4_BYTES | _OF_64_BITS),  # STG.E [R8.64], R3
            encoded(0x94D, 0, 0, 0, 0, more=_TRUE << 87),  # EXIT
        )
    )


def report_of_loops(path: Path, kernels: int, launches: int, also: Mapping[str, MetricValue] | None = None) -> Path:
    """Write a report of kernels that run `loads_then_sums`, each launched several times.

    Args:
        path: Where to.
        kernels: How many kernels.
        launches: How often each was launched.
        also: Metrics that each has besides.
    """
    specs = [
        KernelSpec(
            f"sum_{number}(float *, int)",
            {**(also or {}), **loop_metrics(1e5 * (1 + number) + 10 * launch)},
            function="kernel",
            module=1,
        )
        for number in range(kernels)
        for launch in range(launches)
    ]
    source = source_of(cubin(line_table(SET_ADDRESS + END), code=loads_then_sums()))
    return write_report(path, ReportSpec(specs, sources=[source], kernels_per_block=1000))


def loop_metrics(duration_ns: float) -> dict[str, MetricValue]:
    """Return the metrics of a launch of `loads_then_sums` that took so long."""
    runs = {0: 64, **dict.fromkeys(range(1, 7), 6400), 7: 64, 8: 64}
    samples = {0: 10, 1: 40, 2: 360, 3: 20, 4: 40, 5: 460, 6: 40, 7: 20, 8: 10}
    waits = {"long_scoreboard": {2: 340}, "short_scoreboard": {5: 150}}

    def at(amounts: dict[int, int]) -> Instances:
        return Instances({START + 16 * place: amount for place, amount in amounts.items()}, sum(amounts.values()))

    return {
        "gpu__time_duration.sum": duration_ns,
        "device__attribute_display_name": "NVIDIA H100 80GB HBM3",
        "device__attribute_compute_capability_major": 9,
        "device__attribute_compute_capability_minor": 0,
        "launch__grid_size": 528,
        "launch__block_size": 256,
        "launch__waves_per_multiprocessor": 1.0,
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": 12.0,
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 25.0,
        "sm__warps_active.avg.pct_of_peak_sustained_active": 60.0,
        "inst_executed": at(runs),
        "thread_inst_executed_true": at({place: 32 * count for place, count in runs.items()}),
        "memory_l2_theoretical_sectors_global": at({1: 25600, 7: 256}),
        "memory_l1_wavefronts_shared": at({2: 6400, 4: 6400}),
        "smsp__pcsamp_sample_count": at(samples),
        **{f"smsp__pcsamp_warps_issue_stalled_{reason}": at(places) for reason, places in waits.items()},
    }
