from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from support.hostile import SCRIPTS
from support.traces import Event, host, kernel, launch, write_trace

import rooflens as rl
from rooflens.analyzing import analyze_paths
from rooflens.errors import InputError
from rooflens.format import bounded_name
from rooflens.model.records import Analysis, AnalyzedReport
from rooflens.report.words.verdict import best_move
from rooflens.writing import annotating
from rooflens.writing.annotating import annotate

ROOT = Path(__file__).parents[2]
STEP = ROOT / "examples" / "step.synthetic.json"
PHASES = {"X", "M", "C", "s", "f", "t", "i", "I", "B", "E", "b", "e", "n"}


@pytest.fixture(scope="module")
def attention(fixtures: Path) -> AnalyzedReport:
    """A report of four kernels, without samples over time."""
    return analyze_paths([fixtures / "synthetic" / "attention.synthetic.ncu-rep"]).reports[0]


@pytest.fixture(scope="module")
def adamw(fixtures: Path) -> AnalyzedReport:
    """A published report of one kernel in four launches, two of them sampled."""
    return analyze_paths([fixtures / "published" / "llm.c__adamw_coalsecing_shared.ncu-rep"]).reports[0]


def _document(path: Path) -> Any:
    """Parse a trace, keeping each number as its text."""
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return json.loads(text, parse_float=str, parse_int=str)


def _ours(event: Event) -> dict[str, Any]:
    return {key: value for key, value in event.get("args", {}).items() if key.startswith("rooflens ")}


def _without_ours(document: Any) -> Any:
    """Return a document without our additions."""
    kept = []
    for event in document["traceEvents"]:
        if event.get("cat") == "rooflens":
            continue
        args = {key: value for key, value in event.get("args", {}).items() if not key.startswith("rooflens ")}
        kept.append({**event, "args": args} if "args" in event else event)
    return {**document, "traceEvents": kept}


def _launches(report: AnalyzedReport, rounds: int = 1, **args: Any) -> list[Event]:
    """Return events of all kernels of a report, in order."""
    kernels = [one.kernel for one in report.analyses] * rounds
    return [
        kernel(one.name, 100.0 * number, 50.5, grid=list(one.grid or ()), block=list(one.block or ()), **args)
        for number, one in enumerate(kernels)
    ]


def test_the_trace_is_kept_to_the_digit(tmp_path: Path, attention: AnalyzedReport) -> None:
    """Except for our arguments, events and keys are the trace's, in order."""
    for name in ("out.json", "out.json.gz"):
        done = annotate(STEP, [attention], tmp_path / name)
        assert (done.event_count, done.matched_count, done.kernel_count, done.matched_kernel_count) == (12, 8, 6, 4)
        assert _without_ours(_document(tmp_path / name)) == _document(STEP)
        assert list(_document(tmp_path / name)) == list(_document(STEP))


def test_our_arguments_are_those_of_the_report(tmp_path: Path, attention: AnalyzedReport) -> None:
    """Class, limiter, share, gain and move are those of the Python API; the share of the program is a plain sum."""
    annotate(STEP, [attention], tmp_path / "out.json")
    events = [one for one in _document(tmp_path / "out.json")["traceEvents"] if one.get("cat") == "kernel"]
    times: defaultdict[str, float] = defaultdict(float)
    for event in events:
        times[event["name"]] += float(event["dur"])
    expected = {one.analysis.kernel.name: one for one in rl.open(attention.run.source)}
    for event in events:
        ours = _ours(event)
        if event["name"] not in expected:
            assert ours == {}
            continue
        theirs = expected[event["name"]]
        limiter = theirs.analysis.verdict.bottleneck
        assert limiter is not None
        assert ours["rooflens verdict"].startswith(theirs.verdict.bound)
        assert float(ours["rooflens share of limiter (%)"]) == pytest.approx(limiter.share * 100, abs=0.051)
        assert ours["rooflens first move"] == best_move(theirs.analysis)
        assert ours["rooflens key"] == theirs.key
        share = times[event["name"]] / sum(times.values()) * 100
        assert float(ours["rooflens share of program (%)"]) == pytest.approx(share, abs=0.051)
        gain = theirs.analysis.verdict.gain
        assert ("rooflens gain" in ours) == (gain is not None)
    softmax = next(_ours(one) for one in events if "softmax" in one["name"])
    assert softmax["rooflens verdict"] == "memory-bound"
    assert softmax["rooflens limiter"] == "HBM3e"
    assert softmax["rooflens synthetic"] == "written by a generator, not recorded"


def test_the_copy_follows_the_trace_event_format(tmp_path: Path, adamw: AnalyzedReport) -> None:
    """Phases, IDs and times are valid, our keys are only in `args`, and counters hold numbers."""
    annotate(write_trace(tmp_path / "t.json", _launches(adamw)), [adamw], tmp_path / "out.json")
    for event in json.loads((tmp_path / "out.json").read_text())["traceEvents"]:
        assert event["ph"] in PHASES
        assert isinstance(event["name"], str)
        assert not [key for key in event if key.startswith("rooflens ")]
        assert all(isinstance(event[key], (int, str)) for key in ("pid", "tid"))
        if event["ph"] == "X":
            assert event["dur"] >= 0
        if event["ph"] != "M":
            assert isinstance(event["ts"], (int, float))
        if event["ph"] == "C":
            assert event["cat"] == "rooflens"
            assert event["args"]
            assert all(isinstance(value, (int, float)) for value in event["args"].values())


def test_series_become_counter_tracks_within_their_launches(tmp_path: Path, adamw: AnalyzedReport) -> None:
    """Each track stays within its launch's time, has the means of the series, and ends at zero."""
    annotate(write_trace(tmp_path / "t.json", _launches(adamw)), [adamw], tmp_path / "out.json")
    events = json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    points = [one for one in events if one["ph"] == "C" and one["name"] == "DRAM, stream 7"]
    sampled = [number for number, one in enumerate(adamw.analyses) if one.kernel.series]
    assert sampled == [1, 3]
    for number in sampled:
        series = adamw.analyses[number].kernel.series
        assert series is not None
        shares = series.shares["dram"]
        start, end = 100.0 * number, 100.0 * number + 50.5
        inside = [one for one in points if start <= one["ts"] <= end]
        assert [one["ts"] for one in inside] == sorted(one["ts"] for one in inside)
        assert (inside[-1]["ts"], inside[-1]["args"]) == (end, {"%": 0.0})
        values = [one["args"]["%"] for one in inside[:-1]]
        most = min(len(shares), annotating.MOST_POINTS)
        ends = [at * len(shares) // most for at in range(most + 1)]
        assert len(values) == sum(set(shares[first:last]) != {None} for first, last in pairwise(ends))
        known = [share for share in shares if share is not None]
        assert sum(values) / len(values) == pytest.approx(100 * sum(known) / len(known), rel=0.05)
    assert len([one for one in points if one["args"] == {"%": 0.0}]) >= 2
    (named,) = [one for one in events if one["ph"] == "M" and one.get("cat") == "rooflens"]
    assert named["args"] == {"name": "GPU 0: units within profiled kernels, 0 elsewhere (Nsight Compute)"}
    assert {one["pid"] for one in points} == {named["pid"]}


def test_too_many_counters_are_left_out_and_said(
    tmp_path: Path, adamw: AnalyzedReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The size of the additions to a long trace is limited."""
    monkeypatch.setattr(annotating, "MOST_TRACK_EVENTS", 1)
    done = annotate(write_trace(tmp_path / "t.json", _launches(adamw)), [adamw], tmp_path / "out.json")
    assert done.notes == ("counter tracks only in the first 1 of 2 launches that have a series",)


def test_to_annotate_twice_is_to_annotate_once(tmp_path: Path, adamw: AnalyzedReport) -> None:
    """An earlier annotation is replaced, also by another report's."""
    trace = write_trace(tmp_path / "t.json", _launches(adamw))
    annotate(trace, [adamw], tmp_path / "once.json")
    annotate(tmp_path / "once.json", [adamw], tmp_path / "twice.json")
    assert (tmp_path / "twice.json").read_bytes() == (tmp_path / "once.json").read_bytes()
    plain = [replace(one, kernel=replace(one.kernel, series=None), key="other") for one in adamw.analyses]
    annotate(tmp_path / "once.json", [replace(adamw, analyses=tuple(plain))], tmp_path / "other.json")
    document = _document(tmp_path / "other.json")
    assert {_ours(one)["rooflens key"] for one in document["traceEvents"]} == {"other"}
    assert _without_ours(document) == _document(trace)


def _keyed(analysis: Analysis, *keys: str) -> tuple[Analysis, ...]:
    return tuple(replace(analysis, key=key) for key in keys)


def test_launches_alike_are_told_by_their_order_on_each_gpu(tmp_path: Path, adamw: AnalyzedReport) -> None:
    """The first launch of the trace matches the first of the report, wherever the file has it, on each GPU."""
    report = replace(adamw, analyses=_keyed(adamw.analyses[0], "first", "second", "third"))
    one = adamw.analyses[0].kernel
    shape = {"grid": list(one.grid or ()), "block": list(one.block or ())}
    events = [kernel(one.name, ts, device=gpu, **shape) for ts, gpu in ((30, 0), (20, 0), (10, 0), (15, 1), (25, 1))]
    annotate(write_trace(tmp_path / "t.json", events), [report], tmp_path / "out.json")
    keys = [_ours(event)["rooflens key"] for event in _document(tmp_path / "out.json")["traceEvents"]]
    assert keys == ["third", "second", "first", "first", "second"]


def test_tracks_of_two_gpus_are_apart(tmp_path: Path, adamw: AnalyzedReport) -> None:
    """Each GPU has its own process with its name."""
    events = [*_launches(adamw), *_launches(adamw, device=1)]
    annotate(write_trace(tmp_path / "t.json", events), [adamw], tmp_path / "out.json")
    ours = [one for one in _document(tmp_path / "out.json")["traceEvents"] if one.get("cat") == "rooflens"]
    assert Counter(one["ph"] for one in ours)["M"] == 2
    assert len({one["pid"] for one in ours}) == 2


@pytest.mark.parametrize(
    "args", ["", ', "args": {}', ', "args": { }', ', "args":{"a":1.50 ,\n"b":"}"  } ', ', "args": 5']
)
def test_arguments_of_any_shape(tmp_path: Path, adamw: AnalyzedReport, args: str) -> None:
    """Our arguments come last, or alone; an event whose arguments are no object is left unchanged."""
    text = '[{"ph":"X","cat":"kernel","name":"adamw_kernel2","ts":1,"dur":2,"pid":0,"tid":7%s}]'
    other = ',{"ph":"X","cat":"kernel","name":"adamw_kernel2","ts":9,"dur":2,"pid":0,"tid":7}]'
    (tmp_path / "t.json").write_text(text[:-1] % args + other)
    done = annotate(tmp_path / "t.json", [adamw], tmp_path / "out.json")
    written = (tmp_path / "out.json").read_text()
    event = json.loads(written)[0]
    if "5" in args and "1.50" not in args:
        assert (event["args"], done.matched_count) == (5, 1)
        return
    assert event["args"]["rooflens verdict"] == "memory-bound"
    before = (text[:-1] % args).rstrip(" }]")
    assert written.startswith(before)


@pytest.mark.parametrize("name", [*SCRIPTS[:3], "a\x00\x1b[31m\n", "\udcff", "k" * 200_000])
def test_hostile_names_are_copied_as_they_are(tmp_path: Path, attention: AnalyzedReport, name: str) -> None:
    """Names in the trace keep each character; names from reports lose control characters."""
    analysis = attention.analyses[0]
    hostile = replace(
        analysis, kernel=replace(analysis.kernel, name=bounded_name(name), source=f"x\x1b[2J{name[:9]}.ncu-rep")
    )
    trace = write_trace(tmp_path / "t.json", [kernel(name, 1)])
    bare = replace(hostile, kernel=replace(hostile.kernel, grid=None, block=None))
    annotate(trace, [replace(attention, analyses=(bare,))], tmp_path / "out.json")
    document = _document(tmp_path / "out.json")
    (event,) = document["traceEvents"]
    assert event["name"] == name
    assert _ours(event)["rooflens report"].isprintable()
    assert _without_ours(document) == _document(trace)


def test_another_program_is_refused_and_nothing_written(tmp_path: Path, attention: AnalyzedReport) -> None:
    """If no kernel matches, the hint names kernels of both sides."""
    trace = write_trace(tmp_path / "t.json", [kernel("other_kernel<float>", 1)])
    with pytest.raises(InputError, match="no kernel of the trace is in the reports") as caught:
        annotate(trace, [attention], tmp_path / "out.json")
    assert "`other_kernel<float>`" in caught.value.hint
    assert "`attention_scale_softmax<2048>`" in caught.value.hint
    assert [file.name for file in tmp_path.iterdir()] == ["t.json"]


def test_a_cut_trace_leaves_no_file(tmp_path: Path, attention: AnalyzedReport) -> None:
    """Nothing is written for a trace that ends in the middle."""
    trace = tmp_path / "t.json"
    trace.write_bytes(STEP.read_bytes()[:-40])
    with pytest.raises(InputError, match="is cut"):
        annotate(trace, [attention], tmp_path / "out.json")
    assert [file.name for file in tmp_path.iterdir()] == ["t.json"]


def test_an_array_without_end_stays_one(tmp_path: Path, adamw: AnalyzedReport) -> None:
    """A trace without its end, which Chrome opens, is annotated with a note that it may be cut."""
    text = json.dumps(_launches(adamw))[:-1]
    (tmp_path / "t.json").write_text(text + ",\n")
    done = annotate(tmp_path / "t.json", [adamw], tmp_path / "out.json")
    written = (tmp_path / "out.json").read_text()
    assert written.endswith("},\n")
    assert len(json.loads(written[:-2] + "]")) > 4
    assert done.notes == ("the trace does not end, as Chrome's format allows: it may have been cut",)


def test_other_gpus_and_kernels_that_did_not_run_are_said(tmp_path: Path, attention: AnalyzedReport) -> None:
    """A report of another GPU is used, with a note."""
    first = _launches(attention)[:1]
    trace = write_trace(tmp_path / "t.json", first, deviceProperties=[{"id": 0, "name": "NVIDIA A100"}])
    done = annotate(trace, [attention], tmp_path / "out.json")
    assert done.words == "annotated 1 of 1 kernel event (1 of 1 kernel)"
    assert done.notes[0] == ("the reports are of NVIDIA H200, the trace is of NVIDIA A100: verdicts are the reports'")
    assert done.notes[1].startswith("3 kernels of the reports not in the trace: `attention_scale_softmax<2048>`, ")


def test_a_thousand_kernels_in_twelve_modules(tmp_path: Path, attention: AnalyzedReport) -> None:
    """Each launch gets the verdict of its own kernel."""
    analysis = attention.analyses[0]
    kinds = [
        replace(
            analysis, key=f"k{number}", kernel=replace(analysis.kernel, name=f"void ns::kernel_{number}<{number}>()")
        )
        for number in range(100)
    ]
    events: list[Event] = []
    for number in range(1_000):
        ts = 100.0 * number
        name, grid, block = kinds[number % 100].kernel.name, analysis.kernel.grid, analysis.kernel.block
        events += [
            host("python_function", f"nn.Module: Block_{number % 12}", ts, 50),
            launch(ts + 10, number),
            kernel(name, ts + 20, correlation=number, grid=list(grid or ()), block=list(block or ())),
        ]
    trace = write_trace(tmp_path / "t.json.gz", events)
    done = annotate(trace, [replace(attention, analyses=tuple(kinds))], tmp_path / "out.json.gz")
    assert (done.matched_count, done.matched_kernel_count, done.notes) == (1_000, 100, ())
    kernels = [one for one in _document(tmp_path / "out.json.gz")["traceEvents"] if one["cat"] == "kernel"]
    assert [_ours(one)["rooflens key"] for one in kernels] == [f"k{number % 100}" for number in range(1_000)]


@pytest.mark.corpus
def test_a_published_training_step_survives(tmp_path: Path, corpus: Path, attention: AnalyzedReport) -> None:
    """Of 1,154 kernel events of PyTorch those of two names are annotated, and no event changes otherwise."""
    trace = corpus.parent / "outcomes" / "timelines" / "hta_sampled_rank-0.json.gz"
    if not trace.is_file():
        pytest.skip(f"no timelines at {trace.parent}")
    before = _document(trace)
    counted = Counter(one["name"] for one in before["traceEvents"] if one.get("cat") == "kernel")
    names = [name for name, _ in counted.most_common(2)]
    renamed = [
        replace(one, kernel=replace(one.kernel, name=name, grid=None, block=None))
        for one, name in zip(attention.analyses, names, strict=False)
    ]
    done = annotate(trace, [replace(attention, analyses=tuple(renamed))], tmp_path / "out.json.gz")
    after = _document(tmp_path / "out.json.gz")
    annotated = Counter(one["name"] for one in after["traceEvents"] if _ours(one))
    assert annotated == {name: counted[name] for name in names}
    assert (done.event_count, done.matched_count) == (1_154, sum(annotated.values()))
    assert _without_ours(after) == before
