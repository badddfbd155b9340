"""Comparisons, forecasts and stores in Python give the same results as the commands."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.ncu_rep_writer import KernelSpec, ReportSpec, write_report

import rooflens as rl
from rooflens.cli.group import main
from rooflens.errors import GateFailedError, InputError, UsageError
from rooflens.model.compare.gate import parse_per_cent


def recorded(folder: Path, *times_ns: float) -> Path:
    """Write recordings of a kernel, each with its time."""
    folder.mkdir()
    for i, time_ns in enumerate(times_ns):
        metrics = {
            "gpu__time_duration.sum": time_ns,
            "launch__grid_size": 4096,
            "launch__waves_per_multiprocessor": 4.0,
        }
        write_report(folder / f"gemm_{i}.ncu-rep", ReportSpec([KernelSpec("gemm()", metrics)]))
    return folder


def test_what_became_slower_fails(tmp_path: Path) -> None:
    """A program fails if its time grows beyond the limit and the noise of both sides, and passes below the limit."""
    base = recorded(tmp_path / "base", 1_000_000.0, 1_010_000.0, 1_020_000.0)
    head = recorded(tmp_path / "head", 1_200_000.0, 1_210_000.0, 1_220_000.0)
    comparison = rl.compare(base, head)
    assert comparison.factor == pytest.approx(1.01 / 1.21)
    assert "GPU time 1.20x slower" in repr(comparison)
    assert len(comparison.failed(0.05)) == 1
    assert comparison.failed(0.25) == ()
    assert rl.compare(head, base).failed(0.05) == ()
    assert [change.timing.change for change in comparison.changes] == [pytest.approx(1.21 / 1.01 - 1)]


def test_changes_are_short_and_hold_kernels(fixtures: Path) -> None:
    """The repr of a change is one line, its sides are opened kernels, and the data frame has the same values."""
    base, head = (rl.open(fixtures / "published" / f"GPU_workshop__MW_{n}.ncu-rep") for n in ("Baseline", "DivToMult"))
    comparison = rl.compare(base, head)
    first = comparison.changes[0]
    assert repr(first) == "<KernelChange of 'compute_tendencies_x_279_gpu': 1.78x faster (1 run each)>"
    assert first.base is base[0]
    assert first.head is not None
    assert first.head.metric("duration_ns") == first.timing.head.median_ns == 3482240
    assert all(len(repr(change)) < 120 for change in comparison.changes)
    assert len(repr(comparison.ladders[0].rungs[0].analysis)) < 120
    frame = comparison.to_pandas()
    assert frame["factor"].tolist() == [change.factor for change in comparison.changes]
    assert (frame["bound_before"][0], frame["bound_after"][0]) == ("compute", "memory")
    assert frame["gpu_time_before_ns"].sum() == pytest.approx(base.gpu_time_ns)


def test_a_kernel_on_one_side_is_new_or_gone(tmp_path: Path) -> None:
    """Values missing on a side are None, also in the data frame."""
    for name, kernels in (("a", ("gemm()", "old()")), ("b", ("gemm()",))):
        specs = [KernelSpec(one, {"gpu__time_duration.sum": 1e6}) for one in kernels]
        write_report(tmp_path / f"{name}.ncu-rep", ReportSpec(specs))
    for places, how in ((("a", "b"), "gone"), (("b", "a"), "new")):
        comparison = rl.compare(*(tmp_path / f"{place}.ncu-rep" for place in places))
        (change,) = (one for one in comparison.changes if one.how == how)
        assert repr(change) == f"<KernelChange of 'old': {how}>"
        assert (change.base is None, change.head is None) == (how == "new", how == "gone")
        frame = comparison.to_pandas()
        assert (frame["bound_before"].isna().sum(), frame["bound_after"].isna().sum()) == (how == "new", how == "gone")


def test_a_limit_means_the_same_as_text_and_as_number(tmp_path: Path) -> None:
    """A limit is the same fraction typed on the command line and given in Python; what may be two limits is refused."""
    for given, fraction in ((0.05, 0.05), (0.5, 0.5), (".05", 0.05), ("5%", 0.05), ("150 %", 1.5), (5, 0.05), (0, 0.0)):
        assert parse_per_cent(given, "limit") == parse_per_cent(str(given), "limit") == pytest.approx(fraction)
    for either in (1, 1.0, "1", "1.5"):
        with pytest.raises(UsageError, match="may be") as raised:
            parse_per_cent(either, "limit")
        assert "%` is" in raised.value.hint
    comparison = rl.compare(recorded(tmp_path / "a", 1e6, 1.001e6), recorded(tmp_path / "b", 1.2e6, 1.201e6))
    assert comparison.failed("5%") == comparison.failed(0.05) != ()
    assert comparison.failed("0.5") == comparison.failed(0.5) == ()
    for wrong in (-0.1, float("nan"), True, None, "five", 1e9):
        with pytest.raises(UsageError, match="limit takes a percentage"):
            comparison.failed(wrong)  # type: ignore[arg-type]  # that is what is tested


def test_a_check_raises_the_sentences_of_its_failures(tmp_path: Path) -> None:
    """`check` raises what `failed` returns as one error with the exit code of a gate, and nothing within the limit."""
    comparison: Any = rl.compare(recorded(tmp_path / "a", 1e6, 1.001e6), recorded(tmp_path / "b", 1.2e6, 1.201e6))
    with pytest.raises(GateFailedError) as raised:
        comparison.check("5%")
    assert str(raised.value) == "; ".join(comparison.failed("5%"))
    assert raised.value.exit_code == 5
    comparison.check("50%")


def test_a_single_recording_fails_beyond_ten_per_cent_and_says_why(tmp_path: Path) -> None:
    """With one recording a side, twice the time fails; 9 % more does not, and the unknown noise is stated."""
    base, head = recorded(tmp_path / "base", 1_000_000.0), recorded(tmp_path / "head", 2_000_000.0)
    comparison = rl.compare(rl.open(base), rl.open(head))
    assert "beyond the 10 % that a single run may differ by" in comparison.failed(0.05)[0]
    assert rl.compare(rl.open(base), rl.open(recorded(tmp_path / "near", 1_090_000.0))).failed(0.05) == ()
    assert any("noise unknown" in warning for warning in comparison.warnings)


def test_a_comparison_is_that_of_the_command(tmp_path: Path) -> None:
    """Dictionary, Markdown and files equal the output of `compare`."""
    base, head = recorded(tmp_path / "base", 1e6, 1.01e6), recorded(tmp_path / "head", 1.2e6, 1.21e6)
    comparison = rl.compare(base, head)
    for style in ("json", "md", "html"):
        written = tmp_path / f"command.{style}"
        done = CliRunner().invoke(main, ["compare", str(base), str(head), "-o", str(written)])
        assert done.exit_code == 0, done.stderr
        assert comparison.save(tmp_path / f"saved.{style}").read_text() == written.read_text()
    assert comparison.to_dict() == json.loads((tmp_path / "command.json").read_text())
    assert comparison._repr_markdown_() == comparison.to_markdown()


def test_more_than_two_sides_are_set_against_the_first(tmp_path: Path) -> None:
    """Later sides are compared with the first, as in the command; factor and gate are those of the last side."""
    sides = [recorded(tmp_path / f"v{i}", time_ns, 1.01 * time_ns) for i, time_ns in enumerate((4e6, 2e6, 1e6))]
    comparison = rl.compare(*sides)
    assert comparison.factor == pytest.approx(4.0)
    assert [change.timing.factor for change in comparison.changes] == [pytest.approx(4.0), pytest.approx(2.0)]
    done = CliRunner().invoke(main, ["compare", *map(str, sides), "--format", "json"])
    assert comparison.to_dict() == json.loads(done.stdout)
    (failure,) = rl.compare(*reversed(sides)).failed(0.5)
    assert failure.startswith("gemm: v2 -> v0: GPU time takes 300.0 % more")
    (ladder,) = comparison.ladders
    assert [rung.is_fastest for rung in ladder.rungs] == [False, False, True]


def test_a_folder_alone_is_taken_as_versions(tmp_path: Path) -> None:
    """A single folder of versions, as a path or opened, becomes a ladder ordered by version number."""
    for i, time_ns in ((10, 1e6), (9, 2e6), (1, 4e6)):
        write_report(
            tmp_path / f"gemm_v{i}.ncu-rep",
            ReportSpec(
                [KernelSpec("gemm()", {"gpu__time_duration.sum": time_ns, "launch__registers_per_thread": 10 * i})]
            ),
        )
    for given in (tmp_path, rl.open(tmp_path)):
        (ladder,) = rl.compare(given).ladders
        assert ladder.labels == ("v1", "v9", "v10")
        assert ladder.rungs[2].to_first is not None
        assert ladder.rungs[2].to_first.factor == pytest.approx(4.0)


def test_sides_that_cannot_be_compared_are_refused(tmp_path: Path) -> None:
    """An untimed side is refused unless forced; a side with a damaged report is refused."""
    base = recorded(tmp_path / "base", 1e6)
    head = write_report(tmp_path / "gemm.ncu-rep", ReportSpec([KernelSpec("gemm()", {"launch__grid_size": 4096})]))
    with pytest.raises(InputError, match="times were not recorded in the head") as raised:
        rl.compare(base, head)
    assert "`gpu__time_duration.sum` in `ncu --metrics`" in raised.value.hint
    assert "anyway=True" in raised.value.hint
    assert rl.compare(base, head, anyway=True).warnings
    bare = write_report(tmp_path / "gemm_bare.ncu-rep", ReportSpec([KernelSpec("gemm()", {"sm__my_own.sum": 1.0})]))
    with pytest.raises(InputError, match="nor has a kernel of both sides a counter in both"):
        rl.compare(base, bare, anyway=True)
    recorded(tmp_path / "side", 1e6)
    (tmp_path / "side" / "bad.ncu-rep").write_bytes(b"NVR\0")
    with (
        pytest.warns(UserWarning, match="could not be read"),
        pytest.raises(InputError, match="cannot be read completely"),
    ):
        rl.compare(tmp_path / "side", base)


def test_a_forecast_is_that_of_the_command() -> None:
    """`predict` returns the numbers of `rooflens predict`, and suggests similar names for an unknown one."""
    written = CliRunner().invoke(
        main, ["predict", "gemm", "--m", "512", "--n", "256", "--k", "128", "--gpu", "h100-sxm", "--format", "json"]
    )
    told = json.loads(written.stdout)
    forecast = rl.predict("gemm", gpu="h100-sxm", m=512, n=256, k=128)
    assert (forecast.flop, forecast.t_lower_s, forecast.regime) == (told["flop"], told["t_lower_s"], told["regime"])
    assert forecast.flop == 2 * 512 * 256 * 128
    assert forecast.attainable is None
    assert rl.predict("gemm", gpu="t4", M=512, N=256, K=128).peak == "tensor_fp16"
    reached = rl.predict("gemm", m=4096, n=4096, k=4096).attainable
    assert reached is not None
    assert reached.proven
    assert repr(forecast) == "<Forecast of gemm: overhead-bound, floor 137 ns, 33.6 MFLOP, 459 kB>"
    with pytest.raises(UsageError) as raised:
        rl.predict("gem", m=1, n=1, k=1)
    assert "`gemm`" in raised.value.hint
    with pytest.raises(UsageError, match="no GPU is called `h1000`"):
        rl.predict("gemm", gpu="h1000", m=1, n=1, k=1)
    with pytest.raises(UsageError, match="needs the size `k`"):
        rl.predict("gemm", m=1, n=1)
    with pytest.raises(UsageError, match="`hidden` must be a multiple of `heads`"):
        rl.predict("decode", hidden=4096, heads=33, kv_heads=33)


def test_reports_are_stored_by_any_executor(fixtures: Path, tmp_path: Path) -> None:
    """`ingest` counts stored and skipped reports, and accepts the caller's executor."""
    report = fixtures / "synthetic" / "attention.synthetic.ncu-rep"
    with ThreadPoolExecutor(1) as executor:
        first = rl.ingest_reports(report, tmp_path / "store", executor)
    again = rl.ingest_reports([report], tmp_path / "store", raw="none")
    assert (first.report_count, first.kernel_count, first.failures) == (1, 4, [])
    assert (again.report_count, again.skipped_count) == (0, 1)
    assert len(rl.open(tmp_path / "store")) == 4
