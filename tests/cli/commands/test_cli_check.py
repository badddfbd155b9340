"""The command `check` on reports as they are written: its exit code, its table and its JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace
from support.chips import H200
from support.fixture_kernels import triad
from support.ncu_rep_writer import ReportSpec, write_report
from support.synthetic_kernels import kernel_spec

from rooflens.cli.group import main


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write three recordings of a triad: 1.00, 1.02 and 2.00 ms."""
    folder = tmp_path_factory.mktemp("recordings")
    for i, time_ns in enumerate((1_000_000, 1_020_000, 2_000_000)):
        spec = kernel_spec(replace(triad(H200), duration_ns=time_ns))
        write_report(folder / f"triad_{i}.ncu-rep", ReportSpec(kernels=(spec,)))
    return folder


def run(*arguments: object) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, ["check", *map(str, arguments)])


def test_what_holds_ends_with_0_and_what_does_not_with_5(recordings: Path) -> None:
    """Three runs of which the slowest has half the rate of the best: 60 % is not met, 50 % is."""
    met = run(recordings, "--best-of", 3, "--stable", "50%")
    assert (met.exit_code, met.stderr) == (0, "")
    unmet = run(recordings, "--best-of", 4, "--stable", "60%")
    assert unmet.exit_code == 5
    assert "3 runs; the best of 4 is required" in unmet.stderr
    assert "the slowest of 3 runs has 50.0 % of the rate of the best; 60 % is required" in unmet.stderr


def test_a_report_that_cannot_be_read_is_named(recordings: Path, tmp_path: Path) -> None:
    """The others are rated, and the exit code is 1; that of a gate that is not met stays 5."""
    whole, damaged = recordings / "triad_0.ncu-rep", tmp_path / "damaged.ncu-rep"
    damaged.write_bytes(whole.read_bytes()[:-1])
    for options, exit_code in (((), 1), (("--best-of", 1), 1), (("--best-of", 2), 5)):
        done = run(whole, damaged, *options)
        assert done.exit_code == exit_code
        assert "error: " in done.stderr
        assert "damaged.ncu-rep: truncated" in done.stderr
        assert "triad" in done.stdout
    assert run(damaged).exit_code == 1


def test_the_same_recording_twice_is_one_run(recordings: Path, tmp_path: Path) -> None:
    """A copy under another name is no second sample."""
    copy = tmp_path / "triad_copy.ncu-rep"
    copy.write_bytes((recordings / "triad_0.ncu-rep").read_bytes())
    done = run(recordings / "triad_0.ncu-rep", copy, "--best-of", 2)
    assert done.exit_code == 5
    assert "1 run; the best of 2 is required" in done.stderr


def test_with_nothing_asked_it_rates(recordings: Path) -> None:
    """The table and JSON name the best run's share of its roof, and the word for it; nothing fails."""
    table = run(recordings)
    assert table.exit_code == 0
    found = json.loads(run(recordings, "--format", "json").stdout)
    (kernel,) = found["kernels"]
    assert (kernel["runs"], kernel["best_ns"], kernel["slowest_over_best_rate"]) == (3, 1_000_000, 0.5)
    assert kernel["rating"] in table.stdout
    assert found["unmet"] == []


def test_limits_of_the_ratings_stand_in_the_file_of_thresholds(recordings: Path, tmp_path: Path) -> None:
    """Who asks for 99.9 % to be near has it far from there."""
    limits = tmp_path / "limits.toml"
    limits.write_text("[thresholds]\nrating_near_share = 1.0\nrating_room_share = 0.999\n", encoding="utf-8")
    assert "far from its roof" in run(recordings, "--thresholds", limits).stdout


@pytest.mark.parametrize(
    ("arguments", "code"), [(("--stable", "many"), 2), (("--level", "drum"), 1), (("--best-of", 0), 2)]
)
def test_what_cannot_be_asked_is_no_failed_check(recordings: Path, arguments: tuple[object, ...], code: int) -> None:
    """A slip of the finger is told from a check that fails."""
    assert run(recordings, *arguments).exit_code == code
