from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import ncu_report
import pytest
from support.damage import block_starts
from support.ncu_rep_writer import KernelSpec, ReportSpec, SessionSpec, encode_report, write_report

from rooflens.errors import InputError
from rooflens.ingest.messages.messages import message
from rooflens.ingest.reports.container import inspect

KERNEL = KernelSpec("void copy(float *)", {"gpu__time_duration.sum": 1000.0, "launch__grid_size": 8})
REPORT = ReportSpec([KERNEL] * 3)
DAMAGED = "benchmark_flash_attention__window-512.ncu-rep"


def _framed(encoded: bytes) -> bytes:
    return len(encoded).to_bytes(4, "little") + encoded


def _container(header: dict[str, Any], payload: bytes) -> bytes:
    """Encode a report of one block that may be inconsistent."""
    fields = {"NumSources": 0, "NumResults": 0, "PayloadSize": len(payload)} | header
    block = message("BlockHeader")(**fields).SerializeToString()
    return b"NVR\0" + _framed(message("FileHeader")(Version=7).SerializeToString()) + _framed(block) + payload


def _error(path: Path, data: bytes) -> InputError:
    """Return the error that `inspect` raises for `data`."""
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        inspect(path)
    return caught.value


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path for a test's report."""
    return tmp_path / "report.ncu-rep"


def test_an_intact_report_states_digest_size_and_results(path: Path) -> None:
    """Digest, size and number of results are the file's."""
    container = inspect(write_report(path, REPORT))
    data = path.read_bytes()
    assert container.digest == hashlib.sha256(data).hexdigest()
    assert container.file_bytes == len(data)
    assert container.result_count == 3


def test_the_session_states_who_wrote_the_report(path: Path) -> None:
    """Version, command line, host, process, modes and time are read as written."""
    session = SessionSpec(
        process_id=77,
        process_name="C:\\synthetic.exe\0",
        host="host-1",
        ncu_version="2025.4.1.0 (build 37053803) (public-release)",
        command_line="ncu --cache-control=none --set full ./program",
        clock_control="Base",
        replay_mode="Application",
        created_unix_s=1_700_000_000,
    )
    (found,) = inspect(write_report(path, ReportSpec([KERNEL], session))).sessions
    assert (found.process_id, found.process_name, found.host) == (77, "C:\\synthetic.exe", "host-1")
    assert found.ncu_version == "2025.4.1.0"
    assert found.command_line == "ncu --cache-control=none --set full ./program"
    assert (found.clock_control, found.cache_control, found.replay_mode) == ("base", "none", "application")
    assert found.created_unix_s == 1_700_000_000


@pytest.mark.parametrize("seconds", [2**40, 2**63, 2**33 + 1])
def test_a_date_that_cannot_be_is_left_out(path: Path, seconds: int) -> None:
    """A time thousands of years ahead is damage: the report has no date, and a note says why."""
    (found,) = inspect(write_report(path, ReportSpec([KERNEL], SessionSpec(created_unix_s=seconds)))).sessions
    assert found.created_unix_s is None
    (note,) = found.notes
    assert f"{seconds} s" in note


def test_modes_stand_in_the_command_line_too(path: Path) -> None:
    """A clock mode stated only on the command line is read; one stated nowhere is None."""
    session = SessionSpec(command_line="ncu --clock-control boost -o out ./program")
    (found,) = inspect(write_report(path, ReportSpec([KERNEL], session))).sessions
    assert (found.clock_control, found.cache_control, found.replay_mode) == ("boost", None, None)


def test_each_process_gets_its_own_session(path: Path) -> None:
    """Blocks of two reports behind one file header are two sessions with their own facts."""
    first = encode_report(ReportSpec([KERNEL], SessionSpec(process_id=1, host="one")))
    second = encode_report(ReportSpec([KERNEL], SessionSpec(process_id=2, host="two")))
    path.write_bytes(first + second[block_starts(second)[0] :])
    assert [(session.process_id, session.host) for session in inspect(path).sessions] == [(1, "one"), (2, "two")]


def test_text_in_an_unknown_code_page_is_no_error(path: Path) -> None:
    """A command line that is not UTF-8 is kept with replacement characters."""
    data = encode_report(ReportSpec([KERNEL], SessionSpec(command_line="ncu ./r@sum@")))
    path.write_bytes(data.replace(b"./r@sum@", b"./r\xe9sum\xe9"))
    assert inspect(path).sessions[0].command_line == "ncu ./r\ufffdsum\ufffd"


def test_a_missing_file_is_named_as_such(tmp_path: Path) -> None:
    """A path with nothing there is an input error."""
    with pytest.raises(InputError, match="no such file"):
        inspect(tmp_path / "none.ncu-rep")


def test_a_directory_is_no_report(tmp_path: Path) -> None:
    """A directory is an input error."""
    with pytest.raises(InputError, match="is a directory, not a report"):
        inspect(tmp_path)


def test_an_empty_file_is_named_as_such(path: Path) -> None:
    """An empty file is an input error."""
    assert str(_error(path, b"")) == "the file is empty"


@pytest.mark.parametrize(
    ("name", "data", "hint"),
    [
        ("a.nsys-rep", b"\x01\x02\x03\x04\x05", "Nsight Systems"),
        ("a.qdrep", b"QDSTRM", "Nsight Systems"),
        ("a.sqlite", b"SQLite format 3\0....", "SQLite"),
        ("a.csv", b'"ID","Process ID"\n', "--page raw --csv"),
        ("a.ncu-rep", b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        ("a.ncu-rep", b"\x97\0\0\0\x08\0\x10\x01", "first bytes are not"),
        ("a.bin", b"anything", "`ncu -o NAME`"),
    ],
)
def test_what_is_no_report_gets_a_hint(tmp_path: Path, name: str, data: bytes, hint: str) -> None:
    """A file without the magic is refused, with a guess of its format."""
    error = _error(tmp_path / name, data)
    assert str(error).startswith("not an Nsight Compute report")
    assert hint in f"{error}\n{error.hint}"


def test_another_format_version_is_refused(path: Path) -> None:
    """An unknown version number is refused, although NVIDIA's reader opens any."""
    data = encode_report(REPORT).replace(b"\x08\x07", b"\x08\x63", 1)
    assert str(_error(path, data)) == "version 99 of the report format is unknown: rooflens reads version 7"


def test_a_header_without_version_is_damage(path: Path) -> None:
    """A file header without its only field cannot be decoded."""
    data = b"NVR\0" + _framed(b"\x10\x07")
    assert str(_error(path, data)) == "damaged: the file header at offset 8 cannot be decoded"


def test_a_file_that_ends_in_its_header_is_truncated(path: Path) -> None:
    """An incomplete file header is refused."""
    assert str(_error(path, b"NVR\0\x02\0\0\0\x08")) == ("truncated: the file ends inside its header, at offset 9")


def test_a_cut_payload_is_measured(path: Path) -> None:
    """The error for a truncated file names the block, the missing bytes and the place."""
    data = encode_report(REPORT)
    expected = f"truncated: block {len(block_starts(data)) - 1} needs 5 more bytes at offset {len(data) - 5:,}"
    assert str(_error(path, data[:-5])) == expected


def test_a_cut_block_header_is_measured(path: Path) -> None:
    """A cut inside a block's header says so."""
    data = encode_report(REPORT)
    start = block_starts(data)[1]
    message_text = str(_error(path, data[: start + 10]))
    assert message_text.startswith("truncated: the header of block 1 needs ")
    assert message_text.endswith(f"more bytes at offset {start + 10:,}")


def test_a_second_report_is_named_with_its_offset(path: Path) -> None:
    """A file that contains its report twice is refused, with the place."""
    data = encode_report(REPORT)
    expected = f"two reports in one file: a second report starts at offset {len(data):,}"
    assert str(_error(path, data + data)) == expected


def test_bytes_behind_the_last_block_are_counted(path: Path) -> None:
    """Foreign text behind the report is refused, with its size and place."""
    data = encode_report(REPORT)
    expected = f"damaged: the last 21 bytes, from offset {len(data):,}, are not a block"
    assert str(_error(path, data + b"==PROF== Disconnected")).startswith(expected)


def test_zeros_behind_the_last_block_are_no_blocks(path: Path) -> None:
    """A file padded with zeros is refused: zeros are no empty blocks."""
    data = encode_report(REPORT)
    assert f"at offset {len(data):,} cannot be decoded" in str(_error(path, data + bytes(64)))


def test_results_must_fill_their_block(path: Path) -> None:
    """Bytes of a payload that belong to no result are damage."""
    expected = "damaged: block 0 holds 3 bytes at offset 20 that belong to none of its results"
    assert str(_error(path, _container({}, b"abc"))) == expected


def test_a_result_must_end_in_its_block(path: Path) -> None:
    """A result that is longer than its block is damage."""
    error = _error(path, _container({"NumResults": 1}, b"\xff\0\0\0abc"))
    assert str(error) == "damaged: kernel 0 of block 0 at offset 20 passes the end of the block at offset 27"


@pytest.mark.parametrize("kind", ["NumRangeResults", "NumCmdlistResults", "NumGraphResults"])
def test_other_results_count_and_must_decode(path: Path, kind: str) -> None:
    """Ranges, command lists and graphs are results, and are checked for well-formedness."""
    path.write_bytes(_container({kind: 1}, _framed(b"\x08\x01\x10\x01")))
    assert inspect(path).result_count == 1
    assert "cannot be decoded" in str(_error(path, _container({kind: 1}, _framed(b"\xff\xff"))))


def test_drawings_of_graphs_stand_before_the_results(path: Path) -> None:
    """A graph's drawing for NVIDIA's viewer is no result, as for NVIDIA's own reader."""
    result = _first_result(encode_report(ReportSpec([KERNEL])))
    strings = {"StringTable": message("StringTable")(Strings=[b"", *(b"m__%d.sum" % number for number in range(99))])}
    drawing = _framed(b"\x08\x01\x10\x00\x18\x01")  # GraphData: address, type and time
    counts = {"NumResults": 1, "NumGraphs": 1, **strings}
    path.write_bytes(_container(counts, drawing + _framed(result)))
    assert inspect(path).result_count == 1
    assert ncu_report.load_report(str(path)).num_ranges() == 1
    _error(path, _container(counts, _framed(result) + drawing))
    assert ncu_report.load_report(str(path)).num_ranges() == 0


def test_a_kernel_result_must_decode(path: Path) -> None:
    """A result without its required fields is damage, with the place."""
    error = _error(path, _container({"NumResults": 1}, _framed(b"\x08\x01")))
    assert str(error) == "damaged: kernel result 0, 2 bytes at offset 24, cannot be decoded"


def test_a_report_without_results_is_an_error(path: Path) -> None:
    """A report without results is refused, never an empty success."""
    error = _error(path, encode_report(ReportSpec([])))
    assert str(error) == "the report holds no results"
    assert "filters" in error.hint


def test_metric_names_must_be_there(path: Path) -> None:
    """A result whose metric names are missing, as after a cut between two blocks, is damage."""
    result = _first_result(encode_report(ReportSpec([KERNEL])))
    error = _error(path, _container({"NumResults": 1}, _framed(result)))
    assert str(error).startswith("damaged: result 0 refers to string 1, but the report holds 0 strings")


def _first_result(data: bytes) -> bytes:
    """Return the first kernel result of the report `data`."""
    for start in block_starts(data):
        header_bytes = int.from_bytes(data[start : start + 4], "little")
        payload = start + 4 + header_bytes
        if message("BlockHeader").FromString(data[start + 4 : payload]).NumResults:
            return data[payload + 4 : payload + 4 + int.from_bytes(data[payload : payload + 4], "little")]
    raise AssertionError


@pytest.mark.corpus
def test_every_intact_published_report_passes(corpus: Path) -> None:
    """All published reports pass, except the known damaged one."""
    failed = {}
    for report in sorted([*corpus.glob("*.ncu-rep"), *corpus.glob("*.nsight-cuprof-report")]):
        try:
            container = inspect(report)
        except InputError as error:
            failed[report.name] = str(error)
        else:
            assert container.result_count
            assert not container.synthetic
            assert container.sessions[0].process_name
            assert container.sessions[0].created_unix_s
    assert list(failed) == [DAMAGED]


@pytest.mark.corpus
def test_published_sessions_name_their_writer(corpus: Path) -> None:
    """Facts of two real reports: one with ncu's settings, one with its modes on the command line."""
    (settings,) = inspect(corpus / "nsight-training__manual_nvtx.ncu-rep").sessions
    assert (settings.clock_control, settings.cache_control, settings.replay_mode) == ("base", "all", "kernel")
    (options,) = inspect(corpus / "cutlass__384.ncu-rep").sessions
    assert (options.ncu_version, options.clock_control, options.cache_control) == ("2024.1.1.0", "base", "all")
