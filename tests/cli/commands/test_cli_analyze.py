from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.ncu_rep_writer import KernelSpec, ReportSpec, Rule, write_report

from rooflens.cli.group import main
from rooflens.model.calibration import MeasuredRates


def run(*arguments: object) -> Result:
    """Run the command line; an exception that is no exit fails the test with its traceback."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def kernels(*arguments: object) -> list[dict[str, object]]:
    """Return the kernels in the JSON of `analyze`."""
    return list(json.loads(run("analyze", *arguments, "--format", "json").stdout)["kernels"])


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """Write a report in which NVIDIA's rules name a bottleneck."""
    rule = Rule("SOLBottleneck", "SpeedOfLight", "Latency Issue", "low compute throughput and memory bandwidth")
    metrics = {"gpu__time_duration.sum": 1e6, "launch__waves_per_multiprocessor": 0.2, "launch__grid_size": 4}
    return write_report(tmp_path / "judged.ncu-rep", ReportSpec([KernelSpec("kernel()", metrics, rules=(rule,))]))


def test_nvidia_s_rules_can_be_withheld_from_a_report_and_a_store(judged: Path, tmp_path: Path) -> None:
    """`--without-nvidia` removes everything from NVIDIA's rules from the analysis, and changes nothing else."""
    store = tmp_path / "store"
    run("ingest", judged, "--store", store)
    for source in ((judged,), ("--store", store)):
        ((told,), (withheld,)) = kernels(*source), kernels(*source, "--without-nvidia")
        assert told.pop("nvidia") == {"bottleneck": "Latency Issue", "fp32_pct_of_peak": None, "fp64_pct_of_peak": None}
        assert set(dict(withheld.pop("nvidia")).values()) == {None}  # type: ignore[call-overload]
        assert withheld == told


def test_a_store_keeps_no_verdicts_of_an_analysis_without_nvidia(judged: Path, tmp_path: Path) -> None:
    """Verdicts reached without NVIDIA's rules are not written to the store."""
    store = tmp_path / "store"
    run("ingest", judged, "--store", store)
    assert run("analyze", "--store", store, "--without-nvidia").stderr.count(f"wrote {store}") == 0
    assert not list(store.glob("roofline/*.parquet"))
    assert run("analyze", "--store", store).stderr.splitlines()[-1] == f"wrote {store}"
    assert list(store.glob("roofline/*.parquet"))


def test_some_kernels_of_a_store_are_asked_for(judged: Path, fixtures: Path, tmp_path: Path) -> None:
    """`--gpu` selects kernels of a store; an unknown GPU and foreign files are named."""
    store = tmp_path / "store"
    named = fixtures / "synthetic" / "attention.synthetic.ncu-rep"
    run("ingest", judged, named, "--store", store, "--raw", "none")
    (store / "runs" / "mine.parquet").write_bytes(b"mine")
    keys = [kernel["key"] for kernel in kernels(named)]
    assert [kernel["key"] for kernel in kernels("--store", store, "--gpu", "nvidia h200")] == keys
    assert not list(store.glob("metrics/*.parquet"))
    none = run("analyze", "--store", store, "--gpu", "none such")
    assert (none.exit_code, "no kernel ran on a GPU whose name contains `none such`" in none.stderr) == (1, True)
    assert "there are: NVIDIA H200, a GPU that is not named" in none.stderr
    assert "skipped 1 file: not part of the store: mine.parquet" in none.stderr


def test_verdicts_are_kept_anew_where_a_calibration_changed(
    judged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verdicts are written again only if what decides them, calibrations included, has changed."""
    store = tmp_path / "store"
    run("ingest", judged, "--store", store)
    run("analyze", "--store", store)
    counts = []
    for gpu in ("one", "one", "other"):
        calibrations = [MeasuredRates(gpu, "9.0", "580", 1e9, 0)]
        monkeypatch.setattr("rooflens.analyzing.load_calibrations", lambda *_, found=calibrations: found)
        counts.append(run("analyze", "--store", store).stderr.count(f"wrote {store}"))
    assert counts == [1, 0, 1]


def test_the_first_kernels_are_shown_in_markdown_too(tmp_path: Path) -> None:
    """`--top` keeps the same kernels in table and Markdown, from reports and stores, and is refused for data."""
    specs = [KernelSpec(f"kernel_{number}()", {"gpu__time_duration.sum": 1e6 * number}) for number in (1, 3, 2)]
    report = write_report(tmp_path / "three.ncu-rep", ReportSpec(specs))
    run("ingest", report, "--store", tmp_path / "store")
    for source in ((report,), ("--store", tmp_path / "store")):
        for style in ("table", "md"):
            shown = run("analyze", *source, "--format", style, "--top", "2").stdout.partition("Next:")[0]
            assert [f"kernel_{number}" in shown for number in (1, 2, 3)] == [False, True, True], style
        for style in ("json", "csv"):
            refused = run("analyze", *source, "--format", style, "--top", "2")
            assert (refused.exit_code, refused.stdout) == (2, "")
            assert "`--format md`, which takes --top" in refused.stderr


def test_versions_that_are_the_headline_are_said_once(fixtures: Path) -> None:
    """The answer about the only ladder of a report is its heading; a second one below it would say the same."""
    said = run("analyze", fixtures / "published" / "ESMM-Research__metrics.ncu-rep").stdout
    assert said.count("warptiling is the fastest of 7") == 1
    assert "Next, from warptiling" in said
