from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import ncu_report
import pytest
from msgspec.structs import replace
from support.damage import block_starts
from support.ncu_rep_writer import KernelSpec, ReportSpec, encode_report
from support.packing import pack, packed

from rooflens.errors import InputError
from rooflens.ingest.load import ingest_reports, load_reports, read_group
from rooflens.ingest.reports import unpacking
from rooflens.ingest.reports.child import in_child
from rooflens.ingest.reports.inputs import find_inputs
from rooflens.ingest.reports.jobs import Job
from rooflens.ingest.reports.read import read_report
from rooflens.ingest.reports.report import ReadOptions, ReadReport
from rooflens.ingest.reports.unpacking import (
    MAX_UNPACKED_BYTES,
    is_packed,
    likely_bytes,
    spooled,
    unpacked,
)
from rooflens.ingest.timelines.read import opened_timeline
from rooflens.model.store.dataset import Store, StoredReport

METRICS = {"gpu__time_duration.sum": 1000.0, "launch__grid_size": 8}
REPORT = encode_report(ReportSpec([KernelSpec(f"kernel_{number}(float *)", METRICS) for number in range(3)]))


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder for temporary files, in this process and its children."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def _error(file: Path) -> InputError:
    """Return the error that reading `file` raises."""
    with pytest.raises(InputError) as caught:
        read_report(file, file.name)
    return caught.value


@pytest.mark.parametrize("name", ["attention", "verdict_memory_dram", "arch_cc90"])
def test_a_compressed_report_reads_like_the_plain_one(fixtures: Path, tmp_path: Path, scratch: Path, name: str) -> None:
    """Run, digest, kernels and every raw value equal those of the report before it was compressed."""
    plain = fixtures / "synthetic" / f"{name}.synthetic.ncu-rep"
    file = pack(plain, tmp_path / "report.ncu-repz")
    assert file.stat().st_size < plain.stat().st_size
    assert read_report(file, "one", ReadOptions(raw="all")) == read_report(plain, "one", ReadOptions(raw="all"))
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("name", ["a.ncu-rep", "a.ncu-repz", "a.NCU-REPZ", "a.bin", "a", "\udce9.ncu-repz"])
@pytest.mark.parametrize("compress", [packed, gzip.compress, bytes], ids=["zstd", "gzip", "plain"])
def test_what_a_file_is_its_bytes_say(tmp_path: Path, scratch: Path, name: str, compress: Callable[..., bytes]) -> None:
    """A report is read under any name, compressed or not, although NVIDIA's reader relies on the name."""
    file = tmp_path / name
    file.write_bytes(compress(REPORT))
    assert len(read_report(file, "one").kernels) == 3
    assert list(scratch.iterdir()) == []


def test_nvidias_own_reader_takes_what_these_tests_compress(tmp_path: Path) -> None:
    """NVIDIA's reader accepts these files as `.ncu-repz`, in one frame or several, and under no other name."""
    half = len(REPORT) // 2
    for name, data in {"one": packed(REPORT), "two": packed(REPORT[:half]) + packed(REPORT[half:])}.items():
        file = tmp_path / f"{name}.ncu-repz"
        file.write_bytes(data)
        context = ncu_report.load_report(str(file))
        assert context.range_by_idx(0).num_actions() == 3
        assert len(read_report(file, "one").kernels) == 3
        other = ncu_report.load_report(str(shutil.copy(file, tmp_path / f"{name}.ncu-rep")))
        assert other is None or other.num_ranges() == 0


def test_a_cut_compressed_report_is_damaged_wherever_it_is_cut(tmp_path: Path, scratch: Path) -> None:
    """Cut at any byte, a compressed report is refused as damaged, and no temporary file is left."""
    file, data = tmp_path / "cut.ncu-repz", packed(REPORT)
    for end in range(4, len(data)):
        file.write_bytes(data[:end])
        assert str(_error(file)) == "damaged: the compressed report cannot be unpacked: Truncated compressed stream"
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("tail", [b"==PROF== Disconnected", b"\0" * 64, b"x"])
def test_bytes_behind_the_frame_are_damage(tmp_path: Path, scratch: Path, tail: bytes) -> None:
    """A compressed report with bytes after its end is refused as damaged."""
    file = tmp_path / "tail.ncu-repz"
    file.write_bytes(packed(REPORT) + tail)
    assert str(_error(file)).startswith("damaged: the compressed report cannot be unpacked: ")
    assert list(scratch.iterdir()) == []


def test_a_flipped_byte_is_an_input_error_or_harmless(tmp_path: Path, scratch: Path) -> None:
    """Inverting any byte of a compressed report gives an input error or the right number of kernels."""
    data = packed(REPORT)
    jobs = []
    for offset in range(len(data)):
        flipped = bytearray(data)
        flipped[offset] ^= 0xFF
        file = tmp_path / f"{offset}.ncu-repz"
        file.write_bytes(flipped)
        jobs.append(Job(file, str(offset)))
    results = [outcome.result for outcome in read_group(ReadOptions(), jobs).outcomes]
    refused = [result for result in results if isinstance(result, InputError)]
    assert len(refused) > len(data) / 2
    assert [error for error in refused if "bug in rooflens" in error.hint] == []
    assert {len(result.kernels) for result in results if isinstance(result, ReadReport)} <= {3}
    assert list(scratch.iterdir()) == []


def test_damage_inside_the_frame_is_found_as_in_a_plain_report(tmp_path: Path, scratch: Path) -> None:
    """For a report that was cut before it was compressed, the error gives the place in the plain report."""
    file = tmp_path / "inside.ncu-repz"
    file.write_bytes(packed(REPORT[:-5]))
    place = f"block {len(block_starts(REPORT)) - 1} needs 5 more bytes at offset {len(REPORT) - 5:,}"
    assert str(_error(file)) == f"truncated: {place}"
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"NV\0", b"a folder\0archived"])
def test_what_holds_no_report_is_refused_before_it_is_unpacked(tmp_path: Path, scratch: Path, content: bytes) -> None:
    """Other data compressed with zstd is refused, and the error says what it is."""
    file = tmp_path / "archive.tar.zst"
    file.write_bytes(packed(content))
    error = _error(file)
    assert "it is zstd-compressed, but what is in it does not start with `NVR`" in str(error)
    assert ".ncu-repz" in error.hint
    assert list(scratch.iterdir()) == []


LAYERS = {
    "plain": bytes,
    "zstd": packed,
    "gzip": gzip.compress,
    "zstd, then gzip": lambda data: gzip.compress(packed(data)),
    "two members": lambda data: gzip.compress(data[:1000]) + gzip.compress(data[1000:]),
}


@pytest.mark.parametrize("layers", LAYERS)
def test_the_plain_bytes_are_those_before_it_was_compressed(tmp_path: Path, scratch: Path, layers: str) -> None:
    """Whatever compressed a report, its original bytes are available, until the block ends."""
    file = tmp_path / "a"
    file.write_bytes(LAYERS[layers](REPORT))
    with unpacked(file) as plain:
        assert plain.read_bytes() == REPORT
    assert list(scratch.iterdir()) == []


def test_a_text_is_unpacked_for_its_reader_to_judge(tmp_path: Path) -> None:
    """An export of a report is text and is unpacked like a report, in UTF-16 too, marked or not; zeros are no text."""
    file = tmp_path / "export.csv.gz"
    for text in (b'"ID","Process ID"\n', *('"ID"\n'.encode(name) for name in ("utf-16", "utf-16-le", "utf-16-be"))):
        file.write_bytes(gzip.compress(text))
        assert b"".join(unpacking.chunks(file)) == text
    file.write_bytes(gzip.compress(bytes(64)))
    assert "does not start with `NVR`" in str(_error(file))


def test_what_was_compressed_again_and_again_is_no_report(tmp_path: Path) -> None:
    """Two layers of compression are unpacked, as they occur; a third is refused."""
    file = tmp_path / "a.gz"
    file.write_bytes(gzip.compress(gzip.compress(packed(REPORT))))
    assert str(_error(file)) == "compressed more than 2 times, as no report is"


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: data[:-9], "ended before the end-of-stream marker"),
        (lambda data: data + b"==PROF== Disconnected", "Not a gzipped file"),
        (lambda data: data[:40] + bytes(20) + data[60:], "Error -3|CRC check failed|invalid"),
    ],
    ids=["cut", "tail", "overwritten"],
)
def test_a_damaged_gzip_file_is_an_input_error(
    tmp_path: Path, scratch: Path, damage: Callable[[bytes], bytes], reason: str
) -> None:
    """A gzip file that was cut, extended or overwritten is refused as damaged, and no temporary file is left."""
    file = tmp_path / "a.ncu-rep.gz"
    file.write_bytes(damage(gzip.compress(REPORT)))
    with pytest.raises(InputError, match=f"^damaged: the compressed report cannot be unpacked: .*({reason})"):
        list(unpacking.chunks(file))
    assert list(scratch.iterdir()) == []


def test_what_comes_out_of_a_pipe_is_kept_while_it_is_read(scratch: Path) -> None:
    """All that a pipe sends is available as a file, which is removed when the block ends."""
    with spooled(io.BytesIO(REPORT)) as file:
        assert file.read_bytes() == REPORT
    assert list(scratch.iterdir()) == []


def test_a_pipe_without_end_is_refused(scratch: Path) -> None:
    """The limit also applies to pipes: reading stops there."""
    sent = io.BytesIO(bytes(3 << 20))
    with pytest.raises(InputError, match="sends more than 1 MiB"), spooled(sent, 1 << 20):
        pass
    assert sent.tell() <= 2 << 20
    assert list(scratch.iterdir()) == []


def test_a_wrong_name_gets_a_hint(tmp_path: Path) -> None:
    """A file named `.ncu-repz` that is neither kind of report is refused, and the hint mentions its name."""
    file = tmp_path / "a.ncu-repz"
    file.write_bytes(b"\x97\0\0\0\x08\0\x10\x01")
    assert "first bytes are not" in _error(file).hint


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path: Path, scratch: Path) -> None:
    """A report may unpack to exactly the limit; beyond, unpacking stops and no temporary file is left."""
    file = tmp_path / "large.ncu-repz"
    file.write_bytes(packed(REPORT))
    assert len(read_report(file, "one", ReadOptions(max_unpacked_bytes=len(REPORT))).kernels) == 3
    with pytest.raises(InputError) as caught:
        read_report(file, "one", ReadOptions(max_unpacked_bytes=len(REPORT) - 1))
    error = caught.value
    assert str(error).startswith("unpacks to more than ")
    assert "ROOFLENS_MAX_UNPACKED" in error.hint
    assert list(scratch.iterdir()) == []


def test_no_more_than_the_limit_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file that grows a thousandfold only as much as the limit is written before it is refused."""
    file = tmp_path / "bomb.ncu-repz"
    file.write_bytes(packed(b"NVR\0" + bytes(64 << 20)))
    monkeypatch.setattr(unpacking, "MAX_UNPACKED_BYTES", 4 << 20)
    sizes: list[int] = []
    with pytest.raises(InputError, match="unpacks to more than 4 MiB"):
        sizes.extend(len(chunk) for chunk in unpacking.chunks(file))
    assert file.stat().st_size < 10_000
    assert 0 < sum(sizes) <= 4 << 20


def _zipped(content: bytes) -> bytes:
    with zipfile.ZipFile(archive := io.BytesIO(), "w") as file:
        file.writestr("a.ncu-rep", content)
    return archive.getvalue()


def _tarred(content: bytes) -> bytes:
    with tarfile.open(fileobj=(archive := io.BytesIO()), mode="w") as file:
        entry = tarfile.TarInfo("a.ncu-rep")
        entry.size = len(content)
        file.addfile(entry, io.BytesIO(content))
    return archive.getvalue()


_SKIPPED = b"\x50\x2a\x4d\x18" + (1 << 20).to_bytes(4, "little") + bytes(1 << 20)
"""A zstd frame that unpacks to nothing."""


_CONTENT = b"NVR\0" + bytes(64 << 20)
BOMBS: dict[str, Callable[[], bytes]] = {
    "zstd": lambda: packed(_CONTENT),
    "gzip": lambda: gzip.compress(_CONTENT, 1),
    "gzip in gzip": lambda: gzip.compress(gzip.compress(_CONTENT, 1)),
    "zstd in gzip": lambda: gzip.compress(packed(_CONTENT)),
    "gzip in zstd": lambda: packed(gzip.compress(_CONTENT, 1)),
    "many small ones": lambda: gzip.compress(_CONTENT[: 1 << 20]) * 64,
    "nothing in it": lambda: gzip.compress(packed(b"NVR\0") + _SKIPPED * 64, 1),
}
"""Some kilobytes that unpack to 64 MiB, made in several ways."""


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_what_unpacks_without_end_is_stopped_early(tmp_path: Path, scratch: Path, bomb: Callable[[], bytes]) -> None:
    """Whatever its compression, a growing file is refused when it reaches the limit, and no temporary file is left."""
    file = tmp_path / "bomb"
    file.write_bytes(bomb())
    with pytest.raises(InputError, match="unpacks to more than 4 MiB, the limit"):
        list(unpacking.chunks(file, 4 << 20))
    with pytest.raises(InputError, match="unpacks to more than 4 MiB"), unpacked(file, 4 << 20):
        pass
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_known_by_how_much_it_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bomb: Callable[[], bytes]
) -> None:
    """A file that grows more than any report does is refused long before the limit, with little unpacked."""
    monkeypatch.setattr(unpacking, "_UNSUSPECTED_BYTES", 4 << 20)
    file, sizes = tmp_path / "bomb", list[int]()
    file.write_bytes(bomb())
    with pytest.raises(InputError, match="unpacks to more than 200 times its size") as caught:
        sizes.extend(len(chunk) for chunk in unpacking.chunks(file))
    assert "`zstd -d`" in caught.value.hint
    assert sum(sizes) <= 32 << 20


@pytest.mark.parametrize(
    ("compress", "says"),
    [
        (bz2.compress, "bzip2"),
        (lzma.compress, "xz"),
        (_zipped, "ZIP"),
        (_tarred, "tar"),
        (lambda data: gzip.compress(_tarred(data)), "tar"),
        (lambda data: packed(_zipped(data)), "ZIP"),
    ],
)
def test_another_packing_is_named_whatever_the_file_is_called(
    tmp_path: Path, compress: Callable[[bytes], bytes], says: str
) -> None:
    """The error names the archive or unsupported compression, whether a report, an export or a timeline is expected."""
    for name in ("a.ncu-rep", "a.ncu-repz", "a.csv", "a.txt", "a.ncu-rep.gz"):
        (file := tmp_path / name).write_bytes(compress(REPORT))
        error = _error(file)
        assert str(error).startswith("not an Nsight Compute report"), name
        assert f" {says}" in str(error), name
    if not is_packed(file):
        with pytest.raises(InputError, match=f"no timeline, but .*{says}"), opened_timeline(file):
            pass


def test_a_temporary_folder_without_room_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without room for temporary files the hint names TMPDIR; plain reports are still read."""
    file, plain = tmp_path / "a.ncu-repz", tmp_path / "a.ncu-rep"
    file.write_bytes(packed(REPORT))
    plain.write_bytes(REPORT)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    error = _error(file)
    assert str(error) == "cannot be unpacked: No such file or directory"
    assert "TMPDIR" in error.hint
    (outcome,) = read_group(ReadOptions(), [Job(plain, "a")]).outcomes
    assert isinstance(outcome.result, ReadReport)


def unpack_and_abort(path: Path) -> None:
    """Die with a temporary file open, as NVIDIA's reader may at damage."""
    with unpacked(path) as plain:
        assert plain.exists()
        os.abort()


def test_a_reader_that_dies_leaves_no_unpacked_file(tmp_path: Path, scratch: Path) -> None:
    """The files that a child process had unpacked are removed when it dies."""
    file = tmp_path / "a.ncu-repz"
    file.write_bytes(packed(REPORT))
    with pytest.raises(InputError, match="SIGABRT"):
        in_child(unpack_and_abort, file)
    assert list(scratch.iterdir()) == []


def test_a_folder_takes_both_kinds_and_counts_a_report_once(fixtures: Path, tmp_path: Path) -> None:
    """A folder's compressed reports are read like plain ones; a report present in both forms counts once."""
    folder = tmp_path / "reports"
    folder.mkdir()
    for name in ("attention", "failed_kernel"):
        pack(fixtures / "synthetic" / f"{name}.synthetic.ncu-rep", folder / f"{name}.ncu-repz")
    shutil.copy(fixtures / "synthetic" / "attention.synthetic.ncu-rep", folder / "copy.ncu-rep")
    (folder / "archive.zst").write_bytes(packed(b"no report"))
    inputs = find_inputs([str(folder)])
    assert [job.path.name for job in inputs.jobs] == ["attention.ncu-repz", "copy.ncu-rep", "failed_kernel.ncu-repz"]
    assert [path.name for path in inputs.ignored] == ["archive.zst"]
    loaded = load_reports(inputs.jobs)
    assert (len(loaded.reports), loaded.failures, loaded.skipped_count) == (2, [], 1)


def test_a_store_takes_a_compressed_report_once(fixtures: Path, tmp_path: Path) -> None:
    """A report that is stored is skipped in its other form, compressed or plain, and both are read alike."""
    plain = fixtures / "synthetic" / "attention.synthetic.ncu-rep"
    file = pack(plain, tmp_path / "attention.ncu-repz")
    read = {}
    for first, second in ((plain, file), (file, plain)):
        store = Store(tmp_path / f"store-{first.suffix}")
        assert ingest_reports(find_inputs([str(first)]).jobs, store).report_count == 1
        again = ingest_reports(find_inputs([str(second)]).jobs, store)
        assert (again.report_count, again.failures, again.skipped_count) == (0, [], 1)
        (report,) = store.reports()
        assert isinstance(report, StoredReport)
        assert report.run.digest == hashlib.sha256(plain.read_bytes()).hexdigest()
        kernels = tuple(replace(kernel, source="") for kernel in report.kernels)
        read[first.suffix] = replace(report.run, source=""), kernels
    assert read[".ncu-rep"] == read[".ncu-repz"]


def test_a_damaged_compressed_report_is_a_failure_of_ingest(tmp_path: Path) -> None:
    """If the store cannot tell whether it has a damaged report, the reader is asked and says what is wrong."""
    file = tmp_path / "cut.ncu-repz"
    file.write_bytes(packed(REPORT)[:-3])
    ((_, error),) = ingest_reports(find_inputs([str(file)]).jobs, Store(tmp_path / "store")).failures
    assert "Truncated compressed stream" in str(error)


def test_the_time_limit_counts_what_is_unpacked(tmp_path: Path) -> None:
    """A compressed file gets the time limit of its unpacked size, at most that of the largest accepted report."""
    file = tmp_path / "a.ncu-repz"
    file.write_bytes(packed(REPORT))
    assert len(REPORT) <= likely_bytes(file) <= MAX_UNPACKED_BYTES
    plain = tmp_path / "a.ncu-rep"
    plain.write_bytes(REPORT)
    assert likely_bytes(plain) == len(REPORT)
    assert likely_bytes(tmp_path) == likely_bytes(tmp_path / "none") == 0


def test_what_cannot_be_opened_is_not_compressed(tmp_path: Path) -> None:
    """Folders, missing files and files of three bytes are left to whoever opens them next."""
    (tmp_path / "short").write_bytes(b"\x28\xb5\x2f")
    assert not any(is_packed(path) for path in (tmp_path, tmp_path / "none", tmp_path / "short"))


@pytest.mark.parametrize(("compress", "needs_pyarrow"), [(bytes, False), (packed, True)], ids=["plain", "packed"])
def test_only_compressed_reports_need_pyarrow(
    tmp_path: Path,
    compress: Callable[..., bytes],
    needs_pyarrow: bool,  # noqa: FBT001 - a table
) -> None:
    """A process that reads only plain reports never imports pyarrow."""
    file = tmp_path / "a.ncu-rep"
    file.write_bytes(compress(REPORT))
    code = f"""import pathlib, sys
from rooflens.ingest.reports.read import read_report
read_report(pathlib.Path({str(file)!r}), "a")
print("pyarrow" in sys.modules)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    assert done.stdout == f"{needs_pyarrow}\n"


@pytest.mark.corpus
def test_published_reports_shrink_less_than_the_time_limit_assumes(corpus: Path, tmp_path: Path) -> None:
    """No published report has a shorter time limit when it is compressed."""
    file = tmp_path / "a.ncu-repz"
    for report in sorted(corpus.glob("*.ncu-rep")):
        assert likely_bytes(pack(report, file)) >= report.stat().st_size, report.name
