from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.damage import block_starts, certain_damage, flipped_copies
from support.ncu_rep_writer import Instances, KernelSpec, ReportSpec, encode_report

from rooflens.errors import InputError
from rooflens.ingest.reports.container import Outline, inspect

OPCODES = Instances({"FFMA": 1000.0, "HMMA.16816.F32.BF16": 5.0}, 1005.0)
METRICS = {"gpu__time_duration.sum": 1000.0, "launch__grid_size": 8, "a__nan.sum": math.nan, "sass__table": OPCODES}
REPORT = encode_report(ReportSpec([KernelSpec(f"kernel_{number}(float *)", METRICS) for number in range(4)]))
PUBLISHED = (
    "cudaCode__profile.ncu-rep",
    "cuda_learning_mojo__profile.ncu-rep",
    "self-join-MiSTIC__profile4.out.ncu-rep",
    "nsight-training__manual_nvtx.ncu-rep",
    "accelsim-test__profile.ncu-rep",
    "Twisty__profile.nsight-cuprof-report",
)


def _outcome(path: Path, data: bytes) -> Outline | InputError:
    """Return the outline of `data`; any exception but an `InputError` fails the test."""
    path.write_bytes(data)
    try:
        return inspect(path)
    except InputError as error:
        return error


def _accepted(path: Path, copies: Iterator[tuple[str, bytes]]) -> list[str]:
    """Return the names of the copies that pass as reports."""
    return [name for name, data in copies if isinstance(_outcome(path, data), Outline)]


def test_certain_damage_of_a_synthetic_report_is_found(tmp_path: Path) -> None:
    """Cut, extended, doubled and broken copies of a synthetic report are all refused."""
    assert _accepted(tmp_path / "damaged.ncu-rep", certain_damage(REPORT)) == []


def test_every_cut_is_found_but_those_between_blocks(tmp_path: Path) -> None:
    """A report cut at any byte is refused, unless whole blocks remain that hold results and their strings."""
    cuts = ((str(end), REPORT[:end]) for end in range(len(REPORT)))
    intact = set(map(str, block_starts(REPORT)))
    assert set(_accepted(tmp_path / "cut.ncu-rep", cuts)) < intact


def test_any_flipped_byte_is_an_input_error_or_harmless(tmp_path: Path) -> None:
    """Inverting any one byte of a report gives an input error or a container, never another exception."""
    path = tmp_path / "flipped.ncu-rep"
    for offset in range(len(REPORT)):
        data = bytearray(REPORT)
        data[offset] ^= 0xFF
        _outcome(path, bytes(data))


def test_many_flipped_bytes_are_an_input_error_or_harmless(tmp_path: Path) -> None:
    """Heavier damage, too, gives nothing but an input error or a container."""
    for _, data in flipped_copies(REPORT, count=300, seed=20250101):
        _outcome(tmp_path / "flipped.ncu-rep", data)


def test_errors_say_what_and_what_next(tmp_path: Path) -> None:
    """Every error of a damaged copy has a message in one line and a hint."""
    for name, data in certain_damage(REPORT):
        error = _outcome(tmp_path / "damaged.ncu-rep", data)
        assert isinstance(error, InputError), name
        assert str(error), name
        assert "\n" not in str(error), name
        assert error.hint, name


@pytest.mark.corpus
@pytest.mark.parametrize("name", PUBLISHED)
def test_certain_damage_of_a_published_report_is_found(corpus: Path, tmp_path: Path, name: str) -> None:
    """Twenty damaged copies of each of several published reports are all refused."""
    data = (corpus / name).read_bytes()
    assert _accepted(tmp_path / "damaged.ncu-rep", certain_damage(data)) == []


@pytest.mark.corpus
@pytest.mark.parametrize("name", PUBLISHED)
def test_flipped_published_reports_are_an_input_error_or_harmless(corpus: Path, tmp_path: Path, name: str) -> None:
    """Fifty copies of each report with flipped bytes give an input error or a container."""
    for _, data in flipped_copies((corpus / name).read_bytes(), count=50, seed=7):
        _outcome(tmp_path / "flipped.ncu-rep", data)
