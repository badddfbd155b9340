from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from support.damage import block_starts
from support.ncu_rep_writer import KernelSpec, ReportSpec, encode_report
from support.packing import pack

from rooflens.cli.group import main
from rooflens.errors import InputError
from rooflens.ingest.reports.container import readable_part
from rooflens.ingest.reports.read import read_report
from rooflens.ingest.reports.report import ReadOptions

NAMES = [f"kernel_{number}" for number in range(4)]
REPORT = encode_report(
    ReportSpec([KernelSpec(f"{name}(float *)", {"gpu__time_duration.sum": 1000.0}) for name in NAMES])
)


@pytest.fixture
def incomplete(tmp_path: Path) -> Path:
    """Name a report like one that was cut while it was written."""
    return tmp_path / "x.ncu-rep.incomplete"


def test_wherever_it_is_cut_the_kernels_before_are_read(incomplete: Path) -> None:
    """Of a report cut at any byte exactly the kernels with complete blocks are read, in order."""
    starts = block_starts(REPORT)
    ends = [*starts[1:], len(REPORT)]
    counts = []
    for end in range(starts[0], len(REPORT) + 1):
        incomplete.write_bytes(REPORT[:end])
        with readable_part(incomplete) as part:
            assert part.path.read_bytes() == REPORT[: max([starts[0], *(whole for whole in ends if whole <= end)])]
            assert bool(part.damage) == (end not in {starts[0], *ends})
            counts.append(part.result_count)
    assert counts == sorted(counts)
    assert set(counts) == set(range(5))


@pytest.mark.parametrize("reader", ["auto", "direct"])
def test_what_is_whole_is_read_with_a_note(incomplete: Path, reader: str) -> None:
    """Every reader returns the kernels before the cut; the note gives their number and the damage."""
    incomplete.write_bytes(REPORT[:-1])
    report = read_report(incomplete, "x", ReadOptions(reader=reader))
    assert [kernel.function_name for kernel in report.kernels] == NAMES[: len(report.kernels)]
    assert report.run.kernel_count == len(report.kernels) == 3
    (note,) = report.notes
    assert note.startswith("collecting it failed: 3 complete kernels read; the rest is left out: truncated: ")


def test_a_whole_report_of_fewer_kernels_is_told_too(incomplete: Path) -> None:
    """A valid report under the name of an incomplete one is noted as possibly lacking kernels."""
    incomplete.write_bytes(REPORT)
    report = read_report(incomplete, "x")
    assert report.notes == ("collecting it failed: 4 complete kernels read; more may have followed",)


def test_a_cut_compressed_report_is_read_up_to_the_cut(tmp_path: Path) -> None:
    """Of a cut compressed report the unpackable part is read; under its own name it is refused."""
    many = encode_report(
        ReportSpec([KernelSpec(f"kernel_{number}()", {f"m__{number}.sum": 1.0}) for number in range(3000)])
    )
    (tmp_path / "many.ncu-rep").write_bytes(many)
    packed = pack(tmp_path / "many.ncu-rep", tmp_path / "packed").read_bytes()
    cut = tmp_path / "many.ncu-repz"
    cut.write_bytes(packed[: len(packed) * 3 // 4])
    with pytest.raises(InputError, match="cannot be unpacked"):
        read_report(cut, "x")
    report = read_report(cut.rename(tmp_path / "many.ncu-repz.incomplete"), "x")
    assert 100 < len(report.kernels) < 3000
    assert "complete kernels read; the rest is left out" in report.notes[0]


@pytest.mark.parametrize("data", [b"", b"NVR\0", REPORT[: block_starts(REPORT)[0] + 3], b"==PROF== Connected\n"])
def test_one_without_a_whole_kernel_is_refused(incomplete: Path, data: bytes) -> None:
    """If nothing can be read, the error is that of a damaged report."""
    incomplete.write_bytes(data)
    with pytest.raises(InputError):
        read_report(incomplete, "x")


def test_the_command_line_warns_and_goes_on(incomplete: Path) -> None:
    """`analyze` shows the kernels with a warning on stderr; folders are not searched for such files."""
    incomplete.write_bytes(REPORT[:-1])
    result = CliRunner().invoke(main, ["analyze", str(incomplete), "--launches"])
    assert result.exit_code == 0
    assert f"warning: {incomplete}: collecting it failed: 3 complete kernels read" in result.stderr
    assert "kernel_2" in result.stdout
    assert CliRunner().invoke(main, ["analyze", str(incomplete.parent)]).exit_code == 1


def test_a_store_takes_it_once(incomplete: Path, tmp_path: Path) -> None:
    """The readable part goes into a store like any report, and storing it again changes nothing."""
    incomplete.write_bytes(REPORT[:-1])
    for _ in range(2):
        assert CliRunner().invoke(main, ["ingest", str(incomplete), "--store", str(tmp_path / "st")]).exit_code == 0
    result = CliRunner().invoke(main, ["analyze", "--store", str(tmp_path / "st")])
    assert "3 kernels, 3.00 µs of GPU time" in result.stdout
