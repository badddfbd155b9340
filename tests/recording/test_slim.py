from __future__ import annotations

import dataclasses
import json
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from adopting import adopt
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from slim import in_command, in_prose, last_part, plain_file, slim, slim_file
from stored import ALL_FIXTURES_BYTES, write_entries
from support.cubin_writer import cubin, line_table, sampled, source_of
from support.damage import block_starts, certain_damage
from support.loops import for_all
from support.ncu_rep_writer import Instances, KernelSpec, NvtxRange, ReportSpec, Rule, SessionSpec, encode_report
from support.nvidia_reads import read_with_nvidia
from support.packing import packed
from support.recorded import ENTRY

from rooflens.cli.group import main
from rooflens.errors import InputError
from rooflens.ingest.messages.messages import decode, message
from rooflens.ingest.reports.child import in_child
from rooflens.ingest.reports.container import inspect, outline
from rooflens.ingest.reports.read import ReadOptions, read_report
from rooflens.ingest.reports.report import ReadReport
from rooflens.model.records import Kernel

_FIXTURES = Path(__file__).parents[2] / "fixtures"

TRACEBACK = "division by zero\n/home/alice/Documents/NVIDIA Nsight Compute/Sections/Roof.py:9\n/opt/ncu/NvRules.py:7"
NVIDIA_TEXT = "L1/TEX reads /s, see https://docs.nvidia.com/cuda/index.html and @url:guide:https://a.b/c/d.html@."
KERNEL = KernelSpec(
    "void kernel<float>(float *)",
    {
        "gpu__time_duration.sum": 1000.0,
        "launch__grid_size": 8,
        "a_file": "/home/alice/kernel.cu",
        "a_ratio": "L1/TEX",
        "sass__inst_executed_per_opcode_with_modifier_all": Instances({"FFMA": 128, "HMMA": 1}, 129),
        "a_table": Instances({"/home/alice/k.cu": 1}),
    },
    rules=(Rule("Broken", "Roofline", "", TRACEBACK), Rule("Sound", "Roofline", "title", NVIDIA_TEXT)),
    ranges=(NvtxRange("train/step"),),
)
SESSION = SessionSpec(
    process_name="/home/alice/secret folder/train",
    host="box17.lab.example",
    command_line="/opt/ncu/ncu --cache-control none -o /tmp/x /home/alice/train --on BOX17 --user alice",
    clock_control="Base",
)
REPORT = encode_report(ReportSpec([KERNEL, KERNEL], SESSION))
MOST_FOR_NVIDIA_BYTES = 1 << 20
"""NVIDIA's reader takes a second of a process for each report, and more for large ones."""
TOLD = (b"alice", b"box17", b"BOX17", b"secret", b"/opt", b"/tmp", b"Nsight Compute/Sections", b"10.0.0.7", b"cubin")


def field(number: int, content: bytes) -> bytes:
    """Encode a short field that our messages do not define."""
    assert number < 2048
    assert len(content) < 128
    return bytes([number << 3 & 0x7F | 0x82, number >> 4, len(content)]) + content


def block(payload: bytes, details: bytes = b"", more: bytes = b"", **counts: int) -> bytes:
    """Encode a block with encoded session details and with fields that our messages do not define."""
    numbers = {"NumSources": 0, "NumResults": 0, **counts, "PayloadSize": len(payload)}
    header = message("BlockHeader")(**numbers).SerializeToString() + (field(3, details) if details else b"") + more
    return len(header).to_bytes(4, "little") + header + payload


def framed(encoded: bytes) -> bytes:
    """Prefix a message with its length."""
    return len(encoded).to_bytes(4, "little") + encoded


def read(report: bytes, folder: Path, reader: Callable[..., ReadReport] = read_with_nvidia) -> ReadReport:
    """Read everything in a report except its digest."""
    path = folder / "some.ncu-rep"
    path.write_bytes(report)
    found = reader(path, "some", ReadOptions("direct", raw="all"))
    kernels = tuple(replace(kernel, digest="") for kernel in found.kernels)
    return replace(found, kernels=kernels, raw=comparable(found.raw), instances=comparable(found.instances))


def comparable(table: pa.Table | None) -> pa.Table:
    """Drop the digest, and convert doubles to texts, as NaN never equals NaN."""
    assert table is not None
    as_text = pa.array([repr(value) for value in table["value_double"].to_pylist()])
    without = table.drop_columns("digest")
    return without.set_column(without.column_names.index("value_double"), "value_double", as_text)


def texts_reduced(report: ReadReport) -> ReadReport:
    """Reduce the only things that may change: paths in the texts of rules."""
    kernels = []
    for kernel in report.kernels:
        rules = (replace(rule, message=in_prose(rule.message.encode()).decode()) for rule in kernel.rules)
        kernels.append(replace(kernel, rules=tuple(rules)))
    return replace(report, kernels=tuple(kernels))


def test_nothing_tells_the_machine_and_no_code_is_left() -> None:
    """Sources, host, addresses, environment, folders and user are removed wherever the format can store them."""
    source = framed(message("SourceData")(Reference=7, Code=b"/home/alice", Binary=b"cubin").SerializeToString())
    system = field(5, b"box17") + field(7, field(1, b"10.0.0.7")) + field(1, b"Linux")
    program = (
        field(1, b"/home/alice/train") + field(2, b"/home/alice") + field(3, b"-o /tmp/x") + field(4, b"USER=alice")
    )
    stack = field(1, field(1, b"/home/alice/lib.so") + field(3, b"../relative/file.c") + field(4, b"function"))
    more = field(28, stack) + field(32, stack) + field(15, field(8, b"alice") + field(5, b"kept"))
    marks = field(19, field(5, field(6, b"/home/alice/kernel.cu") + field(4, b"at /home/alice/kernel.cu:3")))
    drawing = framed(field(6, b"/home/alice/kernel"))
    told = REPORT + block(source + drawing, field(3, system) + field(9, program), NumSources=1, NumGraphs=1)
    told += block(framed(more + marks), field(7, b"see /home/alice/x"), NumResults=1)
    told += block(b"", more=field(4, field(1, b"/home/alice/kernel.cu") + field(1, b"dram__bytes")))
    assert all(name in told for name in TOLD)
    kept = slim(told)
    assert [name for name in TOLD if name in kept] == []
    for text in (b"Linux", b"lib.so", b"../relative/file.c", b"function", b"dram__bytes", b"at kernel.cu:3", b"see x"):
        assert text in kept
    assert slim(kept) == kept


def test_what_was_measured_stays(tmp_path: Path) -> None:
    """Values, tables, names, ranges and rules read back equal; only paths are shortened, also in values."""
    before, after = read(REPORT, tmp_path), read(slim(REPORT), tmp_path)
    assert texts_reduced(before).kernels == after.kernels
    assert [rule.message for rule in after.kernels[0].rules] == [
        "division by zero\nRoof.py:9\nNvRules.py:7",
        NVIDIA_TEXT,
    ]
    tables = ((before.raw, after.raw), (before.instances, after.instances))
    pairs = [pair for old, new in tables for pair in zip(old.to_pylist(), new.to_pylist(), strict=True)]
    changed = [(old, new) for old, new in pairs if old != new]
    assert {value for old, new in changed for value in set(new.values()) - set(old.values())} == {"kernel.cu", "k.cu"}
    assert after.run.host == "host"
    assert after.run.process_name == "train"
    assert after.run.command_line == "ncu --cache-control none -o x train --on host --user user"
    modes = ("clock_control", "cache_control", "created_unix_s", "ncu_version", "synthetic")
    assert [getattr(after.run, mode) for mode in modes] == [getattr(before.run, mode) for mode in modes]


def test_what_says_nothing_keeps_every_byte() -> None:
    """An anonymous report is not changed, including unknown fields and unusual encodings."""
    session = SessionSpec(process_name="train", host="host", command_line="ncu -o x ./train")
    report = slim(encode_report(ReportSpec([KERNEL], session)))
    odd = block(framed(field(99, b"/not/known") + b"\xa8\x06\x80\x00"), more=field(77, b"/nor/this"), NumResults=1)
    assert slim(report + odd) == report + odd


@for_all(
    "text, kept",
    [
        ("/opt/n/ncu -o /tmp/a/b /usr/bin/python3 /home/al/t.py --n 3 ", "ncu -o b python3 t.py --n 3 "),
        ("ncu ./run ../a/b reports/c L1/TEX", "ncu ./run ../a/b reports/c L1/TEX"),
        ("--x=/a/b LD_LIBRARY_PATH=/a/lib:/b/lib64: -I/usr/include", "--x=b LD_LIBRARY_PATH=lib:lib64: -Iinclude"),
        ("/dataset/ /root / //srv//x/", "dataset root / x"),
        ("tcp://far.org/a/b file:///home/al/t", "tcp://far.org/a/b file://t"),
        ("--data /home/alice --out=/home/alice/ C:\\Users\\alice", "--data home --out=home Users"),
        ('"C:\\Program Files\\N 2025\\\\target\\ncu.exe" -o D:/r/x a\\b.exe', '"ncu.exe" -o x a\\b.exe'),
        ("C:\\Users\\First Last\\run.exe \\\\server\\share\\run.exe", "run.exe run.exe"),
        ("python '/home/al/my data/t.py' -k regex:\\d+", "python 't.py' -k regex:\\d+"),
        ("/s\u00e9/\u00e9t\u00e9.py x\u00e9/y", "\u00e9t\u00e9.py x\u00e9/y"),
        ("--list /a/b,/c/d;/e --nvtx-include Fused-GEMM/", "--list b,d;e --nvtx-include Fused-GEMM/"),
    ],
)
def test_command_lines_stay_useful(text: str, kept: str) -> None:
    """Absolute paths lose their folders; options, relative paths and URLs stay."""
    assert in_command(text.encode()).decode() == kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (NVIDIA_TEXT, NVIDIA_TEXT),
        (TRACEBACK, "division by zero\nRoof.py:9\nNvRules.py:7"),
        ('  File "/home/al/my x.py", line 3', '  File "my x.py", line 3'),
        ("in C:\\a\\b.cu(3), 4/5 of x/y", "in b.cu(3), 4/5 of x/y"),
        (
            "[guide](https://docs.nvidia.com/a/b#c) 32 bytes /request",
            "[guide](https://docs.nvidia.com/a/b#c) 32 bytes /request",
        ),
    ],
)
def test_prose_keeps_what_only_looks_like_a_path(text: str, kept: str) -> None:
    """Units, ratios and links stay; paths in tracebacks are removed, even with spaces in them."""
    assert in_prose(text.encode()).decode() == kept


@given(st.text(st.sampled_from("aZ7/\\ :.,-=\"'~\n\0é"), max_size=40))
def test_texts_reduced_twice_are_reduced_once(text: str) -> None:
    """Whatever the text, a second pass changes nothing."""
    for reduce in (in_command, in_prose, last_part):
        once = reduce(text.encode())
        assert reduce(once) == once
        assert len(once) <= len(text.encode())


def test_a_damaged_report_stays_as_it_was(tmp_path: Path) -> None:
    """A report that cannot be parsed to its exact end is refused, and its file is not changed."""
    path = tmp_path / "some.ncu-rep"
    for what, damaged in certain_damage(REPORT):
        path.write_bytes(damaged)
        with pytest.raises(InputError):
            slim_file(path)
        assert path.read_bytes() == damaged, what
    assert list(tmp_path.iterdir()) == [path]


@settings(deadline=None)
@given(st.data())
def test_flipped_bytes_are_refused_or_slimmed(data: st.DataObject) -> None:
    """A changed byte never raises anything but the error for bad input."""
    report = bytearray(REPORT)
    start = block_starts(REPORT)[0]
    for place in data.draw(st.lists(st.integers(start, len(REPORT) - 1), min_size=1, max_size=4)):
        report[place] = data.draw(st.integers(0, 255))
    try:
        once = slim(bytes(report))
    except InputError:
        return
    assert slim(once) == once


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    """The number of saved bytes is returned, the mode stays, no other file is left; a second call changes nothing."""
    path = tmp_path / "some.ncu-rep"
    path.write_bytes(REPORT)
    path.chmod(0o640)
    assert slim_file(path) == len(REPORT) - path.stat().st_size > 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    before = path.stat().st_mtime_ns
    assert slim_file(path) == 0
    assert path.stat().st_mtime_ns == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_bare_gpu_box_can_slim(tmp_path: Path) -> None:
    """Slimming needs only the standard library."""
    path = tmp_path / "some.ncu-rep"
    path.write_bytes(REPORT)
    code = f"import sys, pathlib; sys.path[:0] = [{str(_FIXTURES)!r}, {str(_FIXTURES.parent)!r}]\n"
    code += f"from slim import slim_file; print(slim_file(pathlib.Path({str(path)!r})))"
    done = subprocess.run([sys.executable, "-ISc", code], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    assert int(done.stdout) == len(REPORT) - path.stat().st_size


def test_a_compressed_report_is_stored_plain(tmp_path: Path) -> None:
    """The plain report replaces the compressed one; damaged and plain reports stay unchanged."""
    path = tmp_path / "some.case.ncu-repz"
    path.write_bytes(packed(REPORT))
    place = plain_file(path)
    assert (place.name, place.read_bytes()) == ("some.case.ncu-rep", REPORT)
    assert list(tmp_path.iterdir()) == [place] == [plain_file(place)]
    path.write_bytes(packed(REPORT)[:-1])
    with pytest.raises(InputError, match="cannot be unpacked"):
        plain_file(path)
    assert sorted(tmp_path.iterdir()) == [place, path]


def test_a_compressed_recording_is_adopted_plain_and_slimmed(tmp_path: Path) -> None:
    """A report that a bare GPU machine could not unpack is unpacked, slimmed and entered under its plain name."""
    away = dataclasses.replace(ENTRY, path="h200/fma.ncu-repz")
    write_entries(tmp_path / "away", [away])
    (tmp_path / "away/h200").mkdir()
    (tmp_path / "away" / away.path).write_bytes(packed(REPORT))
    adopted = adopt(tmp_path / "away", tmp_path / "home", ALL_FIXTURES_BYTES, rehearsal=True)
    assert [entry.path for entry in adopted.entries] == ["h200/fma.synthetic.ncu-rep"]
    assert [file.name for file in (tmp_path / "home/h200").iterdir()] == ["fma.synthetic.ncu-rep"]
    assert (tmp_path / "home/h200/fma.synthetic.ncu-rep").read_bytes() == slim(REPORT)


def test_code_that_is_kept_names_no_folder() -> None:
    """Folders in a line table are reduced in place; instructions, lines and all other bytes stay."""
    folder = b"/home/someone/deep/rooflens/workloads/saxpy"
    binary = cubin(
        line_table(b"", (folder, b"."), ((b"main.cu", 1),)), code=b"\0/code/ that is no path".ljust(64, b"\1")
    )
    source = source_of(binary, files={folder + b"/main.cu": b"__global__ void saxpy()"})
    whole = encode_report(ReportSpec([sampled()], sources=[source]))
    kept = slim(whole, with_code=True)
    assert slim(kept, with_code=True) == kept
    assert b"saxpy()" not in kept
    (place,) = outline(kept).sources
    assert decode("SourceData", kept[place[0] : place[1]]).Binary == binary.replace(
        folder, b"saxpy".rjust(len(folder), b"/")
    )


@pytest.fixture(scope="session")
def pairs(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, Path]]:
    """Slim every intact report of the corpus, and return each after its original."""
    folder = tmp_path_factory.mktemp("slimmed")
    found = []
    for original in sorted([*corpus.glob("*.ncu-rep"), *corpus.glob("*.nsight-cuprof-report")]):
        try:
            inspect(original)
        except InputError:
            with pytest.raises(InputError):
                slim(original.read_bytes())
            continue
        slimmed = folder / original.name
        slimmed.write_bytes(slim(original.read_bytes()))
        found.append((original, slimmed))
    return found


@pytest.mark.corpus
def test_published_reports_get_smaller(pairs: list[tuple[Path, Path]]) -> None:
    """No report grows, a second pass changes nothing, and together they shrink by a fifth."""
    before, after = ([path.stat().st_size for path in paths] for paths in zip(*pairs, strict=True))
    assert all(small <= large for large, small in zip(before, after, strict=True))
    assert sum(after) < 0.8 * sum(before)
    for _, slimmed in pairs:
        once = slimmed.read_bytes()
        assert slim(once) == once, slimmed.name


@pytest.mark.corpus
def test_published_reports_read_the_same(pairs: list[tuple[Path, Path]], tmp_path: Path) -> None:
    """All results keep their values, instances and rules, apart from paths in error texts.

    What is read from the code is removed with it: lines and the kind of each instruction. NVIDIA's reader agrees.
    """
    for original, slimmed in pairs:
        before, after = (read(path.read_bytes(), tmp_path, read_report) for path in (original, slimmed))
        assert _without_code(texts_reduced(before)) == _without_code(after), original.name
        assert before.raw.equals(after.raw), original.name
        assert before.instances.equals(after.instances), original.name
        if slimmed.stat().st_size <= MOST_FOR_NVIDIA_BYTES:
            theirs = in_child(read_with_nvidia, slimmed, "some", ReadOptions())
            assert _without_code(after) == [replace(kernel, digest="") for kernel in _without_code(theirs)], (
                original.name
            )


def _without_code(report: ReadReport) -> list[Kernel]:
    return [replace(kernel, hotspots=(), code_totals={}, inside=None, sources={}) for kernel in report.kernels]


@pytest.mark.corpus
def test_published_reports_are_judged_the_same(pairs: list[tuple[Path, Path]]) -> None:
    """Position and verdict of every slimmed report equal those of its original.

    FLOPs may differ where only instructions distinguish loaded constants from fp16 arithmetic.
    """
    before, after = (_analysis(paths) for paths in zip(*pairs, strict=True))
    assert len(before) == 250
    same = [(one, two) for one, two in zip(before, after, strict=True) if one["flop_source"] == two["flop_source"]]
    assert len(same) >= 200
    assert all(one == two for one, two in same)


def _analysis(reports: tuple[Path, ...]) -> list[dict[str, Any]]:
    result = CliRunner().invoke(main, ["analyze", *map(str, reports), "--format", "json"])
    assert result.exit_code == 0, result.output
    kernels: list[dict[str, Any]] = json.loads(result.stdout)["kernels"]
    said = ("bound", "resource", "at_roof", "limit")
    placed = ("name", "duration_ns", "bytes", "flop", "flop_source", "intensity", "levels", "pipes", "nvidia")
    return [
        {name: kernel[name] for name in placed} | {name: kernel["verdict"][name] for name in said} for kernel in kernels
    ]


@pytest.mark.corpus
def test_published_reports_name_nobody(pairs: list[tuple[Path, Path]]) -> None:
    """No absolute path, host, address, user or folder of the session is left anywhere in the bytes."""
    for original, slimmed in pairs:
        names, whole, kept = set(_told(original)), original.read_bytes(), slimmed.read_bytes()
        assert names, original.name
        assert all(name in whole for name in names)
        assert not re.findall(rb"/(?:home|root|mnt|data|opt|usr|nfs|content|glade|scratch)/\w+|\b[A-Z]:\\\w+", kept)
        found = [name for name in names if name in kept]  # quick, and mostly empty
        assert [name for name in found if re.search(rb"(?<![\w-])" + re.escape(name) + rb"(?![\w-])", kept)] == []
        assert inspect(slimmed).sessions[0].host == "host"


def _told(report: Path) -> Iterator[bytes]:
    """Yield what the session of a report reveals about its machine."""
    data = report.read_bytes()
    for start in block_starts(data):
        end = start + 4 + int.from_bytes(data[start : start + 4], "little")
        header = message("BlockHeader").FromString(data[start + 4 : end])
        system = header.SessionDetails.TargetSystemInfo
        yield from filter(None, [system.ComputerName.strip(b"\0")])
        yield from re.findall(rb"\d+\.\d+\.\d+\.\d+|fe80::[0-9a-f:]+", system.SerializeToString())
        for text in (header.Process.ProcessName, header.SessionDetails.ProfilerCmdline):
            yield from re.findall(rb"(?:/home/|Users\\|/scratch/|homes-0/a/|/u/home/)([^/\\]+)", text)
            yield from (path for path in re.findall(rb"(?<![\w.])/[\w/.-]*/|[A-Z]:\\.*\\", text) if len(path) > 1)
