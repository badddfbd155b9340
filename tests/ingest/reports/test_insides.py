"""Results of looking inside kernels are cached, and used only for the same report and finders."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest
from support.machine_code import listed, machine_code

from rooflens import cache
from rooflens.ingest.reports import insides
from rooflens.ingest.reports import machine_code as reading
from rooflens.ingest.reports.insides import read_insides
from rooflens.ingest.reports.report import ReadOptions
from rooflens.model.inside.code import MachineCode
from rooflens.model.inside.look import look_inside

DIGEST, FILE, OPTIONS = "a" * 64, Path("gemm.ncu-rep"), ReadOptions()
CODE = machine_code(
    listed("LDG.E R2, [R8.64]", "FFMA R5, R2, R3, R5", "@P0 BRA ->0", "EXIT", lines=(1, 2, 2, 3)),
    [8, 8, 8, 1],
    stall_long_scoreboard={1: 9.0},
)


@pytest.fixture(autouse=True)
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Return the kernels whose code is read, read by read, with an empty cache and a stand-in disassembler."""
    found: list[list[int]] = []

    def read(_file: Path, _digest: str, indices: Iterable[int], _options: ReadOptions) -> dict[int, MachineCode | str]:
        found.append([*indices])
        return {index: CODE if index < 8 else "its code is damaged" for index in found[-1]}

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(insides, "disassembler", lambda: "one")
    monkeypatch.setattr(reading, "read_machine_code", read)
    return found


def test_the_code_of_a_kernel_is_read_once(asked: list[list[int]]) -> None:
    """A second look gives the same loops, waits and lines, and reads only what is new."""
    first = read_insides(FILE, DIGEST, [0, 3], OPTIONS)
    assert first[0] == look_inside(CODE)
    assert read_insides(FILE, DIGEST, [0, 3, 4], OPTIONS) == first | {4: first[0]}
    assert asked == [[0, 3], [4]]


def test_what_another_version_found_is_found_anew(asked: list[list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Another report, disassembler or finder version is read again; without a disassembler nothing is cached."""
    read_insides(FILE, DIGEST, [0], OPTIONS)
    read_insides(FILE, "b" * 64, [0], OPTIONS)
    for name, other in (("_finders", lambda: "newer"), ("disassembler", lambda: "other"), ("disassembler", str)):
        monkeypatch.setattr(insides, name, other)
        read_insides(FILE, DIGEST, [0], OPTIONS)
    read_insides(FILE, DIGEST, [0], OPTIONS)
    assert asked == [[0]] * 6


def test_a_reason_why_code_is_not_read_is_not_kept(asked: list[list[int]]) -> None:
    """A failed look is not cached, as it may succeed next time."""
    for _ in range(2):
        assert read_insides(FILE, DIGEST, [9], OPTIONS)[9].note == "its code is damaged"
    assert asked == [[9], [9]]


def test_what_is_kept_is_private_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache is private, as it holds a program's code, and drops its oldest files."""
    size = len(msgspec.msgpack.encode(look_inside(CODE)))
    monkeypatch.setattr(insides, "MOST_BYTES", 3 * size)
    for index in range(7):
        read_insides(FILE, DIGEST, [index], OPTIONS)
    folder = tmp_path / "rooflens" / "inside-1"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert sum(file.stat().st_size for file in folder.iterdir()) <= 3 * size


def test_what_is_no_inside_is_not_used(asked: list[list[int]], tmp_path: Path) -> None:
    """A file of another form counts as missing, even with a valid checksum."""
    read_insides(FILE, DIGEST, [0], OPTIONS)
    (file,) = (tmp_path / "rooflens" / "inside-1").iterdir()
    cache.keep(f"inside-1/{file.name}", b"[]")
    assert read_insides(FILE, DIGEST, [0], OPTIONS)[0] == look_inside(CODE)
    assert asked == [[0], [0]]
