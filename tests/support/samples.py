"""Made records for tests of reports: one kernel per verdict, unusual kernels, and whole pages of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace
from support.roofs import own_roof

from rooflens.model.records import (
    LEVELS,
    Analysis,
    AnalyzedReport,
    Bottleneck,
    Evidence,
    Finding,
    Gain,
    Hotspot,
    Kernel,
    Level,
    Limit,
    Move,
    Nvidia,
    Phases,
    Pipe,
    Place,
    Rule,
    Run,
    Series,
    Verdict,
)
from rooflens.model.roofline.levels import shares_of
from rooflens.model.verdict_classes import Bound

HOSTILE_NAMES = ("<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>")

LONG_NAME = "void cutlass::Kernel<" + "cutlass::gemm::device::GemmUniversal, " * 105 + "true>(Params)"


class Chip(Struct, frozen=True):
    """A GPU at one profiled clock, with the roofs that a report would have."""

    name: str
    compute_capability: str
    sm_clock_hz: float
    level_peaks: Mapping[str, float]
    pipe_peaks: Mapping[str, float]


A100 = Chip(
    "NVIDIA A100-SXM4-40GB",
    "8.0",
    1.41e9,
    {"dram": 1.555e12, "l2": 4.62e12, "l1": 19.5e12, "smem": 19.5e12},
    {"fp64": 9.7e12, "fp32": 19.5e12, "fp16": 78e12, "tensor_bf16": 312e12, "alu": 152e9, "xu": 38e9, "issue": 609e9},
)

T4 = Chip(
    "Tesla T4",
    "7.5",
    0.585e9,
    {"dram": 0.32e12, "l2": 0.74e12, "l1": 1.5e12, "smem": 3.0e12},
    {"fp64": 0.047e12, "fp32": 3.0e12, "fp16": 6e12, "tensor_fp16": 24e12, "alu": 94e9, "xu": 23e9, "issue": 94e9},
)


class Sample(Struct, frozen=True):
    """The amounts of a made kernel, from which rates, shares and positions follow.

    Attributes:
        level_bytes: Bytes by level; a level without an entry was not measured.
        flop: FLOPs by dtype; None if the report has no FLOP counters.
        inst: Instructions by pipe, for pipes without FLOPs.
    """

    name: str
    bound: Bound
    duration_us: float
    resource: str | None = None
    level_bytes: Mapping[str, float] = field(default_factory=dict)
    flop: Mapping[str, float] | None = field(default_factory=dict)
    inst: Mapping[str, float] = field(default_factory=dict)
    chip: Chip = A100
    flop_source: str = "opcode"
    flags: tuple[str, ...] = ()
    synthetic: bool = False


def run(**changes: object) -> Run:
    """Make the provenance of one recorded report."""
    base = Run(
        digest="a" * 64,
        source="reports/attention.ncu-rep",
        file_bytes=2_431_000,
        kernel_count=6,
        synthetic=False,
        ncu_version="2025.3.0.0",
        command_line="ncu --set full -o attention python attention.py",
        host="gpu-box-7",
        process_name="python3.11",
        clock_control="base",
        cache_control="all",
        replay_mode="kernel",
        created_unix_s=1_795_219_200,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def report(analyses: Iterable[Analysis], **changes: object) -> AnalyzedReport:
    """Make one recorded report of these kernels."""
    return AnalyzedReport(run(**changes), tuple(analyses))


def reports(runs: Sequence[Run], analyses: Iterable[Analysis]) -> list[AnalyzedReport]:
    """Make reports, the first of which has all kernels."""
    kernels = tuple(analyses)
    return [AnalyzedReport(run, () if at else kernels) for at, run in enumerate(runs)]


def analysis(sample: Sample, index: int = 0, digest: str = "a" * 64) -> Analysis:
    """Calculate the record that the model would give for a sample."""
    seconds = sample.duration_us * 1e-6
    flop_total = None if sample.flop is None else float(sum(sample.flop.values()))
    levels = {name: _level(sample, name, seconds, flop_total) for name in LEVELS}
    pipes = _pipes(sample, seconds)
    busy = sum(p.amount / p.peak_per_s for p in pipes.values() if p.unit == "FLOP" and p.peak_per_s)
    return Analysis(
        kernel=_kernel(sample, index, digest),
        levels=levels,
        pipes=pipes,
        flop=dict(sample.flop or {}),
        flop_source=dict.fromkeys(sample.flop or {}, sample.flop_source),
        flop_total=flop_total,
        flop_per_s=None if flop_total is None else flop_total / seconds,
        flop_peak_per_s=flop_total / busy if flop_total and busy else None,
        verdict=_verdict(sample, shares_of(levels, pipes)),
        nvidia=Nvidia("Memory is more heavily utilized than Compute", 8.1, 0.0),
        flags=sample.flags,
    )


def integer_product(index: int = 0) -> Analysis:
    """Make an int8 product of 1e12 operations in 10 ms, with 1 GB at DRAM and an epilogue of 1e9 FLOP."""
    product = analysis(Sample("igemm", "latency", 1e4, None, {"dram": 1e9}, {"fp32": 1e9}), index)
    int8 = Pipe(1e12, "op", "opcode", amount_per_s=1e14, roof=own_roof(6.24e14), share=1e14 / 6.24e14)
    return replace(product, pipes=product.pipes | {"tensor_int8": int8})


def failed(name: str = "late_kernel", index: int = 0) -> Analysis:
    """Make the record of a kernel whose profiling failed: no counter, no verdict."""
    kernel = Kernel("a" * 64, "reports/attention.ncu-rep", index, name, name, "failed", gpu=A100.name)
    verdict = Verdict("unknown", None, at_roof=False, cause="failed", limit=Limit(), confidence="low",
                      moves=(Move("Run the program without the profiler first.", "collect"),))  # fmt: skip
    return Analysis(kernel, dict.fromkeys(LEVELS, Level()), {}, {}, {}, None, None, None, verdict, Nvidia())


def every_verdict() -> list[Analysis]:
    """Make one kernel per verdict, with times of the same order."""
    return [analysis(sample, index) for index, sample in enumerate(_VERDICTS)]


def explained(index: int = 0) -> Analysis:
    """Make a kernel of tensor work whose report says why, where and when: findings, hot lines and a series."""
    base = every_verdict()[1]
    line = Hotspot(
        "line",
        file="/home/me/attention.cu",
        line=212,
        text="mma_sync(acc, a_frag, b_frag, acc);",
        measures={"samples": 620.0, "stall_math_pipe_throttle": 400.0, "load_sectors": 4e6, "load_excess_sectors": 3e6},
    )
    finding = Finding(
        "tail_wave",
        "partial last wave",
        "limiter",
        (Evidence("idle SM time", 0.31, "share", "1 - sm__cycles_active.avg / sm__cycles_elapsed.avg"),),
        "choose blocks that fill the last wave: SMs are idle for 31 % of the time",
        "balance",
        gain=Gain(1.4),
        where=(Place(line, 0.62),),
    )
    note = replace(finding, id="low_occupancy", title="low occupancy", severity="note", gain=None, where=())
    shares = {
        "tensor_pipe": (0.1, 0.5, *[0.8] * 10, 0.4, 0.3, 0.2, 0.1),
        "dram": (0.6, 0.3, *[0.1] * 14),
        "xu": (0.0,) * 16,
        "resident": (1.0,) * 12 + (0.5,) * 4,
    }
    kernel = replace(
        base.kernel,
        name="attention_fwd_mma",
        index=index,
        hotspots=(line,),
        code_totals={"samples": 1000.0},
        series=Series((base.kernel.duration_ns or 0.0) / 16, shares),
    )
    phases = Phases("tensor_pipe", 0.8, ramp=2 / 16, plateau=10 / 16, tail=4 / 16, warps_in_tail=0.5)
    return replace(base, kernel=kernel, findings=(finding, note), phases=phases)


def hostile() -> list[Analysis]:
    """Make two kernels whose names try to break out of HTML, JSON and script."""
    return [analysis(replace(_VERDICTS[i], name=name), i) for i, name in enumerate(HOSTILE_NAMES)]


def without_flops() -> list[Analysis]:
    """Make a page of copies: bandwidth shares without FLOPs."""
    bytes_moved = {"dram": 1.2e8, "l2": 1.2e8, "l1": 1.2e8}
    copies = (
        Sample("copy_kernel", "memory", 110, "dram", bytes_moved),
        Sample("uncounted", "memory", 140, "dram", bytes_moved, flop=None),
    )
    return [analysis(sample, index) for index, sample in enumerate(copies)]


def many(count: int) -> list[Analysis]:
    """Make `count` kernels with long template names that cycle through the verdicts."""
    return [
        analysis(
            replace(
                _VERDICTS[i % len(_VERDICTS)],
                name=f"void at::native::vectorized_elementwise_kernel<4, Functor<float, {i}>, std::array<char*, 2ul> >",
                duration_us=20 + (i * 37) % 500,
            ),
            i,
        )
        for i in range(count)
    ]


def _level(sample: Sample, name: str, seconds: float, flop_total: float | None) -> Level:
    peak = sample.chip.level_peaks[name]
    amount = sample.level_bytes.get(name)
    if amount is None:
        return Level(roof=own_roof(peak, "byte"))
    share = amount / seconds / peak
    intensity = flop_total / amount if flop_total and amount else None
    return Level(
        amount,
        f"{name}_read + {name}_write",
        amount / seconds,
        own_roof(peak, "byte"),
        share,
        {"return": share},
        intensity,
    )


def _pipes(sample: Sample, seconds: float) -> dict[str, Pipe]:
    rows = [(name, amount, "FLOP", sample.flop_source) for name, amount in (sample.flop or {}).items()]
    rows += [(name, amount, "issue" if name == "issue" else "inst", "counter") for name, amount in sample.inst.items()]
    return {
        name: _pipe(sample.chip.pipe_peaks[name], amount, unit, source, seconds) for name, amount, unit, source in rows
    }


def _pipe(peak: float, amount: float, unit: str, source: str, seconds: float) -> Pipe:
    return Pipe(amount, unit, source, amount / seconds, own_roof(peak, unit), amount / seconds / peak)


def _kernel(sample: Sample, index: int, digest: str) -> Kernel:
    return Kernel(
        digest=digest,
        source="reports/attention.ncu-rep",
        index=index,
        name=sample.name,
        function_name=sample.name.split("<")[0],
        status="ok",
        gpu=sample.chip.name,
        compute_capability=sample.chip.compute_capability,
        grid=(1024, 1, 1),
        block=(256, 1, 1),
        synthetic=sample.synthetic,
        counters={"duration_ns": sample.duration_us * 1e3, "sm_clock_hz": sample.chip.sm_clock_hz, "passes": 7},
        counter_sources={
            "duration_ns": "gpu__time_duration.sum",
            "dram_bytes": "dram__bytes_read.sum + dram__bytes_write.sum",
        },
        stalls={"long_scoreboard": 0.58, "barrier": 0.12, "wait": 0.09, "not_selected": 0.04},
        rules=(Rule("SOLBottleneck", "SpeedOfLight", "High Memory Throughput", "Memory is more heavily utilized."),),
    )


def _verdict(sample: Sample, shares: Mapping[str, float]) -> Verdict:
    nearest = max(shares, key=lambda resource: shares[resource], default=None)
    largest = shares[nearest] if nearest else None
    name = sample.resource if sample.resource in shares else nearest
    return Verdict(
        bound=sample.bound,
        resource=sample.resource,
        at_roof=bool(largest and largest >= 0.8),
        cause=_CAUSES.get(sample.bound),
        limit=Limit(2 / largest, sample.duration_us * 1e3 * largest / 2, "DRAM traffic")
        if largest and sample.bound != "unknown"
        else Limit(missing="throughput counters"),
        confidence="high",
        moves=_MOVES[sample.bound],
        bottleneck=Bottleneck(name, shares[name]) if name else None,
        memory=_busiest({name: share for name, share in shares.items() if name in LEVELS}),
        compute=_busiest({name: share for name, share in shares.items() if name not in LEVELS}),
    )


def _busiest(shares: Mapping[str, float]) -> Bottleneck | None:
    name = max(shares, key=shares.__getitem__, default=None)
    return Bottleneck(name, shares[name]) if name else None


_CAUSES = {"latency": "long_scoreboard", "overhead": "short kernel", "unknown": "no byte counters"}

_MOVES: Mapping[str, tuple[Move, ...]] = {
    "memory": (
        Move("Move fewer bytes: fuse with its neighbour, or use a narrower type.", "fuse"),
        Move("Keep intermediates on chip.", "tile"),
    ),
    "compute": (Move("Deepen the pipeline so that loads overlap the tensor cores.", "overlap"),),
    "latency": (Move("More loads in flight: unroll, prefetch, asynchronous copies.", "inflight"),),
    "overhead": (Move("Put the launches into a CUDA graph.", "graph"),),
    "balanced": (Move("Both limiters are near: fewer bytes alone will not help.", "algorithm"),),
    "unknown": (Move("Collect with `ncu --set roofline`.", "collect"),),
}

_VERDICTS = (
    Sample("softmax_warp_forward<float, 10, false>(float*, const float*, int)", "memory", 1920, "dram",
           {"dram": 2.71e9, "l2": 2.9e9, "l1": 3.1e9, "smem": 0.4e9}, {"fp32": 3.3e9},
           {"issue": 3.6e8, "xu": 3.1e7}, flags=("dram_writes_stay_in_l2",)),
    Sample("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn", "compute", 1100, "tensor_bf16",
           {"dram": 3.1e8, "l2": 1.9e9, "l1": 3.2e9, "smem": 9.6e9}, {"tensor_bf16": 2.33e11, "fp32": 2.1e8},
           {"issue": 2.2e8}),
    Sample("gather_rows(float*, const int*, const float*)", "latency", 640, None,
           {"dram": 2.6e8, "l2": 6.1e8, "l1": 7.9e8}, {"fp32": 2.1e8}, {"issue": 4.1e7}),
    Sample("fill_zero(float*)", "overhead", 3.2, None, {"dram": 2.1e5, "l2": 4.2e5}, {"fp32": 1.1e5}, {"issue": 2.1e4}),
    Sample("stencil_27pt(float*, const float*)", "balanced", 440, "dram",
           {"dram": 4.5e8, "l2": 9.9e8, "l1": 3.1e9}, {"fp32": 5.5e9}, {"issue": 9.2e7}, flop_source="estimated"),
    Sample("mystery_kernel", "unknown", 130, None, {}, None),
)  # fmt: skip
