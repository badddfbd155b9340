"""The rule of what counts as the same work, on kernels whose work is known by construction."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace
from support import samples

from rooflens.model.compare.compare import asked_alike
from rooflens.model.records import Analysis
from rooflens.model.same_work import Asked, UnitTime, are_loops_apart, does_no_less, same_work, time_per_work

BLOCK = 256


def kernel(
    blocks: int = 1024,
    *,
    flop: float | None = None,
    inst: float = 0,
    dram: float = 0,
    name: str = "gemm",
    **code: float,
) -> Analysis:
    """Make a launch of this many blocks of 256 threads; an amount of 0 was not recorded."""
    level: Mapping[str, float] = {"dram": dram} if dram else {}
    made = samples.analysis(samples.Sample(name, "memory", 1e3, "dram", level, {"fp32": flop} if flop else None))
    counters = {**made.kernel.counters, **({"executed_inst": inst} if inst else {})}
    own = replace(made.kernel, grid=(blocks, 1, 1), block=(BLOCK, 1, 1), counters=counters, code_totals=code)
    return replace(made, kernel=own, pipes={name: pipe for name, pipe in made.pipes.items() if name != "issue"})


def counted(made: Analysis, **counters: float) -> Analysis:
    """Give a launch counters."""
    return replace(made, kernel=replace(made.kernel, counters={**made.kernel.counters, **counters}))


def dividing(flop: float, divisions: int, outputs: float = 1e6, fp64: float = 0.0) -> Analysis:
    """Make a launch that counts divisions among its FLOPs, and fp64 beside its fp32."""
    made = kernel(flop=flop, dram=1e8, store_sectors=outputs)
    pipe = made.pipes["fp32"]
    opcodes = {"MUFU.RCP64H": divisions, "FFMA": int(flop / 2)}
    pipes = {**made.pipes, **({"fp64": replace(pipe, amount=fp64)} if fp64 else {})}
    return replace(
        made, kernel=replace(made.kernel, thread_opcodes=opcodes), pipes=pipes, flop_total=(made.flop_total or 0) + fp64
    )


CASES: dict[str, tuple[Analysis, Analysis, Asked | None, bool | None]] = {
    "as many FLOPs in fewer threads": (kernel(flop=1e9), kernel(64, flop=1.05e9), None, True),
    "fewer FLOPs in the same launch, as of another data set": (
        kernel(flop=1e9, dram=1e8),
        kernel(flop=5e8, dram=1e8),
        None,
        False,
    ),
    "fewer FLOPs for as large an output, as their divisions went": (
        dividing(1e9, 50_000_000),
        dividing(4e8, 5_000_000),
        None,
        True,
    ),
    "fewer FLOPs and divisions for another output": (
        dividing(1e9, 50_000_000),
        dividing(4e8, 5_000_000, outputs=4e5),
        None,
        False,
    ),
    "fewer FLOPs than the divisions that went can be": (
        dividing(1e9, 50_000_000),
        dividing(4e8, 45_000_000),
        None,
        False,
    ),
    # 1,024 blocks of which 256 lie beyond the data: as many FLOPs a thread, no more bytes, the same output.
    "threads beyond the data that went": (
        kernel(1024, flop=1.024e9, dram=1e8, store_sectors=1e6),
        kernel(768, flop=0.768e9, dram=1e8, store_sectors=1e6),
        None,
        True,
    ),
    "fewer threads of other bytes, as of another size": (
        kernel(1024, flop=1.024e9, dram=1.33e8, store_sectors=1e6),
        kernel(768, flop=0.768e9, dram=1e8, store_sectors=1e6),
        None,
        False,
    ),
    "fp64 that went, for as large an output": (dividing(4e8, 0, fp64=6e8), dividing(4e8, 0), None, True),
    "less than the FLOPs that are no fp64": (dividing(4e8, 0, fp64=2e8), dividing(2e8, 0), None, False),
    "another inner size: FLOPs and bytes grew": (kernel(flop=1e9, dram=1e8), kernel(flop=2e9, dram=2e8), None, False),
    "hundreds of times the FLOPs": (kernel(flop=1e9), kernel(flop=4e11), None, False),
    "another size": (kernel(flop=1e9), kernel(4096, flop=8e9), None, False),
    "other FLOPs, but asked for the same": (kernel(flop=1e9), kernel(64, flop=2.4e9), "same", True),
    "other FLOPs, and asked for another size": (kernel(flop=1e9), kernel(flop=2e9), "other", False),
    "more threads, each with as much to do": (kernel(inst=1e7), kernel(2048, inst=2e7), None, False),
    "fewer threads, each with more to do": (kernel(inst=1e7), kernel(64, inst=8e6), None, True),
    "hundreds of times the instructions": (kernel(inst=1e7), kernel(inst=4e9), None, False),
    "as many bytes in fewer threads": (kernel(inst=1e7, dram=1e9), kernel(512, inst=5e6, dram=1.01e9), None, True),
    "as many bytes for a fifth of the instructions": (
        kernel(inst=1e7, dram=1e9, name="mma_k16"),
        kernel(inst=2e6, dram=1e9, name="mma_k32"),
        None,
        True,
    ),
    "halves of one job": (kernel(inst=1e7, name="sweep_x"), kernel(inst=1e7, name="sweep_z"), None, None),
    "one place of two jobs": (
        kernel(name="stencil_gpu", store_sectors=1e6),
        kernel(name="sort_gpu", store_sectors=1e6),
        None,
        None,
    ),
    "one way of doing two jobs": (
        kernel(name="gemm_tiled", store_sectors=1e6),
        kernel(name="transpose_tiled", store_sectors=1e6),
        None,
        None,
    ),
    "more threads, and nothing counted": (kernel(), kernel(4096), None, None),
    "as many threads, and nothing counted": (kernel(), kernel(), None, True),
    "other names, and nothing counted": (kernel(name="gemm"), kernel(name="sort"), None, None),
    "as many sectors stored in fewer threads": (
        counted(kernel(dram=5e7), global_store_sectors=524_288.0),
        counted(kernel(64, dram=4e7), global_store_sectors=524_288.0),
        None,
        True,
    ),
    "as many sectors, of a quarter of the output badly coalesced": (
        counted(kernel(dram=5e7), global_store_sectors=524_288.0),
        counted(kernel(256, dram=1.3e7), global_store_sectors=524_288.0),
        None,
        None,
    ),
    "as large an output in fewer threads": (
        kernel(store_sectors=4e6, store_excess_sectors=3e6),
        kernel(64, store_sectors=1e6, store_excess_sectors=0),
        None,
        True,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_work_is_told_by_all_that_was_recorded(case: str) -> None:
    """Counted work decides, and two kernels are judged alike in either order."""
    before, after, asked, same = CASES[case]
    assert same_work(before, after, asked).same is same, same_work(before, after, asked).why
    assert same_work(after, before, asked).same is same


def test_the_same_sizes_in_another_type_are_the_same_work() -> None:
    """As many integer operations as FLOPs are one job, and tensor instructions are not held against others."""
    plain, narrow = kernel(flop=1e9, inst=1e8), kernel(inst=1e6)
    pipe = replace(plain.pipes["fp32"], unit="op")
    int8 = replace(narrow, pipes={**narrow.pipes, "tensor_int8": pipe}, flop_total=0.0)
    assert same_work(plain, int8).same is True
    by_tensor = replace(narrow, kernel=replace(narrow.kernel, warp_opcodes={"HMMA.16816.F32": 1000}))
    by_core = kernel(inst=1e8)
    by_core = replace(by_core, kernel=replace(by_core.kernel, warp_opcodes={"FFMA": 1000}))
    assert same_work(by_core, by_tensor).same is True
    assert same_work(by_core, kernel(inst=1e6)).same is False


def multiplying(name: str, instructions: float, busy: float, blocks: int = 1024) -> Analysis:
    """Make a launch whose FMA pipes work for a share of 1 M cycles on 80 SMs."""
    made = kernel(blocks, inst=instructions, name=name)
    counters = {"fma_busy_share": busy, "issue_active_share": 0.3, "elapsed_cycles": 1e6, "sm_count": 80.0}
    return replace(made, kernel=replace(made.kernel, counters={**made.kernel.counters, **counters}))


def test_products_are_told_by_their_multiplications() -> None:
    """Without counted FLOPs, kernels that multiply equally long do the same work; short ones only compute addresses."""
    mine, library = multiplying("warptiled", 4e7, 0.3, 64), multiplying("ampere_sgemm", 4.2e7, 0.31, 128)
    assert same_work(mine, library).same is True
    assert same_work(mine, multiplying("ampere_sgemm", 4.2e7, 0.6)).same is None
    assert same_work(multiplying("daxpy", 1e5, 0.3), multiplying("check", 1e5, 0.3)).same is None
    plain = multiplying("plain", 1.2e8, 0.9, 64)
    assert does_no_less(plain, mine)
    assert not does_no_less(mine, plain)
    assert not does_no_less(multiplying("plain", 1.2e8, 0.9, 128), mine)


def test_sizes_on_the_command_line_and_in_names_are_compared() -> None:
    """Numbers from 16 on are sizes; version numbers are not, and differences in words say nothing."""
    lines = ("./v1 1024 1024", "./v2 1024 1024", "./v1 2048 1024", "./run --impl=1", "./run --impl=2")
    runs = [samples.run(command_line=f"ncu --set full {line}") for line in lines]
    assert [asked_alike(runs[0], run) for run in runs[:3]] == ["same", "same", "other"]
    assert asked_alike(runs[3], runs[4]) is None
    named = [samples.run(command_line=None, source=f"x/fa_{name}.csv") for name in ("N4096", "N8192", "v2")]
    assert [asked_alike(named[0], run) for run in named] == [None, "other", None]


def test_time_is_given_for_a_unit_that_both_have() -> None:
    """The unit is FLOPs if both counted them, else instructions, else threads."""
    made, other = kernel(flop=1e9, inst=1e7), kernel(inst=2e7)
    for beside, unit, time_ns in ((made, "kFLOP", 1.0), (other, "1000 instructions", 100.0)):
        found = time_per_work(made, 1e6, beside)
        assert found is not None
        assert (found.unit, found.time_ns) == (unit, pytest.approx(time_ns))
    assert time_per_work(made, None) is None
    assert time_per_work(kernel(), 1e6) is None


def test_other_work_is_told_by_its_rate() -> None:
    """A GFLOP in a millisecond is a TFLOP/s; of instructions the time of a thousand is told."""
    assert UnitTime(1.0, "kFLOP").beside(UnitTime(4.0, "kFLOP")) == "1.00 TFLOP/s against 250 GFLOP/s"
    slow, fast = (UnitTime(time_ns, "1000 instructions") for time_ns in (19.2, 17.8))
    assert slow.beside(fast) == "19.2 ns per 1000 instructions against 17.8 ns"


def test_loops_of_one_source_are_no_versions() -> None:
    """Compilers name loops by their lines; numbers at the end of other names may be those of versions."""
    pairs = {
        ("step_279_gpu", "step_309_gpu"): True,
        ("step_279_gpu", "step_279_gpu"): False,
        ("nvkernel_main_F1L37_2", "nvkernel_main_F1L52_4"): True,
        ("reduce_1", "reduce_2"): False,
        ("gemm_v1_gpu", "gemm_v2_gpu"): False,
    }
    assert {(old, new): are_loops_apart(kernel(name=old), kernel(name=new)) for old, new in pairs} == pairs
