"""Where a kernel was launched: its process, its GPU and its NVTX ranges."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import ncu_report
import pytest
from support.ncu_rep_writer import KernelSpec, NvtxRange, ReportSpec, SessionSpec, encode_report, write_report

from rooflens.ingest.load import Loaded, ingest_reports
from rooflens.ingest.messages.sessions import range_path
from rooflens.ingest.reports.inputs import find_inputs
from rooflens.ingest.reports.read import read_report
from rooflens.model.records import Kernel
from rooflens.model.store.dataset import Store

DURATION = {"gpu__time_duration.sum": 1000.0}
PYTHON = (4711, "/opt/conda/bin/python")
TRAINER = (4712, "C:\\tools\\trainer.exe\0")
STEP = [NvtxRange("train", last_call=1), NvtxRange("step", last_call=5)]


def _on(device: int) -> Mapping[str, float]:
    return {**DURATION, "launch__device_id": device}


def _two_processes(path: Path) -> Path:
    kernels = [
        KernelSpec("forward()", _on(0), process=PYTHON, ranges=[*STEP, NvtxRange("forward", last_call=9)]),
        KernelSpec("copy()", _on(3), process=TRAINER, ranges=[]),
        KernelSpec("reduce()", _on(1), process=PYTHON, ranges=[*STEP, NvtxRange("allreduce", "nccl", 12)]),
        KernelSpec("plain()", DURATION),
    ]
    return write_report(path, ReportSpec(kernels, SessionSpec(4242, "/synthetic/program")))


def _read(path: Path) -> Sequence[Kernel]:
    return read_report(path, path.name).kernels


def _path(tmp_path: Path, ranges: Sequence[NvtxRange], thread_id: int = 1) -> str | None:
    kernel = KernelSpec("kernel()", DURATION, ranges=ranges, thread_id=thread_id)
    (read,) = _read(write_report(tmp_path / "one.ncu-rep", ReportSpec([kernel])))
    return read.nvtx_range


def _origin(kernel: Kernel) -> tuple[str, int | None, str | None, str | None]:
    return kernel.function_name, kernel.device, kernel.process, kernel.nvtx_range


def test_each_kernel_keeps_its_process_gpu_and_ranges(tmp_path: Path) -> None:
    """Two processes on three GPUs in a report stay separate, and missing facts are None."""
    assert [_origin(kernel) for kernel in _read(_two_processes(tmp_path / "two.ncu-rep"))] == [
        ("forward", 0, "python 4711", "train/step/forward"),
        ("copy", 3, "trainer.exe 4712", None),
        ("reduce", 1, "python 4711", "train/step/nccl:allreduce"),
        ("plain", None, "program 4242", None),
    ]


def test_the_store_gives_the_origin_back(tmp_path: Path) -> None:
    """Process, GPU and ranges come out of the store unchanged."""
    file = _two_processes(tmp_path / "two.ncu-rep")
    store = Store(tmp_path / "store")
    ingest_reports(find_inputs([str(file)]).jobs, store)
    (stored,) = store.reports()
    assert [_origin(kernel) for kernel in stored.kernels] == [_origin(kernel) for kernel in _read(file)]


def test_ranges_of_both_kinds_and_all_domains_stand_in_the_order_they_began(tmp_path: Path) -> None:
    """The last CUDA call before each range orders start/end ranges and domains between pushed ranges."""
    ranges = [
        NvtxRange("epoch", last_call=2),
        NvtxRange("forward", last_call=8),
        NvtxRange("layer", "torch", last_call=5),
        NvtxRange("request", last_call=1, thread_id=None),
        NvtxRange("flush", "io", last_call=9, thread_id=None),
    ]
    assert _path(tmp_path, ranges) == "request/epoch/torch:layer/forward/io:flush"


def test_ranges_without_call_numbers_keep_the_order_of_their_stack(tmp_path: Path) -> None:
    """A stack keeps its order even if its call numbers are missing or decrease."""
    names = ["outer", "middle", "inner"]
    assert _path(tmp_path, [NvtxRange(name) for name in names]) == "outer/middle/inner"
    falling = [NvtxRange(name, last_call=9 - number) for number, name in enumerate(names)]
    assert _path(tmp_path, falling) == "outer/middle/inner"


def test_ranges_pushed_by_other_threads_are_left_out(tmp_path: Path) -> None:
    """A backward kernel launched from autograd's thread is in none of the main thread's ranges."""
    ranges = [NvtxRange("main", thread_id=1), NvtxRange("whole program", thread_id=None)]
    assert _path(tmp_path, ranges, thread_id=2) == "whole program"
    assert _path(tmp_path, [NvtxRange("main", thread_id=1)], thread_id=2) is None


@pytest.mark.parametrize("name", ["</script><img src=x>", "a/b", "\n\t\u202e", "seq = 0, op: x"])
def test_hostile_names_pass_through(tmp_path: Path, name: str) -> None:
    """A range's name is data: nothing is escaped or dropped here."""
    assert _path(tmp_path, [NvtxRange(name, name, 3)]) == f"{name}:{name}"


def test_names_that_are_empty_or_no_utf8(tmp_path: Path) -> None:
    """A range without a name adds nothing to the path, and bytes of another code page are replaced."""
    assert _path(tmp_path, [NvtxRange(""), NvtxRange("inner")]) == "inner"
    report = ReportSpec([KernelSpec("kernel()", DURATION, ranges=[NvtxRange("XX")])])
    file = tmp_path / "odd.ncu-rep"
    file.write_bytes(encode_report(report).replace(b"XX", b"\xe9\xff"))
    assert _read(file)[0].nvtx_range == "\ufffd\ufffd"


@pytest.mark.parametrize("state", [b"\xff\xff", b"\x0a\x7f", b"\x08\x01", b""])
def test_a_damaged_state_is_no_range(state: bytes) -> None:
    """Ranges that cannot be decoded are unknown, and the kernel can still be read."""
    assert range_path(state, 1) is None


@pytest.mark.parametrize("value", [-1.0, 1e300, 2.0**40])
def test_impossible_numbers_of_a_gpu_are_unknown(tmp_path: Path, value: float) -> None:
    """An impossible GPU number is damage; if the launch has none, the device's own number is used."""
    metrics = {**DURATION, "launch__device_id": value}
    kernels = [KernelSpec("a()", metrics), KernelSpec("b()", {**metrics, "device__attribute_device_index": 2})]
    first, second = _read(write_report(tmp_path / "odd.ncu-rep", ReportSpec(kernels)))
    assert (first.device, second.device) == (None, 2)


@pytest.mark.parametrize("kernels_per_block", [1, 2, 100])
def test_nvidia_reads_results_of_several_processes_in_the_same_order(tmp_path: Path, kernels_per_block: int) -> None:
    """NVIDIA's module numbers the results like the container, whatever process they belong to."""
    kernels = [KernelSpec(f"k{n}()", DURATION, process=(n % 2 + 1, "p"), ranges=STEP) for n in range(6)]
    kernels.insert(3, kernels[2])
    file = write_report(tmp_path / "p.ncu-rep", ReportSpec(kernels, kernels_per_block=kernels_per_block))
    context = ncu_report.load_report(str(file))
    actions = [action for part in context for action in part]
    assert [action.name() for action in actions] == [kernel.function_name for kernel in kernels]
    assert actions[0].nvtx_state().domain_by_id(0).push_pop_ranges() == ("train", "step")
    assert [kernel.process for kernel in read_report(file, "p").kernels] == [
        f"p {kernel.process[0]}" for kernel in kernels
    ]


@pytest.mark.corpus
def test_origins_agree_with_nvidias_command_line(corpus: Path) -> None:
    """Process, GPU and pushed ranges equal what ncu itself prints for every exported report."""
    for export in sorted((corpus / "cli").glob("*.raw.base.csv.gz")):
        with gzip.open(export, "rt", encoding="utf-8") as stream:
            _, *rows = csv.DictReader(stream)
        kernels = _read(corpus / export.name.replace(".raw.base.csv.gz", ".ncu-rep"))
        for kernel, row in zip(kernels, rows, strict=True):
            assert kernel.process == f"{row['Process Name']} {row['Process ID']}"
            assert kernel.device == int(row["Device"])
            pushed = next((text for title, text in row.items() if "Push/Pop_Range" in title), "")
            assert (kernel.nvtx_range or "") == "/".join(re.findall(r'"<default domain>:([^:"]+):', pushed))


@pytest.mark.corpus
def test_every_published_report_says_process_and_gpu(loaded: Loaded) -> None:
    """Kernels, ranges and command lists of every version, failed ones too, name their process and GPU."""
    assert len(loaded.reports) >= 30
    for run, kernels in loaded.reports:
        assert all(kernel.process and kernel.device is not None for kernel in kernels), run.source
