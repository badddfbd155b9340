from __future__ import annotations

from pathlib import Path

import pytest
from comparing import compared, layer
from markdown_it import MarkdownIt
from msgspec.structs import replace
from support import samples

from rooflens.analyzing import analyze_paths
from rooflens.model.compare.compare import Side, compare
from rooflens.model.compare.gate import Compared, Gate
from rooflens.model.compare.ladder import NO_SIDES
from rooflens.model.records import Analysis, Hotspot
from rooflens.report.ci.github import MAX_ANNOTATIONS, MAX_CHARACTERS, annotations_of, hot_lines, to_summary

FLOOR_NS = 2000.0


def lined(analysis: Analysis, factor: float, samples_at: dict[int, float], file: str = "/src/k.cu") -> Analysis:
    """Give a kernel samples at lines, of 10,000, and make it take `factor` times as long."""
    duration_ns = 1e6 * factor
    hotspots = tuple(
        Hotspot("line", file, line, text=f"line {line}", measures={"samples": at}) for line, at in samples_at.items()
    )
    kernel = replace(
        analysis.kernel,
        counters={**analysis.kernel.counters, "duration_ns": duration_ns},
        hotspots=hotspots,
        code_totals={"samples": 10_000.0},
    )
    return replace(analysis, kernel=kernel)


def pair(runs: int, factor: float = 1.5, file: str = "/src/k.cu") -> Compared:
    """Compare a kernel before and after its line 10 took over, recorded so many times on each side."""
    one = samples.every_verdict()[0]
    before, after = lined(one, 1.0, {10: 2000, 11: 6000}, file), lined(one, factor, {10: 5000, 11: 4000}, file)
    return Compared("app", compare(_side("base", before, runs), _side("head", after, runs)))


def _side(name: str, analysis: Analysis, runs: int) -> Side:
    return Side(name, tuple(samples.report([_later(analysis, i)]) for i in range(runs)))


def _later(analysis: Analysis, i: int) -> Analysis:
    duration_ns = (analysis.kernel.duration_ns or 0.0) * (1 + 0.001 * i)
    kernel = analysis.kernel
    return replace(analysis, kernel=replace(kernel, counters={**kernel.counters, "duration_ns": duration_ns}))


def test_a_hot_line_that_got_slower_is_a_warning() -> None:
    """Line 10 took 200 µs of 1 ms and takes 750 µs of 1.5 ms, in three recordings: one warning with both times."""
    (annotation,) = annotations_of(hot_lines([pair(3)], FLOOR_NS))
    assert (annotation.level, annotation.file, annotation.line) == ("warning", "/src/k.cu", 10)
    assert annotation.text.startswith("this line: 200 µs -> 751 µs; the kernel takes 50.0 % more (1.00 ms [")


def test_a_line_of_single_runs_is_a_notice() -> None:
    """One run each: nothing is judged, so nothing is warned of, and the text says why."""
    (annotation,) = annotations_of(hot_lines([pair(1)], FLOOR_NS))
    assert annotation.level == "notice"
    assert annotation.text.endswith("; 1 run each, so that noise is not known")


@pytest.mark.parametrize(("factor", "floor_ns"), [(1.02, FLOOR_NS), (1.5, 600e3)])
def test_kernels_that_no_gate_would_fail_have_no_annotation(factor: float, floor_ns: float) -> None:
    """Below the smallest change that counts, and below the floor, a line is left alone."""
    assert hot_lines([pair(3, factor), pair(1, factor)], floor_ns) == []


def test_annotations_are_few_and_one_a_line() -> None:
    """GitHub shows ten; the same line of two kernels is said once."""
    many = [pair(3, file=f"/src/{i}.cu") for i in range(MAX_ANNOTATIONS + 5)]
    assert len(annotations_of(hot_lines(many, FLOOR_NS))) == MAX_ANNOTATIONS
    assert len(annotations_of(hot_lines([pair(3), pair(3)], FLOOR_NS))) == 1


def test_the_summary_begins_with_the_gate_and_lists_the_lines(tmp_path: Path) -> None:
    """Gate, lines, then the table of each program; files of the checkout are named from its root."""
    (tmp_path / "k.cu").touch()
    many = [pair(3)]
    text = to_summary(many, Gate(0.05).judge(many), NO_SIDES, hot_lines(many, FLOOR_NS), tmp_path)
    assert text.index("**The gate failed**") < text.index("**Lines that got slower**") < text.index("### app: ")
    assert "| `k.cu:10` |" in text
    html = MarkdownIt("commonmark").enable("table").render(text)
    assert html.count("<table>") == 2
    assert "<td>200 µs -&gt; 751 µs</td>" in html


def test_a_long_summary_is_cut_by_programs(tmp_path: Path) -> None:
    """What a comment cannot hold: programs with small differences are counted and left out."""
    one = layer()
    many = [replace(one, program=f"program {i}") for i in range(200)]
    text = to_summary(many, Gate(0.05).judge(many), NO_SIDES, [], tmp_path)
    assert len(text) < MAX_CHARACTERS + 8000
    shown = text.count("### program")
    assert text.endswith(f"and {200 - shown} programs with smaller differences: truncated")


def test_hostile_names_write_no_commands_and_no_html(tmp_path: Path) -> None:
    """A kernel, a file and a program with GitHub's commands in their names stay text."""
    evil = "::error::x ##[error]y <img src=x onerror=alert(1)> @nobody"
    one = pair(3, file=f"/src/{evil}")
    many = [replace(one, program=evil)]
    text = to_summary(many, Gate(0.05).judge(many), NO_SIDES, hot_lines(many, FLOOR_NS), tmp_path)
    assert "##[" not in text
    assert not any(line.strip().startswith("::") for line in text.splitlines())
    assert "<img" not in MarkdownIt("commonmark").enable("table").render(text)


def test_equal_sides_hold(tmp_path: Path) -> None:
    """No change: the gate holds, and no lines are listed."""
    many = [compared(samples.every_verdict(), samples.every_verdict())]
    text = to_summary(many, Gate(0.05).judge(many), NO_SIDES, hot_lines(many, FLOOR_NS), tmp_path)
    assert "**The gate holds**" in text
    assert "Lines that got slower" not in text


@pytest.mark.corpus
def test_the_published_pair_backwards_points_at_the_divisions(corpus: Path, tmp_path: Path) -> None:
    """Turning multiplications back into divisions is slower at the line that divides, and nowhere else of weight."""
    base, head = (
        Side(name, analyze_paths([corpus / f"GPU_workshop__MW_{name}.ncu-rep"]).reports)
        for name in ("DivToMult", "Baseline")
    )
    found = hot_lines([Compared("miniWeather", compare(base, head))], FLOOR_NS)
    assert [one.place[1] for one in found][:1] == [288]
    assert {one.change.name for one in found} == {"compute_tendencies_x_279_gpu"}
    assert not any(one.is_judged for one in found)
    (tmp_path / "miniWeather_mpi_openacc.F90").touch()
    summary = to_summary([], None, NO_SIDES, found, tmp_path)
    assert "`miniWeather_mpi_openacc.F90:288`" in summary
    assert "1.64 ms -&gt; 2.86 ms | 45 % |" in summary.replace("\u00a0", " ")
