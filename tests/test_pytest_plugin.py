"""The plugin of pytest, in a pytest of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.chips import H200
from support.fixture_kernels import triad
from support.ncu_rep_writer import ReportSpec, write_report
from support.synthetic_kernels import kernel_spec

pytest_plugins = ["pytester"]

PLUGIN = ("-p", "no:rooflens", "-p", "rooflens.gating.pytest_plugin", "--strict-markers", "-p", "no:cacheprovider")
REPOSITORY = Path(__file__).parent.parent


@pytest.fixture
def outcome(pytester: pytest.Pytester) -> Callable[[str], pytest.RunResult]:
    """Run a test file in a folder with reports of a triad: one of 1 ms, and three recordings before and after."""
    for name, times_ns in (
        ("one", [1_000_000]),
        ("slow", [1_200_000]),
        ("before", [1_000_000, 1_004_000]),
        ("after", [1_100_000, 1_104_000]),
    ):
        (pytester.path / name).mkdir()
        for i, time_ns in enumerate(times_ns):
            spec = kernel_spec(replace(triad(H200), duration_ns=time_ns))
            write_report(pytester.path / name / f"triad_{i}.ncu-rep", ReportSpec(kernels=(spec,)))

    def run(text: str) -> pytest.RunResult:
        pytester.makepyfile(f"import pytest, shutil\n\n{text}")
        return pytester.runpytest_inprocess(*PLUGIN)

    return run


def test_marks_judge_what_a_test_names_or_writes(outcome: Callable[[str], pytest.RunResult]) -> None:
    """A mark with a report, a test that writes one, that adds one, that judges one itself; marks of a class add up."""
    done = outcome(
        """
        REPORT = "one/triad_0.ncu-rep"

        @pytest.mark.roofline(REPORT, kernel="*triad*", level="dram", min_share=0.5, max_us=1001, bound="memory")
        @pytest.mark.roofline(REPORT, kernel="re:^stream_tri+ad", max_us=1001)
        @pytest.mark.roofline(REPORT, kernel="TRIAD", max_us=1001)
        def test_named():
            pass

        @pytest.mark.roofline(max_us=1001)
        def test_written(roofline):
            shutil.copy(REPORT, roofline.path)

        @pytest.mark.roofline(max_us=1001)
        def test_added(roofline):
            roofline.add(REPORT)

        def test_judged(roofline):
            roofline.judge(REPORT, min_share=0.1)
            with pytest.raises(pytest.fail.Exception, match="at most 1.00 µs is required"):
                roofline.judge(REPORT, max_us=1)

        @pytest.mark.roofline(REPORT, max_us=1)
        class TestBoth:
            @pytest.mark.roofline(REPORT, max_us=2000)
            def test_fails_by_its_class(self):
                pass
    """.replace("\n        ", "\n")
    )
    done.assert_outcomes(passed=4, failed=1)


def test_a_failure_names_verdict_move_and_report(outcome: Callable[[str], pytest.RunResult]) -> None:
    """No traceback of ours: what was asked, the limiter, what to do first, and where the number is from."""
    done = outcome("""
@pytest.mark.roofline("one", level="dram", min_share=0.99, max_us=120)
def test_it():
    pass
""")
    done.assert_outcomes(failed=1)
    done.stdout.re_match_lines(
        [
            r"roofline: .*triad.* reaches \d+ % of .*; at least 99 % is required",
            r"  verdict: memory-bound at .* \(\d+ %\)",
            r"  first move: .+",
            r"  report: .*one/triad_0\.ncu-rep, result 0",
            r"roofline: .*triad.* takes 1\.00 ms; at most 120 µs is required",
        ]
    )
    assert "judging.py" not in done.stdout.str()


UNMET = {
    '"one", kernel="gemm*", max_us=1': "no kernel matches `gemm*` (hint: there are: ",
    '"one", kernel="re:^Triad", max_us=1': "no kernel matches `re:^Triad` (hint: did you mean ",
    '"one", level="fp99", min_share=0.1': "was not measured at",
    '"one", level="hbm", min_share=0.2': "; it was at dram, ",
    '"one", bound="compute"': "is memory-bound; compute-bound is required",
    '"gone.ncu-rep", max_us=1': "gone.ncu-rep",
    "max_us=1": "there is no report to judge",
    '"after", base="before", fail_on=0.05': "takes 10.0 % more",
    '"slow", base="before", fail_on=0.05': "a single run on a side, and beyond the 10 %",
    '"after", base="before", fail_on="5%"': "takes 10.0 % more",
}
MEANINGLESS = {
    '"after", base="before", fail_on=5': "fail_on is a fraction below 1, not 5 (hint: 5 % is 0.05",
    '"after", base="before", fail_on="much"': "fail_on takes a percentage, not `much`",
    '"one", min_share="70%"': "min_share is a fraction between 0 and 1, not '70%' (hint: 70 % is 0.7",
    '"one"': "no requirement is given",
    '"one", min_share=70': "min_share is a fraction between 0 and 1, not 70",
    '"one", max_seconds=1': "max_seconds",
    '"one", max_us=0': "max_us is a time in microseconds",
    '"one", bound="fast"': "no verdict is called `fast`",
    '"one", fail_on=0.05': "base and fail_on go together",
    '"one", kernel="re:(", max_us=1': "`re:(` is not a regular expression",
}


def marked(marks: Iterable[str], body: str = "pass") -> str:
    """Write a test for each mark."""
    return "\n".join(f"@pytest.mark.roofline({mark})\ndef test_{i}():\n    {body}\n" for i, mark in enumerate(marks))


def test_what_is_not_met_or_not_known_fails(outcome: Callable[[str], pytest.RunResult]) -> None:
    """Nothing passes because its kernel, counter, report or noise is missing."""
    done = outcome(marked(UNMET))
    done.assert_outcomes(failed=len(UNMET))
    assert [words for words in UNMET.values() if words not in done.stdout.str()] == []


def test_a_change_below_limit_or_floor_passes(outcome: Callable[[str], pytest.RunResult]) -> None:
    """The gate of `compare` decides: 10 % and 100 µs more are fine where 20 %, or 500 µs, are allowed."""
    marks = ('"after", base="before", fail_on=0.2', '"after", base="before", fail_on=0.05, floor_us=500')
    outcome(marked(marks)).assert_outcomes(passed=2)


def test_a_single_run_passes_within_its_band_with_a_note(outcome: Callable[[str], pytest.RunResult]) -> None:
    """One run that is as fast cannot be judged: a note at the end says so."""
    done = outcome(marked(['"one", base="before", fail_on=0.05']))
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["note: *a single run on a side, and within the 10 % it may differ by*"])


def test_a_mark_that_cannot_be_meant_is_an_error_before_the_test(outcome: Callable[[str], pytest.RunResult]) -> None:
    """The test, which may profile for an hour, does not run."""
    done = outcome(marked(MEANINGLESS, "raise SystemExit"))
    done.assert_outcomes(errors=len(MEANINGLESS))
    assert [words for words in MEANINGLESS.values() if words not in done.stdout.str()] == []


def test_a_test_that_fails_is_not_judged(outcome: Callable[[str], pytest.RunResult]) -> None:
    """Its own failure is what is shown."""
    done = outcome('@pytest.mark.roofline("one", max_us=1)\ndef test_it():\n    assert 1 == 2\n')
    done.assert_outcomes(failed=1)
    assert "roofline:" not in done.stdout.str()


def test_pytest_starts_without_it_where_no_mark_asks(tmp_path: Path) -> None:
    """A run with the plugin and no mark imports nothing of ours but the plugin, and nothing heavy."""
    (tmp_path / "test_it.py").write_text(
        "import sys\n\ndef test_it():\n"
        "    ours = {name for name in sys.modules if name.split('.')[0] == 'rooflens'}\n"
        "    assert ours == {'rooflens', 'rooflens.gating', 'rooflens.gating.pytest_plugin'}\n"
        "    assert not {'click', 'msgspec', 'pyarrow', 'altair', 'google', 'rich', 'pandas'} & sys.modules.keys()\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", *PLUGIN, "-p", "no:hypothesispytest", str(tmp_path)]
    environment = {"PYTHONPATH": str(REPOSITORY), "PATH": "/usr/bin:/bin", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(  # noqa: S603 - pytest itself
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_the_plugin_is_found_by_its_entry_point() -> None:
    """The wheel tells pytest of it."""
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    assert '[project.entry-points.pytest11]\nrooflens = "rooflens.gating.pytest_plugin"\n' in text
