"""Everything that an opened report offers agrees with the commands."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner
from msgspec.structs import asdict
from support.ncu_rep_writer import KernelSpec, ReportSpec, write_report

import rooflens as rl
from rooflens.api.spots import Hotspot
from rooflens.cli.group import main
from rooflens.errors import InputError, UsageError
from rooflens.ingest.reports.read import ReadOptions, read_report
from rooflens.model import records
from rooflens.report.html.theme import LOOKS
from rooflens.report.notebook import finding_html, level_html

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(1)>\x1b[31m\u202egemm'


@pytest.fixture(scope="module")
def attention(fixtures: Path) -> Path:
    """Return a stored report of four kernels."""
    return fixtures / "synthetic" / "attention.synthetic.ncu-rep"


@pytest.fixture(scope="module")
def report(attention: Path) -> rl.Report:
    """Open the report."""
    return rl.open(attention)


def printed(*arguments: object) -> str:
    """Return what a command prints."""
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.stderr
    return done.stdout


def test_the_dictionary_is_the_json_of_the_command(attention: Path, report: rl.Report) -> None:
    """`to_dict` is the document of `analyze --format json`, and a kernel's `to_dict` is one of its kernels."""
    document = json.loads(printed("analyze", attention, "--format", "json"))
    assert report.to_dict() == document
    assert report[0].to_dict() == document["kernels"][report[0].index]


@pytest.mark.parametrize("ending", ["md", "json", "svg", "html", "csv"])
def test_a_saved_file_is_that_of_the_command(attention: Path, report: rl.Report, ending: str, tmp_path: Path) -> None:
    """`save` writes the same files as `report -o`, and as `analyze` for a table."""
    saved = report.save(tmp_path / f"saved.{ending}").read_text(encoding="utf-8")
    if ending == "csv":
        assert saved == printed("analyze", attention, "--format", "csv")
        return
    printed("report", attention, "-o", tmp_path / f"written.{ending}")
    assert saved == (tmp_path / f"written.{ending}").read_text(encoding="utf-8")


def test_no_file_is_written_over(report: rl.Report, attention: Path, tmp_path: Path) -> None:
    """An existing file stays unless forced; a report stays even then."""
    file = tmp_path / "page.json"
    file.write_text("mine")
    with pytest.raises(UsageError, match="exists"):
        report.save(file)
    assert file.read_text() == "mine"
    report.save(file, force=True)
    assert json.loads(file.read_text()) == report.to_dict()
    with pytest.raises(UsageError, match="is not a format of this output"):
        report.save(tmp_path / "page.docx")
    with pytest.raises(UsageError, match="is not a format of this output"):
        report.save(attention, force=True)
    hidden = tmp_path / "report.html"
    hidden.write_bytes(attention.read_bytes())
    with pytest.raises(UsageError, match="is a report"):
        report.save(hidden, force=True)


def test_a_part_of_a_report_is_one(report: rl.Report) -> None:
    """Slices and patterns give smaller reports with the same keys, and everything made from them is limited to them."""
    some = report["attention_*_gemm"]
    assert [kernel.key for kernel in some] == [k.key for k in report if k.function_name.endswith("_gemm")]
    assert {kernel["name"] for kernel in some.to_dict()["kernels"]} == {k.name for k in some}
    assert [kernel.key for kernel in report[1:3]] == [kernel.key for kernel in report][1:3]
    assert some.to_arrow().num_rows == 2
    assert len(report[:0]) == 0
    with pytest.raises(IndexError):
        report[4]


def test_a_verdict_says_what_the_json_says(report: rl.Report) -> None:
    """Each property of a verdict equals the value of that name in the JSON."""
    for kernel in report:
        written = kernel.to_dict()["verdict"]
        for name in ("bound", "resource", "at_roof", "cause"):
            assert getattr(kernel.verdict, name) == written[name], name
        gain = kernel.verdict.gain
        assert (None if gain is None else asdict(gain)) == written["gain"]
        limit = kernel.verdict.limit
        facts = {name: getattr(limit, name) for name in ("factor", "far", "floor_ns", "by", "proven", "missing")}
        assert facts == written["limit"]
        moves = [(move["text"], move["finding"], move["gain"]) for move in written["moves"]]
        assert [(move.text, move.finding, move.gain and asdict(move.gain)) for move in kernel.verdict.moves] == moves
        assert kernel.verdict.sentence in repr(kernel.verdict)


def test_metrics_are_those_that_the_report_stores(attention: Path, report: rl.Report) -> None:
    """`metrics` returns every number that the reader finds in the report, plus the derived counters."""
    raw: Any = read_report(attention, "x", ReadOptions(raw="values")).raw
    rows = [row for row in raw.to_pylist() if row["kernel_index"] == report[0].index]
    stored = {
        row["name"]: next(row[key] for key in ("value_double", "value_uint64", "value_string") if row[key] is not None)
        for row in rows
    }
    found = report[0].metrics()
    assert {name: found[name] for name in stored} == stored
    assert found.keys() - stored.keys() == report[0].analysis.kernel.counters.keys()
    assert set(report[0].metrics("sm__*")) == {name for name in stored if name.startswith("sm__")}
    name = next(iter(report[0].metrics("dram__*")))
    assert report[0].metric(name) == stored[name]


def test_metrics_come_from_a_store_as_from_the_file(attention: Path, report: rl.Report, tmp_path: Path) -> None:
    """Kernels of a store have the metrics of their report."""
    rl.ingest_reports(attention, tmp_path / "store")
    stored = rl.open(tmp_path / "store")
    assert [kernel.metrics() for kernel in stored] == [kernel.metrics() for kernel in report]


def test_a_metric_that_no_kernel_has_is_an_error(report: rl.Report) -> None:
    """A counter that was not measured is None; an unknown name raises an error with a similar name."""
    assert report[0].metric("spill_inst") is None
    with pytest.raises(InputError) as raised:
        report[0].metric("gpu__time_duration.sun")
    assert raised.value.hint == "did you mean `gpu__time_duration.sum`?"


def test_hot_spots_by_what_there_is_not_are_an_error(report: rl.Report) -> None:
    """A misspelled grain is refused: an empty list would mean that nothing was sampled."""
    with pytest.raises(UsageError, match="there is no `instruction` to list") as raised:
        report[0].hotspots(by="instruction")  # type: ignore[arg-type]  # that is what is tested
    assert "sass (the instructions)" in raised.value.hint


def test_a_hot_spot_writes_its_share_as_all_others_do() -> None:
    """7 samples of 8 show as 88 % in a notebook, with the space and digits used in every table."""
    spot = records.Hotspot("line", file="a.cu", line=3, measures={"samples": 7.0})
    assert repr(Hotspot(spot, 8.0)) == "<Hotspot a.cu:3: 88 % of the samples>"
    assert repr(Hotspot(spot, None)) == "<Hotspot a.cu:3>"


def test_an_instruction_shows_itself_and_its_place() -> None:
    """The reprs of two instructions of a line differ by their text, if known, and by their offset."""
    one = records.Hotspot("sass", "a.cu", 3, "k", 0x1E0, "LDG.E R2, [R4.64]", measures={"samples": 4.0})
    assert repr(Hotspot(one, 8.0)) == "<Hotspot LDG.E R2, [R4.64] at 0x1e0, a.cu:3: 50 % of the samples>"
    bare = records.Hotspot("sass", function="k", pc=16)
    assert repr(Hotspot(bare, None)) == "<Hotspot instruction at 0x10>"


def test_metrics_of_a_report_that_changed_are_refused(attention: Path, fixtures: Path, tmp_path: Path) -> None:
    """Metrics are refused if the file was replaced by another report since it was opened."""
    file = tmp_path / "one.ncu-rep"
    file.write_bytes(attention.read_bytes())
    opened = rl.open(file)
    file.write_bytes((fixtures / "synthetic" / "sweep_gemm_bf16_128.synthetic.ncu-rep").read_bytes())
    with pytest.raises(InputError, match="has changed since"):
        opened[0].metrics()


def test_what_a_notebook_shows_is_inert(tmp_path: Path) -> None:
    """A hostile name cannot inject markup, script or terminal control codes."""
    file = write_report(tmp_path / "x.ncu-rep", ReportSpec([KernelSpec(HOSTILE, {"gpu__time_duration.sum": 2000.0})]))
    html = rl.open(file)._repr_html_()
    tags: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.extend([tag, *(name for name, _ in attrs)])  # type: ignore[method-assign]
    parser.feed(html)
    assert set(tags) == {"div", "p", "b", "br", "small", "code", "style"}
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", html)
    assert "style" not in re.findall(r"<(\w+)", html)
    assert not re.search("[\x1b\u202e]", repr(rl.open(file)[0]))


def test_a_notebook_shows_the_first_kernels_and_counts_the_others(tmp_path: Path) -> None:
    """A notebook shows the page's first three rows, and says where to find the others."""
    kernels = [KernelSpec(f"kernel_{i}()", {"gpu__time_duration.sum": 20000.0}) for i in range(53)]
    html = rl.open(write_report(tmp_path / "x.ncu-rep", ReportSpec(kernels)))._repr_html_()
    assert len(re.findall(r"<b>\d <code>", html)) == 3
    assert "50 more in <code>report.to_pandas()</code>" in html


def test_records_show_themselves(fixtures: Path) -> None:
    """A notebook shows a report as three rows and a picture; kernel, verdict, finding and level as text."""
    report = rl.open(fixtures / "published" / "GPU_workshop__MW_Baseline.ncu-rep")
    html = report._repr_html_()
    assert "6.19 \u2192 about 4.73\u00a0ms" in html
    assert 'src="data:image/svg+xml;base64,' in html
    kernel = report[0]
    assert kernel.verdict.sentence.partition(":")[0] in kernel.verdict._repr_html_()
    assert "compute_tendencies_x_279_gpu" in kernel._repr_html_()
    assert "Compute reciprocals once" in kernel._repr_html_().replace("\u00a0", " ")
    assert kernel.findings[0].title[1:] in finding_html(kernel.findings[0]).replace("\u00a0", " ")
    assert "B/s" in level_html(kernel.levels["dram"])


def test_a_notebook_without_the_renderer_shows_all_but_the_picture(
    report: rl.Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the picture package, a cell shows the rows and a line about how to get a picture."""
    whole = report._repr_html_()
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    html = report._repr_html_()
    assert "<img" not in html
    assert html.count("pip install &#39;vl-convert-python&gt;=1.8&#39;") == 1
    assert [one for one in re.findall("<code>.*?</code>", html) if "vl-convert" not in one] == re.findall(
        "<code>.*?</code>", whole
    )
    kernel = report[0]
    assert kernel._repr_html_()
    assert kernel.verdict._repr_html_()
    assert rl.compare(report, report)._repr_markdown_()


def test_bars_have_the_colour_of_the_class(fixtures: Path) -> None:
    """Rows have the colours of the page: the first kernel is compute-bound, the second and third memory-bound."""
    html = rl.open(fixtures / "published" / "GPU_workshop__MW_Baseline.ncu-rep")._repr_html_()
    looks = [LOOKS[bound].light for bound in ("compute", "memory", "memory")]
    assert re.findall("background:(#[0-9A-F]{6})", html) == looks


def test_a_page_in_a_frame_cannot_reach_the_notebook(report: rl.Report, monkeypatch: pytest.MonkeyPatch) -> None:
    """`show` puts the whole page, escaped, into a frame with its own origin."""
    shown: list[str] = []
    monkeypatch.setattr("rooflens.api.notebook.display", lambda: lambda data, **_: shown.append(data["text/html"]))
    report.show(height=300)
    (frame,) = shown
    sources: list[str | None] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda _, attrs: sources.append(dict(attrs)["srcdoc"])  # type: ignore[method-assign]
    parser.feed(frame)
    assert 'sandbox="allow-scripts allow-downloads"' in frame
    assert sources[0].startswith("<!doctype html>")
    assert len(sources) == 1


def test_no_page_is_shown_outside_of_a_notebook(report: rl.Report) -> None:
    """Outside a notebook `show` raises an error that points to `save`."""
    with pytest.raises(UsageError) as raised:
        report.show()
    assert 'report.save("page.html")' in raised.value.hint


def test_pandas_takes_a_report_as_polars_does(report: rl.Report) -> None:
    """`pd.DataFrame(report)` has the rows, columns and values of the summary, in order."""
    frame, table = pd.DataFrame(report), report.to_pandas()
    assert list(frame.columns) == list(table.columns)
    for name in ("key", "duration_ns", "dram_share", "verdict_bound", "time_share"):
        assert frame[name].tolist() == table[name].tolist(), name
    assert frame["key"].tolist() == pl.DataFrame(report)["key"].to_list()


def test_every_face_has_the_order_of_the_table(report: rl.Report, attention: Path) -> None:
    """Kernels, groups and frames keep the order of `analyze`, with failed kernels last."""
    table = printed("analyze", attention).partition("\nkernel ")[2]
    rows = [line.split()[0] for line in table.splitlines() if line.startswith(("flash", "att"))]
    assert len(rows) >= 4
    assert [kernel["short_name"].split()[0] for kernel in report] == rows[:4]
    keys = [kernel.key for kernel in report]
    assert [group.kernel.key for group in report.groups] == keys
    assert report.to_arrow()["key"].to_pylist() == keys


def test_groups_sum_the_launches_of_a_kernel_up(tmp_path: Path) -> None:
    """Three launches of a kernel form a group, represented by the median; a failed kernel comes last."""
    times_ns = {"gemm": (2000.0, 3000.0, 7000.0), "copy": (1000.0,)}
    specs = [KernelSpec(name, {"gpu__time_duration.sum": ns}) for name, each in times_ns.items() for ns in each]
    opened = rl.open(write_report(tmp_path / "x.ncu-rep", ReportSpec(specs)))
    first, second = opened.groups
    assert (first.name, first.launch_count, first.gpu_time_ns, len(first.launches)) == ("gemm", 3, 12000.0, 3)
    assert first.kernel.duration_ns == 7000.0  # half of the GPU time is reached here
    assert (second.name, second.launch_count) == ("copy", 1)
    assert "3 launches" in repr(first)


def test_reports_are_filtered_and_sorted(report: rl.Report) -> None:
    """Kernels can be filtered by value or function and sorted by column in both directions; a part keeps its order."""
    assert [k.verdict.bound for k in report.filter(verdict_bound="memory")] == ["memory"]
    slow = report.filter(lambda kernel: (kernel.duration_ns or 0) > 100_000)
    assert [k.key for k in slow] == [k.key for k in report if (k.duration_ns or 0) > 100_000]
    times_ns = [kernel.gpu_time_ns or 0.0 for kernel in report]
    assert [kernel.gpu_time_ns for kernel in report.sort("gpu_time_ns")] == sorted(times_ns, reverse=True)
    rising = report.sort(lambda kernel: kernel.gpu_time_ns, descending=False)
    assert [kernel.gpu_time_ns for kernel in rising] == sorted(times_ns)
    assert rising.to_arrow()["gpu_time_ns"].to_pylist() == sorted(times_ns)
    assert [kernel.key for kernel in rising[:2]] == [kernel.key for kernel in rising][:2]


def test_a_wrong_key_names_those_that_come_close(report: rl.Report) -> None:
    """Unknown columns raise a `KeyError` with a hint."""
    kernel = report[0]
    for ask, near in (
        (lambda: kernel["dram_shar"], "`dram_share`"),
        (lambda: kernel["duration"], "`duration_ns`"),
        (lambda: report.sort("durations"), "`duration_ns`"),
        (lambda: report.filter(verdict_bond="memory"), "`verdict_bound`"),
    ):
        with pytest.raises(KeyError) as raised:
            ask()
        assert isinstance(raised.value, rl.RooflensError)
        assert near in raised.value.hint


def test_a_word_leads_to_the_columns_that_hold_it(report: rl.Report) -> None:
    """A guessed column is answered with a few suggestions, or with one line, never with a list of all columns."""
    kernel = report[0]
    for word, meant in (
        ("gain", "`verdict_gain_factor`"),
        ("bound", "`verdict_bound`"),
        ("time", "`gpu_time_ns`"),
        ("flops", "you mean `flop_total`"),
        ("dram", "`dram_bytes`"),
        ("speedup", "`list(kernel)` lists them"),
    ):
        with pytest.raises(KeyError) as raised:
            kernel[word]
        hint = raised.value.hint  # type: ignore[attr-defined]  # `UnknownKeyError` has one
        assert meant in hint
        assert "`list(kernel)` lists" in hint
        assert hint.count("`") <= 2 * 9, word


def test_only_what_looks_like_a_metric_is_to_be_collected(report: rl.Report) -> None:
    """`metrics('gain')` points to the column instead of a command; a name with two underscores counts as ncu's."""
    for name, hint in (
        ("gain", "`kernel['verdict_gain_factor']`"),
        ("dram", "did you mean `dram_bytes`"),
        ("zzz", "`.metrics()` lists what there is"),
        ("zzz__nothing.sum", "collect it with `rooflens collect --metrics zzz__nothing.sum`"),
    ):
        with pytest.raises(InputError) as raised:
            report[0].metric(name)
        assert hint in raised.value.hint
        assert ("rooflens collect" in raised.value.hint) is ("__" in name)


def test_a_wrong_key_is_in_no_mapping(report: rl.Report) -> None:
    """`in` returns False for an unknown name instead of raising."""
    kernel = report[0]
    assert "dram_shar" not in kernel


def test_a_kernel_is_equal_to_itself_opened_again(report: rl.Report, attention: Path) -> None:
    """Kernels are equal, also in sets, if they are the same result of the same report."""
    again = rl.open(attention)
    assert [*report] == [*again]
    assert len({*report, *again}) == len(report)
    assert report[0] != report[1]


def test_what_says_the_same_is_equal(fixtures: Path) -> None:
    """Verdicts, hot spots, groups and partial reports compare by content, also in sets."""
    file = fixtures / "published" / "GPU_workshop__MW_Baseline.ncu-rep"
    report, again = rl.open(file), rl.open(file)
    for one, same, other in (
        (report[0].verdict, again[0].verdict, again[1].verdict),
        (report[0].hotspots()[0], again[0].hotspots()[0], again[0].hotspots()[1]),
        (report.groups[0], again.groups[0], again.groups[1]),
        (report[:2], again[:2], again[:3]),
        (report, again, again.sort("gpu_time_ns", descending=False)),
    ):
        assert one == same
        assert len({one, same, other}) == 2
        assert one != other
        assert one != "something else"


def test_a_kernel_shows_shape_registers_and_occupancy(fixtures: Path) -> None:
    """A kernel's repr shows shape, registers and occupancy, which a reader asks for next."""
    kernel = rl.open(fixtures / "published" / "GPU_workshop__MW_Baseline.ncu-rep")[0]
    shown = "6.19 ms, compute, grid 65535x1x1, block 128x1x1, 64 registers, occupancy 48 %"
    assert repr(kernel) == f"<Kernel 'compute_tendencies_x_279_gpu': {shown}>"
    assert (kernel.registers_per_thread, kernel["registers_per_thread"]) == (64, 64)
    assert kernel.occupancy == pytest.approx(0.4835, abs=1e-4)


def test_hot_spots_are_instructions_where_no_line_is_known(fixtures: Path) -> None:
    """Without line information `hotspots` lists instructions instead of nothing."""
    kernel = rl.open(fixtures / "published" / "llm.c__adamw_coalsecing_shared.ncu-rep")[0]
    assert {spot.by for spot in kernel.hotspots()} == {"line"}
    bare = rl.open(fixtures / "published" / "speedy_scan__profile.ncu-rep")[0]
    assert bare.hotspots(by="line") == ()
    assert {spot.by for spot in bare.hotspots()} == {"sass"}
