"""Code that people guess without reading the reference works, or its error shows what works."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.loops import for_all

import rooflens as rl
from rooflens.cli.group import main
from rooflens.meant import BY_NAME

FIXTURES = Path(__file__).parents[2] / "fixtures"
ATTENTION = FIXTURES / "synthetic/attention.synthetic.ncu-rep"
SAXPY = FIXTURES / "published/GPU-Roofline-Profiler__saxpy.ncu-rep"


@pytest.fixture(scope="module")
def report() -> rl.Report:
    """Open a stored report."""
    return rl.open(ATTENTION)


@for_all(
    "short, long",
    [
        (lambda kernel: kernel.gain, lambda kernel: kernel.verdict.gain),
        (lambda kernel: kernel.limit.factor, lambda kernel: kernel["verdict_limit_factor"]),
        (lambda kernel: [move.text for move in kernel.moves], lambda kernel: [m.text for m in kernel.verdict.moves]),
        (lambda kernel: kernel.intensity["dram"], lambda kernel: kernel["dram_intensity"]),
        (lambda kernel: kernel.intensity["smem"], lambda kernel: kernel["smem_intensity"]),
    ],
)
def test_the_short_way_gives_what_the_long_way_does(
    short: Callable[[rl.Kernel], Any], long: Callable[[rl.Kernel], Any], report: rl.Report
) -> None:
    """Gain, limit, moves and intensity are attributes of the kernel itself."""
    assert [short(kernel) for kernel in report] == [long(kernel) for kernel in report]


def test_paths_come_one_by_one_or_in_a_list() -> None:
    """`open([a, b])` equals `open(a, b)`, for any iterable of paths."""
    assert rl.open([str(ATTENTION), SAXPY]) == rl.open(str(ATTENTION), SAXPY) == rl.open(p for p in (ATTENTION, SAXPY))


@for_all(
    "asked, error, said",
    [
        (lambda report: report[99], IndexError, "the report has no kernel 99: it has 4 kernels, 0 to 3"),
        (lambda report: report[-5], IndexError, "no kernel -5"),
        (lambda report: report[1.5], TypeError, "a position, a name or a slice, not by float"),
        (lambda report: report.verdict, AttributeError, "its kernels have it, `report[0].verdict`"),
        (lambda report: report.to_panda, AttributeError, "did you mean `to_pandas`?"),
        (lambda report: report[0].duration, AttributeError, "did you mean `duration_ns`?"),
        (lambda report: report[0].dram_throughput, AttributeError, "`dram_share`"),
        (lambda report: report[0]["nope__x.sum"], KeyError, "no metric is called `nope__x.sum`"),
        (lambda report: report.bound, AttributeError, "its kernels have it, `report[0].bound`"),
        (lambda _: rl.hotspots, AttributeError, "an opened report has it: `rl.open(path)[0].hotspots`"),
        (lambda _: rl.about, AttributeError, "`rooflens about NAME`"),
        (lambda report: report[0].hotspot, AttributeError, "`hotspots`"),
        (lambda _: rl.open([]), rl.RooflensError, "no report given"),
        (lambda _: rl.open(3), rl.RooflensError, "3 is not a path"),
        (lambda _: rl.gpus("h1000"), rl.RooflensError, "no GPU is called `h1000`"),
    ],
)
def test_what_there_is_not_is_answered_with_what_there_is(
    asked: Callable[[rl.Report], Any], error: type[Exception], said: str, report: rl.Report
) -> None:
    """The error has Python's usual type, and its message or hint shows the way."""
    with pytest.raises(error) as caught:
        asked(report)
    assert said in f"{caught.value} {getattr(caught.value, 'hint', '')}"


def test_texts_are_plain_strings(report: rl.Report) -> None:
    """Digest, explanation and comparison are strings of several lines and nothing else."""
    for text in (report.digest(), report[0].explain(), rl.compare(report, report).to_markdown()):
        assert type(text) is str
        assert text.count("\n") > 3


def test_what_a_kernel_has_by_name_is_a_plain_dict(report: rl.Report) -> None:
    """Levels, intensities, pipes and stall reasons are dicts of their own, whose changes do not reach the kernel."""
    kernel = report[0]
    for name in ("levels", "intensity", "pipes", "stalls"):
        named = getattr(kernel, name)
        assert type(named) is dict, name
        before = dict(named)
        named.clear()
        assert getattr(kernel, name) == before, name


def test_parquet_holds_the_table_and_overwrites_nothing(report: rl.Report, tmp_path: Path) -> None:
    """Any table can be written as a Parquet file for other tools; an existing file stays unless forced."""
    pq = pytest.importorskip("pyarrow.parquet")
    file = report.to_parquet(tmp_path / "a.parquet", "findings")
    assert pq.read_table(file).num_rows == sum(len(kernel.findings) for kernel in report)
    with pytest.raises(rl.RooflensError, match="exists"):
        report.to_parquet(file)
    report.to_parquet(file, force=True)
    assert pq.read_table(file).equals(report.to_arrow())


def test_gpus_are_those_that_predict_takes() -> None:
    """Each `id` in `gpus` names a single GPU, whose repr is one line."""
    for gpu in rl.gpus():
        assert rl.gpus(gpu.id) == (gpu,)
        assert "\n" not in repr(gpu)
        assert len(repr(gpu)) < 100


def test_a_comparison_is_a_sequence_that_a_notebook_shows(report: rl.Report, monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook shows a comparison's changes, its Markdown, and its page in an isolated frame."""
    comparison = rl.compare(report, report)
    assert [*comparison] == [*comparison.changes]
    assert len(comparison) == len(report)
    assert comparison._repr_markdown_() == comparison.to_markdown()
    with pytest.raises(rl.RooflensError) as caught:
        comparison.show()
    assert '`comparison.save("page.html")`' in caught.value.hint
    shown: list[dict[str, str]] = []
    monkeypatch.setattr("rooflens.api.notebook.display", lambda: lambda data, **_: shown.append(data))
    comparison.show(height=300)
    assert 'sandbox="allow-scripts allow-downloads"' in shown[0]["text/html"]
    assert "height:300px" in shown[0]["text/html"]


def test_measured_kernels_are_predicted_elsewhere_as_the_command_does() -> None:
    """`predict(from_=...)` accepts a report or a path, and returns the rows of `predict --from`."""
    weather = FIXTURES / "published/GPU_workshop__MW_Baseline.ncu-rep"
    told = CliRunner().invoke(main, ["predict", "--from", str(weather), "--gpu", "h200", "--format", "json"]).stdout
    rows = [(row["about_ns"], row["factor"]) for row in json.loads(told)["kernels"]]
    assert rows[0][1] > 1
    for given in (weather, rl.open(weather)):
        assert [(one.about_ns, one.factor) for one in rl.predict(from_=given, gpu="h200")] == rows
    for wrong in ({"from_": SAXPY}, {}, {"from_": SAXPY, "gpu": "h200", "m": 3}, {"from_": SAXPY, "dtype": "fp17"}):
        with pytest.raises(rl.RooflensError):
            rl.predict(**wrong)


def test_every_name_of_the_table_gives_what_its_row_says(report: rl.Report) -> None:
    """Each name of the table works on its class, which has no such name of its own, and `dir` does not list it."""
    comparison = rl.compare(report, report)
    things: dict[str, Any] = {"Kernel": report[0], "Report": report, "Comparison": comparison, "rooflens": rl}
    wrong = []
    for (owner, name), does in BY_NAME.items():
        thing = things[owner]
        listed = dir(type(thing)) + dir(thing)
        value, meant = getattr(thing, name), does(thing)
        same = value.equals(meant) if hasattr(value, "equals") else value == meant or callable(value)
        if name in listed or not same or callable(value) != callable(meant):
            wrong.append((owner, name))
    assert BY_NAME
    assert wrong == []


@for_all(
    "guessed, written",
    [
        (lambda rl, path: rl.load(path), lambda rl, path: rl.open(path)),
        (lambda rl, path: rl.open(path)[0].bound, lambda rl, path: rl.open(path)[0].verdict.bound),
        (lambda rl, path: rl.open(path).top(2), lambda rl, path: rl.open(path)[:2]),
        (lambda rl, path: rl.open(path).filter("gemm"), lambda rl, path: rl.open(path)["gemm"]),
        (lambda rl, path: rl.open(path).sort_by("time"), lambda rl, path: rl.open(path).sort("gpu_time_ns")),
        (lambda rl, path: rl.open(path)[0].dram_share, lambda rl, path: rl.open(path)[0]["dram_share"]),
        (
            lambda rl, path: rl.open(path)[0]["dram__bytes_read.sum"],
            lambda rl, path: rl.open(path)[0].metric("dram__bytes_read.sum"),
        ),
        (lambda rl, path: rl.diff(path, path).speedup, lambda rl, path: rl.compare(path, path).factor),
        (lambda rl, path: rl.diff(path, path).regressions, lambda *_: ()),
    ],
)
def test_a_guessed_line_gives_what_the_written_one_does(
    guessed: Callable[..., Any], written: Callable[..., Any]
) -> None:
    """Whole lines of guessed names give the same values."""
    assert guessed(rl, ATTENTION) == written(rl, ATTENTION)


def test_printed_reports_and_comparisons_are_the_tables_of_the_command_line(report: rl.Report) -> None:
    """`print` shows the table of `analyze` and of `compare`; `repr` stays one line."""
    table = CliRunner().invoke(main, ["analyze", str(ATTENTION)])
    lines = [line for line in table.stdout.splitlines() if not line.startswith("`rooflens report ")]
    assert str(report).startswith("\n".join(lines))
    both = CliRunner().invoke(main, ["compare", str(ATTENTION), str(ATTENTION)])
    comparison = rl.compare(ATTENTION, ATTENTION)
    assert str(comparison) == both.stdout.rstrip("\n")
    for thing in (report, comparison):
        assert "\n" not in repr(thing)


def test_a_report_is_not_opened_by_its_class() -> None:
    """`Report(path)` says what opens one."""
    with pytest.raises(TypeError, match=r"a report is opened by `rl\.open\("):
        rl.Report(str(ATTENTION))  # type: ignore[arg-type, call-arg]  # that is what is tested


def test_the_repr_of_a_forecast_is_short() -> None:
    """A prediction's repr is one line."""
    (answer,) = rl.predict(from_=SAXPY, gpu="h100-sxm")
    assert len(repr(answer)) < 200
