"""Reports of an ncu newer than our definitions: every message has additional fields."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.damage import with_unknown_fields

from rooflens.cli.group import main
from rooflens.ingest.reports.read import read_report

NAMES = ("published/GPU_workshop__MW_Baseline.ncu-rep", "synthetic/attention.synthetic.ncu-rep")


@pytest.fixture(params=NAMES)
def known(request: pytest.FixtureRequest, fixtures: Path) -> Path:
    """Return a report with known fields only."""
    return fixtures / request.param


def _analyzed(path: Path) -> tuple[int, str, list[dict[str, object]]]:
    done = CliRunner().invoke(main, ["analyze", str(path), "--format", "json"])
    kernels = json.loads(done.stdout)["kernels"]
    return done.exit_code, done.stderr, [{**kernel, "source": "", "digest": ""} for kernel in kernels]


def test_unknown_fields_in_every_message_give_one_note(known: Path, tmp_path: Path) -> None:
    """Unknown fields beside known ones change no number, and the exit code is 0."""
    newer = tmp_path / known.name
    newer.write_bytes(with_unknown_fields(known.read_bytes()))
    assert read_report(newer, "newer").notes[-1].startswith("not read, as rooflens does not know it: field 123 of ")
    code, stderr, kernels = _analyzed(newer)
    assert (code, stderr.count("field 123 of a metric,"), stderr.count("not read")) == (0, 1, 1)
    assert kernels == _analyzed(known)[2]


def test_a_value_in_an_unknown_field_is_named(known: Path, tmp_path: Path) -> None:
    """Kernels with a value in an unknown field are partial, name it, also from a store, and the exit code is 1."""
    newer = tmp_path / known.name
    newer.write_bytes(with_unknown_fields(known.read_bytes(), instead_of=b"dram__bytes_read.sum"))
    reason = "1 metric not read, stored in a form that rooflens does not know: dram__bytes_read.sum"
    code, stderr, kernels = _analyzed(newer)
    assert (code, stderr.count(reason)) == (1, 1)
    assert {(kernel["status"], kernel["status_reason"]) for kernel in kernels} == {("partial", reason)}
    ingested = CliRunner().invoke(main, ["ingest", str(newer), "--store", str(tmp_path / "store")])
    assert (ingested.exit_code, ingested.stderr.count(reason)) == (1, 1)
    assert f"stored 1 report with {len(kernels)} kernels" in ingested.stderr
    stored = CliRunner().invoke(main, ["analyze", "--store", str(tmp_path / "store"), "--format", "json"])
    assert {kernel["status"] for kernel in json.loads(stored.stdout)["kernels"]} == {"partial"}
