"""Any path works or is explained: pipes, folders with anything in them, inaccessible places."""

from __future__ import annotations

import gzip
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.ncu_rep_writer import KernelSpec, ReportSpec, encode_report, write_report
from support.packing import packed

from rooflens.cli.group import main
from rooflens.errors import UsageError
from rooflens.ingest.reports.report import ReadOptions

REPORT = encode_report(ReportSpec([KernelSpec("kernel(float *)", {"gpu__time_duration.sum": 1000.0})]))


def run(*arguments: object, given: bytes = b"") -> Result:
    """Run the command line; an exception that is no exit fails the test with its traceback."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=given)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder where temporary files go."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.parametrize("compress", [bytes, packed, gzip.compress], ids=["plain", "zstd", "gzip"])
def test_a_report_comes_through_stdin(scratch: Path, compress: type[bytes]) -> None:
    """`-` reads stdin, however it is compressed, and leaves no temporary file."""
    result = run("analyze", "-", "--format", "csv", given=compress(REPORT))
    assert result.exit_code == 0
    assert result.stdout.splitlines()[1].startswith("<stdin>,0,kernel,")
    assert list(scratch.iterdir()) == []


def test_each_command_reads_stdin(tmp_path: Path) -> None:
    """`report` and `ingest` accept `-` too, and suggest no command that would read the empty pipe again."""
    assert run("report", "-", "-o", tmp_path / "page.html", given=REPORT).exit_code == 0
    assert "<title>&lt;stdin&gt;" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert run("ingest", "-", "--store", tmp_path / "store", given=REPORT).exit_code == 0
    assert "rooflens report -" not in run("analyze", "-", given=REPORT).stdout
    assert "<stdin>: not an Nsight Compute report" in run("hotspots", "-", given=b"text").stderr
    assert "stdin was empty" in run("analyze", "-", given=b"").stderr


def test_a_named_pipe_is_read_once(tmp_path: Path, scratch: Path) -> None:
    """`<(gzip -c report)` is read like stdin, under its own name."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(gzip.compress(REPORT),))
    writer.start()
    result = run("analyze", pipe, "--format", "csv")
    writer.join()
    assert result.stdout.splitlines()[1].startswith(f"{pipe},0,")
    assert list(scratch.iterdir()) == []


def test_what_is_too_large_is_refused(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ROOFLENS_MAX_UNPACKED limits pipes; the hint names it, and no temporary file remains."""
    monkeypatch.setenv("ROOFLENS_MAX_UNPACKED", "0.5 KiB")
    result = run("analyze", "-", given=REPORT)
    assert result.exit_code == 1
    assert "sends more than 512 B" in result.stderr
    assert "ROOFLENS_MAX_UNPACKED" in result.stderr
    assert list(scratch.iterdir()) == []


def test_the_limit_holds_for_files_in_each_command(
    tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ROOFLENS_MAX_UNPACKED refuses just the compressed file that unpacks to more, and leaves no temporary file."""
    packed_file, plain = tmp_path / "a.ncu-repz", tmp_path / "b.ncu-rep"
    packed_file.write_bytes(packed(REPORT))
    plain.write_bytes(REPORT)
    monkeypatch.setenv("ROOFLENS_MAX_UNPACKED", str(len(REPORT) - 1))
    for command in (
        ("analyze",),
        ("hotspots",),
        ("ingest", "--store", tmp_path / "store"),
        ("report", "-o", "-", "--format", "json"),
    ):
        said = run(*command, packed_file, plain).stderr
        assert "a.ncu-repz: unpacks to more than " in said
        assert "b.ncu-rep:" not in said
    monkeypatch.setenv("ROOFLENS_MAX_UNPACKED", str(len(REPORT)))
    assert run("analyze", packed_file).exit_code == 0
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("4GiB", 4 << 30),
        ("4g", 4 << 30),
        ("500 MB", 500_000_000),
        ("1.5k", 1536),
        ("7", 7),
        ("1e9", 10**9),
        ("2TB", 2 * 10**12),
    ],
)
def test_sizes_have_units(text: str, size_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decimal and binary units differ, and a number without unit is bytes."""
    monkeypatch.setenv("ROOFLENS_MAX_UNPACKED", text)
    assert ReadOptions().max_unpacked_bytes == size_bytes


@pytest.mark.parametrize("text", ["nan", "inf", "1e300", "0", "-1", "soon"])
def test_a_deadline_is_so_many_seconds(scratch: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A time that no clock can wait for is wrong usage; any other time is the reader's deadline."""
    monkeypatch.setenv("ROOFLENS_DEADLINE_S", text)
    result = run("analyze", scratch)
    assert (result.exit_code, "ROOFLENS_DEADLINE_S" in result.stderr) == (2, True)
    monkeypatch.setenv("ROOFLENS_DEADLINE_S", "7.5")
    assert ReadOptions().deadline_s == 7.5


@pytest.mark.parametrize("text", [" ", "4 parsecs", "-1", "0", "1e40", "GiB", "0x10", "nan", "inf"])
def test_what_is_no_size_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Less than a byte, and more than fits, are refused as sizes."""
    monkeypatch.setenv("ROOFLENS_MAX_UNPACKED", text)
    with pytest.raises(UsageError, match="ROOFLENS_MAX_UNPACKED") as caught:
        ReadOptions()
    assert "write it like 4GiB" in caught.value.hint


def test_an_empty_path_is_wrong_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty path, such as an unset variable, is wrong usage, not the current folder."""
    write_report(tmp_path / "a.ncu-rep", ReportSpec([KernelSpec("kernel()", {})]))
    monkeypatch.chdir(tmp_path)
    result = run("analyze", "")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "one of the paths is empty" in result.stderr


def test_what_a_folder_keeps_closed_is_named_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dangling links, pipes, devices, linked and forbidden folders are skipped, and named."""
    (tmp_path / "a.ncu-rep").write_bytes(REPORT)
    (tmp_path / "b.ncu-rep").symlink_to(tmp_path / "none")
    os.mkfifo(tmp_path / "c.ncu-rep")
    result = run("analyze", tmp_path, "--format", "csv")
    assert len(result.stdout.splitlines()) == 2
    assert "skipped 2 places" in result.stderr
    assert "b.ncu-rep (a broken link)" in result.stderr
    assert "c.ncu-rep (a named pipe)" in result.stderr
    (tmp_path / "d").symlink_to("/dev/zero")
    (tmp_path / "e").symlink_to(tmp_path)
    (tmp_path / "closed").mkdir()
    scandir = os.scandir

    def refuse(place: str) -> object:
        if str(place).endswith("closed"):
            raise PermissionError(13, "Permission denied", place)
        return scandir(place)

    monkeypatch.setattr(os, "scandir", refuse)
    said = run("analyze", tmp_path, "--format", "csv").stderr
    assert "skipped 5 places" in said
    assert "closed (a folder that cannot be read: Permission denied)" in said


@pytest.fixture
def deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the outermost of 1,200 nested folders with a report in the innermost; pytest cannot remove them itself."""
    monkeypatch.chdir(tmp_path)
    for _ in range(1200):
        Path("d").mkdir()
        os.chdir("d")
    Path("a.ncu-rep").write_bytes(REPORT)
    os.chdir(tmp_path)
    yield tmp_path / "d"
    subprocess.run(["rm", "-r", tmp_path / "d"], check=True)  # noqa: S603, S607 - coreutils go as deep as it takes


def test_folders_may_stand_a_thousand_deep(deep: Path) -> None:
    """A report is found at any depth of folders."""
    result = run("analyze", deep, "--format", "csv")
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("x" * 300, "cannot be opened: File name too long"),
        ("/dev/zero", "is a device, not a report"),
        ("link", "is a link to `none`, which does not exist"),
        ("ring", "cannot be opened: Too many levels of symbolic links"),
        ("a.ncu-rep/below", "cannot be opened: Not a directory"),
    ],
)
def test_a_path_that_cannot_be_opened_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, message: str
) -> None:
    """The error for an inaccessible path says what is there, or quotes the system."""
    monkeypatch.chdir(tmp_path)
    Path("link").symlink_to("none")
    Path("ring").symlink_to("ring")
    Path("a.ncu-rep").write_bytes(REPORT)
    result = run("analyze", given)
    assert result.exit_code == 1
    assert message in result.stderr


def test_what_belongs_to_a_report_is_not_called_unread(tmp_path: Path) -> None:
    """The un-profiled run and ncu's log belong to the report beside them; without a report they are other files."""
    (tmp_path / "a.ncu-rep").write_bytes(REPORT)
    for name in ("a.unprofiled.json", "b.unprofiled.json", "a.ncu.log"):
        (tmp_path / name).write_text("{}", encoding="utf-8")
    assert "skipped 1 file: not a report: b.unprofiled.json" in run("analyze", tmp_path).stderr


def test_a_gzipped_report_is_found_in_a_folder(tmp_path: Path) -> None:
    """Gzipped reports are recognised by ending; if a report is missing, its gzipped form is suggested."""
    (tmp_path / "a.ncu-rep.gz").write_bytes(gzip.compress(REPORT))
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"text"))
    result = run("analyze", tmp_path, "--format", "csv")
    assert len(result.stdout.splitlines()) == 2
    assert "skipped 1 file: not a report: b.txt.gz" in result.stderr
    assert "a.ncu-rep.gz` does, and can be read as it is" in run("analyze", tmp_path / "a.ncu-rep").stderr


EXPORT = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device",'
    '"CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
    '"0","1","a","h","k","1","7","(1, 1, 1)","(1, 1, 1)","0","9.0","Command line profiler metrics",'
    '"gpu__time_duration.sum","ns","1000"\n'
)
GPU = ("--gpu", "NVIDIA H100 80GB HBM3")


def test_a_store_among_reports_is_passed_over_as_one(tmp_path: Path) -> None:
    """A store among reports is skipped as a whole: its files do not count as unread reports."""
    (tmp_path / "a.ncu-rep").write_bytes(REPORT)
    (tmp_path / "results").mkdir()
    assert run("ingest", tmp_path, "--store", tmp_path / "results" / "store").exit_code == 0
    result = run("analyze", tmp_path, "--format", "csv")
    assert len(result.stdout.splitlines()) == 2
    assert result.stderr.splitlines() == [
        f"warning: skipped 1 place: {tmp_path / 'results' / 'store'} (a store: --store reads it)"
    ]


def test_exports_are_found_in_a_folder(tmp_path: Path) -> None:
    """Tables exported by ncu are read beside reports, gzipped too; other tables are skipped and counted."""
    (tmp_path / "a.ncu-rep").write_bytes(REPORT)
    (tmp_path / "b.csv").write_text(EXPORT)
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(EXPORT.replace('"1000"', '"2000"').encode()))
    (tmp_path / "d.csv").write_text("a,b\n1,2\n")
    (tmp_path / "e.csv.gz").write_bytes(gzip.compress(b"a,b\n")[:-4])
    result = run("analyze", tmp_path, "--format", "csv", *GPU)
    read = [line.split(",")[0] for line in result.stdout.splitlines()[1:]]
    assert read == [str(tmp_path / name) for name in ("a.ncu-rep", "b.csv", "c.csv.gz")]
    assert "skipped 2 files: not reports: d.csv, e.csv.gz" in result.stderr


def test_whatever_reads_an_export_takes_the_gpu_that_it_does_not_name(tmp_path: Path) -> None:
    """For an export without a GPU the hint names --gpu, in each command that has the option."""
    for name, time_ns in (("before", "2000"), ("after", "1000")):
        (tmp_path / f"{name}.csv").write_text(EXPORT.replace('"1000"', f'"{time_ns}"'))
    before, after = tmp_path / "before.csv", tmp_path / "after.csv"
    for command in (("compare", before, after), ("analyze", before)):
        refused = run(*command)
        assert refused.exit_code == 1, command
        assert "name it with --gpu" in refused.stderr, command
        assert run(*command, *GPU).exit_code == 0, command


def test_an_export_beside_its_report_is_passed_over(tmp_path: Path) -> None:
    """A report and its export in a folder count once, unless the export is named."""
    (tmp_path / "gemm.v1.ncu-rep").write_bytes(REPORT)
    (tmp_path / "exports").mkdir()
    for name in ("gemm.v1.csv", "gemm.v1.raw.base.csv", "gemm.v2.csv"):
        (tmp_path / "exports" / name).write_text(EXPORT)
    result = run("analyze", tmp_path, "--format", "csv", *GPU)
    assert [Path(line.split(",")[0]).name for line in result.stdout.splitlines()[1:]] == [
        "gemm.v2.csv",
        "gemm.v1.ncu-rep",
    ]
    assert "skipped 2 places: " in result.stderr
    assert "gemm.v1.csv (an export of a report that is read)" in result.stderr
    named = run("analyze", tmp_path / "gemm.v1.ncu-rep", tmp_path / "exports" / "gemm.v1.csv", "--format", "csv", *GPU)
    assert len(named.stdout.splitlines()) == 3


RAW = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device",'
    '"CC","gpu__time_duration.sum","sm__cycles_elapsed.max","smsp__inst_executed.sum"\n'
    '"","","","","","","","","","","","us","cycle","inst"\n'
    '"0","1","a","h","k","1","7","(1, 1, 1)","(1, 1, 1)","0","9.0","{us}","1,536","40,960"\n'
)


def test_exports_of_one_run_count_once(tmp_path: Path) -> None:
    """Of the pages exported from one run only the raw page is read, whatever their names; another run is read too."""
    (tmp_path / "details.csv").write_text(EXPORT.replace('"1000"', '"1024"'))
    (tmp_path / "everything.csv").write_text(RAW.format(us="1.024"))
    (tmp_path / "a_rounded.csv").write_text(RAW.format(us="1.02"))
    (tmp_path / "second_run.csv").write_text(RAW.format(us="1.056"))
    (tmp_path / "third_run.csv").write_text(EXPORT.replace('"1000"', '"1088"'))
    result = run("analyze", tmp_path, "--format", "csv", *GPU)
    read = [Path(line.split(",")[0]).name for line in result.stdout.splitlines()[1:]]
    assert read == ["everything.csv", "second_run.csv", "third_run.csv"]
    for name in ("details.csv", "a_rounded.csv"):
        assert f"{name} (an export of the same run as `{tmp_path / 'everything.csv'}`)" in result.stderr
    named = run("analyze", tmp_path / "details.csv", tmp_path / "everything.csv", "--format", "csv", *GPU)
    assert len(named.stdout.splitlines()) == 3


def test_an_export_of_another_report_of_the_same_name_is_read(tmp_path: Path) -> None:
    """Exports with the same name as a report in another run's folder are read."""
    for name in ("run1", "run2"):
        (tmp_path / name).mkdir()
    (tmp_path / "run1" / "profile.csv").write_text(EXPORT)
    (tmp_path / "run2" / "profile.ncu-rep").write_bytes(REPORT)
    result = run("analyze", tmp_path, "--format", "csv", *GPU)
    assert [Path(line.split(",")[0]).name for line in result.stdout.splitlines()[1:]] == [
        "profile.csv",
        "profile.ncu-rep",
    ]
    assert "skipped" not in result.stderr


def test_an_export_comes_through_stdin(scratch: Path) -> None:
    """Output of `ncu --csv` is read as printed, including the program's own output before it."""
    result = run("analyze", "-", "--format", "csv", *GPU, given=f"==PROF== Connected\n{EXPORT}".encode())
    assert result.stdout.splitlines()[1].startswith("<stdin>,0,k,k,k,k-6c2fac,")
    assert list(scratch.iterdir()) == []


def test_text_comes_through_stdin() -> None:
    """Output of ncu without `--csv` is read as printed; if it stops early, the exit code says so."""
    table = "\n".join(("-" * 30 + " ----------- ------------", f"{'Duration':<30} {'us':>11} {'72.64':>12}"))
    line = "  k(int) (8, 1, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 9.0"
    written = f"==PROF== Connected\n[7] app@host\n{line}\nSection: GPU Speed Of Light Throughput\n{table}\n"
    whole, cut = (run("analyze", "-", *GPU, given=text.encode()) for text in (written + "--- --- ---\n", written))
    assert (whole.exit_code, cut.exit_code) == (0, 1)
    assert "72.6 µs" in whole.stdout
    assert "1 kernel not complete: `k` (its table `GPU Speed Of Light Throughput` is not complete)" in cut.stderr


def test_no_output_takes_the_place_of_an_export(tmp_path: Path) -> None:
    """An export counts as a report: a table that would overwrite it is refused, forced or not."""
    file = tmp_path / "a.csv"
    file.write_text(EXPORT)
    options = ["predict", "gemm", "--m", "64", "--n", "64", "--k", "64", "--format", "csv", "--force", "-o"]
    refused = run(*options, file)
    assert (refused.exit_code, file.read_text()) == (2, EXPORT)
    file.write_text("a,b\n")
    assert run(*options, file).exit_code == 0


def test_the_metrics_of_another_chip_are_not_shown() -> None:
    """An unknown compute capability is an error that lists the known ones."""
    result = run("metrics", "--chip", "99.9")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "9.0" in result.stderr
