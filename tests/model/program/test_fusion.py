"""Test which operators of a trace could be fused, against bytes and times worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.traces import Event, host, kernel, launch, write_trace

from rooflens.model.program.fusion import Fusion
from rooflens.model.program.program import Program
from rooflens.programs import read_programs
from rooflens.report.program.document import traces_document
from rooflens.writing.answers import of_traces

GPU = "NVIDIA A100-SXM4-40GB"
BANDWIDTH = 1555e9
"""Of its DRAM, from its datasheet, in bytes a second."""

N = 1 << 27
"""Elements of a tensor of 512 MiB."""

F, H = "float", "c10::Half"
TOOK_US = 2 * 4 * N / BANDWIDTH * 1e6 * 1.1
"""A kernel that reads and writes such a tensor, at 91 % of the bandwidth."""

Step = tuple[str, list[tuple[str, list[int]]], float]
"""An operator, types and sizes of its arguments, and for how many microseconds it runs."""


def x(dtype: str = F, *dims: int) -> tuple[str, list[int]]:
    """Return a tensor as an argument, by default of 512 MiB."""
    return dtype, [*dims] if dims else [N]


COS: Step = ("aten::cos", [x()], TOOK_US)


def read(path: Path, steps: list[Step], **kernel_args: Any) -> Program:
    """Read the trace of operators that run one after the other."""
    events: list[Event] = []
    at, ran = 10.0, 1000.0
    for number, (operator, arguments, took) in enumerate(steps, 1):
        args = {"Input type": [one[0] for one in arguments], "Input Dims": [one[1] for one in arguments]}
        events += [host("cpu_op", operator, at, 8, **args), launch(at + 2, number)]
        events.append(kernel(f"kernel_{operator}", ran, took, correlation=number, **kernel_args))
        at, ran = at + 20, ran + took
    return read_programs([write_trace(path, events, deviceProperties=[{"id": 0, "name": GPU}])])[0]


def the_pair(program: Program) -> Fusion:
    """Return the one pair."""
    (found,) = program.fusions
    return found


def test_cos_of_cos_is_a_pair_that_saves_a_write_and_a_read(tmp_path: Path) -> None:
    """Eager `torch.cos(torch.cos(x))` writes 512 MiB and reads them again: half of the traffic of both."""
    pair = the_pair(read(tmp_path / "t.json", [COS, COS]))
    assert (pair.first, pair.second, pair.count, pair.shape) == ("aten::cos", "aten::cos", 1, f"[{N}]")
    assert pair.saved_bytes == 2 * 4 * N
    assert pair.saved_ns == pytest.approx(2 * 4 * N / BANDWIDTH * 1e9)
    assert pair.time_ns == pytest.approx(2 * TOOK_US * 1e3, abs=2)
    assert pair.share == pytest.approx(1 / 2.2, rel=1e-3)
    assert not pair.is_kept
    assert not pair.fits_l2


def test_the_compiled_program_has_no_pair(tmp_path: Path) -> None:
    """Inductor's kernel for both is one kernel."""
    compiled: Step = ("triton_poi_fused_cos_0", [x(), x(), ("Scalar", [])], TOOK_US)
    assert not read(tmp_path / "t.json", [compiled]).fusions
    assert not read(tmp_path / "u.json", [compiled, compiled]).fusions


NO_PAIRS: dict[str, list[Step]] = {
    "another size": [COS, ("aten::cos", [x(F, N // 2)], TOOK_US)],
    "another type": [COS, ("aten::cos", [x(H, N)], TOOK_US)],
    "a call between them": [COS, ("aten::unknown", [x()], 5.0), COS],
    "two operands of that size": [COS, ("aten::mul", [x(), x()], TOOK_US * 1.5)],
    "a product": [("aten::mm", [x(F, 8192, 8192), x(F, 8192, 8192)], 9e4), ("aten::cos", [x(F, 8192, 8192)], 4e2)],
    "two results": [("aten::native_dropout", [x(), ("Scalar", []), ("Scalar", [])], TOOK_US * 1.2), COS],
    "copies of a list": [("aten::copy_", [x(), x()], TOOK_US)] * 2,
    "equal calls in place": [("aten::cos_", [x()], TOOK_US)] * 2,
    "equal calls with a parameter": [("aten::mul", [x(), ("Scalar", [])], TOOK_US)] * 2,
    "calls that do nothing the second time": [("aten::relu", [x()], TOOK_US)] * 2,
}


def test_what_cannot_be_told_to_be_a_pair_is_none(tmp_path: Path) -> None:
    """Sizes, types and order must say that the second reads what the first wrote, and nothing else of that size."""
    found = {name: read(tmp_path / f"{at}.json", steps).fusions for at, (name, steps) in enumerate(NO_PAIRS.items())}
    assert {name: fusions for name, fusions in found.items() if fusions} == {}


def test_calls_on_two_streams_are_no_pair(tmp_path: Path) -> None:
    """What runs on another stream is not the next one."""
    events: list[Event] = []
    for number in (1, 2):
        args = {"Input type": [F], "Input Dims": [[N]]}
        events += [host("cpu_op", "aten::cos", 20.0 * number, 8, **args), launch(20.0 * number + 2, number)]
        events.append(kernel("cos", 1000.0 + 1000 * number, TOOK_US, correlation=number, stream=number))
    path = write_trace(tmp_path / "t.json", events, deviceProperties=[{"id": 0, "name": GPU}])
    assert not read_programs([path])[0].fusions


def test_a_tensor_that_others_may_read_is_still_written(tmp_path: Path) -> None:
    """Where more tensors of a size are read than written, or the first operator changes its own, one read is saved."""
    residual: Step = ("aten::add", [x(), x(), ("Scalar", [])], TOOK_US * 1.5)
    norm: Step = ("aten::sum", [x()], TOOK_US)
    several = the_pair(read(tmp_path / "a.json", [residual, norm]))
    changed = the_pair(read(tmp_path / "b.json", [("aten::add_", [x(), ("Scalar", [])], TOOK_US), COS]))
    assert [one.is_kept for one in (several, changed)] == [True, True]
    assert [one.saved_bytes for one in (several, changed)] == [4 * N, 4 * N]


def test_a_pair_saves_no_more_than_its_kernels_take(tmp_path: Path) -> None:
    """A kernel that is faster than DRAM, because its data was in L2, bounds what is saved; small tensors count L2."""
    steps: list[Step] = [("aten::cos", [x(F, 1 << 20)], 5.0)] * 2
    pair = the_pair(read(tmp_path / "t.json", steps))
    assert pair.fits_l2
    assert pair.saved_ns == pytest.approx(2 * 4 * (1 << 20) / 7.2192e12 * 1e9, rel=1e-3)
    assert pair.saved_ns <= pair.time_ns


def test_pairs_that_save_too_little_are_a_count_and_a_sum(tmp_path: Path) -> None:
    """Two kernels of 5 us, of which L2 would save 2, in a program of 2.2 s."""
    steps: list[Step] = [*[("aten::cos", [x(F, 1 << 20)], 5.0)] * 2, ("aten::unknown", [x()], 2.2e6)]
    program = read(tmp_path / "t.json", steps)
    assert (program.fusions, program.minor_fusions.count) == ((), 1)
    text = of_traces([program]).text("md")
    assert "Left out: 1 pair of operators whose fusion saves less than 0.1 % of the wall time each" in text


def test_texts_and_pages_say_what_could_be_fused(tmp_path: Path) -> None:
    """Operators, bytes, time, share, and what is assumed stand in the terminal's text; a page has all pairs."""
    program = read(tmp_path / "t.json", [COS, COS])
    answer = of_traces([program])
    text = answer.text("md")
    assert "| `aten::cos` and `aten::cos` | `[134217728] fp32` | 1 | 1.07 GB | DRAM |" in text
    assert "| 45 % | gone |" in text
    assert "is assumed" in text
    assert "Operators that could be fused" in answer.text("html")
    assert "could be fused" not in str(traces_document([read(tmp_path / "u.json", [COS])]))
