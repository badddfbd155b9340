"""A report of many cases is split into one for each case, without changing any value of any result."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from support.cases import in_case
from support.cubin_writer import sampled, source_of
from support.ncu_rep_writer import KernelSpec, NvtxRange, ReportSpec, SessionSpec, encode_report
from support.nvidia_reads import read_all
from support.packing import pack
from support.same_report import comparable

from rooflens.errors import InputError
from rooflens.ingest.reports import splitting
from rooflens.ingest.reports.child import in_child
from rooflens.ingest.reports.container import inspect, outline
from rooflens.ingest.reports.read import read_bytes, read_report
from rooflens.ingest.reports.report import ReadOptions, ReadReport
from rooflens.ingest.reports.splitting import PART_PROVIDER, UNMARKED, split, split_report

EVERYTHING = ReadOptions(raw="all")
PYTHON, SAXPY, TINY = (4711, "/opt/bin/python"), (4712, "/cache/saxpy"), (4713, "/cache/tiny")


def kernel(name: str, nanoseconds: float, **about: object) -> KernelSpec:
    """Describe a kernel with a metric name of its own, so that later blocks extend the table of names."""
    return KernelSpec(name, {"gpu__time_duration.sum": nanoseconds, f"{name}__only.sum": 7}, **about)  # type: ignore[arg-type]


def several() -> bytes:
    """Write a report of three processes, one of which ran two cases in turn; one kernel belongs to no case."""
    forward = in_case(kernel("forward", 1.0, process=PYTHON), "gemm.bf16_128", "library")
    backward = in_case(kernel("backward", 2.0, process=PYTHON, thread_id=9), "gemm.bf16_128")
    kernels = [
        forward,
        backward,
        in_case(kernel("softmax", 3.0, process=PYTHON), "softmax.bf16_4096"),
        in_case(kernel("forward", 4.0, process=PYTHON), "gemm.bf16_128"),
        in_case(kernel("saxpy", 5.0, process=SAXPY), "saxpy.n28"),
        kernel("plain", 6.0, process=TINY, ranges=[NvtxRange("rooflens", thread_id=None)]),
    ]
    session = SessionSpec(*PYTHON, command_line="ncu --set full python all.py", clock_control="none")
    return encode_report(ReportSpec(kernels, session, kernels_per_block=2))


def messages(report: bytes) -> list[bytes]:
    """Return the encoded results of a report."""
    return [report[place.start : place.end] for place in outline(report).places]


def test_each_result_goes_as_it_stands_into_the_report_of_its_case() -> None:
    """All results come out, byte for byte and in order, whatever thread launched them."""
    whole = several()
    parts, unmarked = split(whole, "rooflens")
    told = messages(whole)
    wanted = {"gemm.bf16_128": [0, 1, 3], "softmax.bf16_4096": [2], "saxpy.n28": [4]}
    assert {case: messages(part.report) for case, part in parts.items()} == {
        case: [told[index] for index in indices] for case, indices in wanted.items()
    }
    assert [part.results for part in parts.values()] == [3, 1, 1]
    assert sum(part.results for part in parts.values()) + unmarked == len(told)
    names = [[one.name for one in read_bytes(part.report, case).kernels] for case, part in parts.items()]
    assert names == [["forward", "backward", "forward"], ["softmax"], ["saxpy"]]


def test_a_part_says_what_the_report_said_and_what_it_is_of() -> None:
    """Version, settings, time and synthetic mark stay, wherever they were stored, and each part names its origin."""
    whole = several()
    parts, _ = split(whole, "rooflens", lambda line, case: f"{line} # {case}")
    for case, (number, program) in (("saxpy.n28", SAXPY), ("gemm.bf16_128", PYTHON)):
        found, first = outline(parts[case].report), outline(whole).sessions[0]
        (session,) = found.sessions
        assert (session.process_id, session.process_name) == (number, program)
        assert session.command_line == f"{first.command_line} # {case}"
        for name in ("ncu_version", "host", "clock_control", "created_unix_s"):
            assert getattr(session, name) == getattr(first, name)
        assert found.synthetic
        assert PART_PROVIDER.encode() in parts[case].report
        assert f"{case} of {read_bytes(whole, 'x').run.digest}".encode() in parts[case].report


def test_the_code_of_a_case_goes_with_it() -> None:
    """A module is kept in the parts that contain its kernels, and in no others."""
    kernels = [in_case(sampled(f"kernel_{at}", reference=at), f"saxpy.n{at}") for at in (1, 2)]
    sources = [source_of(f"code {at}".encode(), reference=at) for at in (1, 2)]
    parts, _ = split(encode_report(ReportSpec(kernels, sources=sources, kernels_per_block=2)), "rooflens")
    for at in (1, 2):
        report = parts[f"saxpy.n{at}"].report
        assert [report[start:end] for start, end in outline(report).sources] == [sources[at - 1]]


def test_parts_are_written_where_they_are_asked_for(tmp_path: Path) -> None:
    """Plain and compressed reports give the same parts; kernels outside all cases are counted; damage is an error."""
    place = tmp_path / "whole.ncu-rep"
    place.write_bytes(several())
    written = []
    for report in (place, pack(place, tmp_path / "whole.ncu-repz")):
        folder = tmp_path / report.suffix[1:]
        counts = split_report(report, "rooflens", lambda case, folder=folder: folder / f"{case}.ncu-rep")  # type: ignore[misc]
        assert counts == {"gemm.bf16_128": 3, "softmax.bf16_4096": 1, "saxpy.n28": 1, UNMARKED: 1}
        written.append({one.name: one.read_bytes() for one in folder.iterdir()})
    assert written[0] == written[1]
    place.write_bytes(several()[:-1])
    with pytest.raises(InputError, match="truncated: block 9 needs 1 more bytes"):
        split_report(place, "rooflens", lambda case: tmp_path / case)


def test_no_range_names_a_file_of_its_own_choice() -> None:
    """Only ranges named like a case are cases, since the name becomes that of a file."""
    odd = ("../../etc/passwd", "gemm", "a.b/c", "gemm.", "gemm.bf16 128", "GEMM.x")
    parts, unmarked = split(encode_report(ReportSpec([in_case(kernel("k", 1.0), name) for name in odd])), "rooflens")
    assert (parts, unmarked) == ({}, len(odd))


def test_ranges_that_begin_together_may_be_told_in_either_order() -> None:
    """Between two ranges without a CUDA call between them only ncu's numbers decide; a library's ranges are inside."""
    orders = (("rooflens", "gemm.bf16_128", "a.library"), ("gemm.bf16_128", "rooflens", "a_library"))
    ranges = [[NvtxRange(name, thread_id=None) for name in order] for order in orders]
    parts, unmarked = split(encode_report(ReportSpec([kernel("k", 1.0, ranges=one) for one in ranges])), "rooflens")
    assert ({case: part.results for case, part in parts.items()}, unmarked) == ({"gemm.bf16_128": 2}, 0)


def test_splitting_needs_the_standard_library_alone() -> None:
    """A GPU machine with little else installed can split what it collected."""
    root = Path(splitting.__file__).parents[3]
    code = f"import sys; sys.path.insert(0, {str(root)!r}); from rooflens.ingest.reports.splitting import split"
    whole = "; print(split(sys.stdin.buffer.read(), 'rooflens')[1])"
    done = subprocess.run([sys.executable, "-ISc", code + whole], input=several(), capture_output=True, check=True)  # noqa: S603 - ours
    assert done.stdout == b"1\n"


def tables(report: ReadReport, index: int) -> list[pa.Table]:
    """Return all values and all instances of one result."""
    found = []
    for table in (report.raw, report.instances):
        assert isinstance(table, pa.Table)
        of_result = comparable(table.filter(pc.equal(table["kernel_index"], index)))
        found.append(
            of_result.drop_columns([name for name in ("digest", "kernel_index") if name in of_result.column_names])
        )
    return found


@pytest.mark.corpus
def test_values_of_a_real_report_stay_by_nvidias_reader_too(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the parts of a real report, both readers find every value, instance, rule and hot spot unchanged."""
    (whole,) = corpus.rglob("nsight-training__manual_nvtx.ncu-rep")
    splitting._case_of.cache_clear()
    monkeypatch.setattr(splitting, "_CASE", re.compile(r"\w+"))
    places: list[Path] = []

    def place(case: str) -> Path:
        places.append(tmp_path / f"{case}.ncu-rep")
        return places[-1]

    assert split_report(whole, "run_test", place) == {"init_data": 1, "daxpy": 1, "check_results": 1}
    files = [whole, *places]
    for read in ([read_report(file, file.name, EVERYTHING) for file in files], in_child(read_all, files, EVERYTHING)):
        before, *parts = read
        assert sum(len(part.kernels) for part in parts) == len(before.kernels)
        for index, part in enumerate(parts):
            values, instances = tables(part, 0)
            assert [values, instances] == tables(before, index)
            assert instances.num_rows > 1000
            one, other = before.kernels[index], part.kernels[0]
            names = set(one.__struct_fields__) - {"digest", "index", "source"}
            assert {name for name in names if getattr(one, name) != getattr(other, name)} == set()
            assert one.hotspots
    assert all(inspect(file).result_count == 1 for file in places)
