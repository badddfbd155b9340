"""A class that depends on an unmeasured side is shown as open everywhere."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from support.tags import words_of

from rooflens.model.analyze import analyze
from rooflens.model.records import Analysis, AnalyzedReport, Kernel
from rooflens.model.summary import KernelSummary, class_times_ns
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.model.verdict_classes import BOUNDS, bound_of, is_open
from rooflens.report.comparison.rows import limiter_words
from rooflens.report.content import Content, build_content
from rooflens.report.data import to_csv, to_document
from rooflens.report.document import Span, spans
from rooflens.report.kernel.document import explain
from rooflens.report.overview.document import overview
from rooflens.report.overview.kernels import kernels_document
from rooflens.report.page.first_screen import what_first
from rooflens.report.page.kernels import kernels
from rooflens.report.page.program_map import program_map
from rooflens.report.page.selectors import items
from rooflens.report.roofline.launches import plane
from rooflens.report.roofline.rows import kernel_rows
from rooflens.report.summary import limiter as limiter_of
from rooflens.report.summary import segments
from rooflens.report.templates import write_words
from rooflens.report.text.digest import digest
from rooflens.report.text.digest.kernel import block, row
from rooflens.report.words import ladder
from rooflens.report.words.change import limiter_sentence
from rooflens.report.words.verdict import verdict_sentence
from rooflens.report.words.verdicts import verdict_words
from rooflens.report.writers.markdown import to_markdown

_FEWEST = 100
"""Launches with an open class among the published reports and prints, at least; 126 when this was written."""
_CELL = re.compile(r'class="cell" data-k="(\w+)"[^>]*><i class="fill ([^"]+)"')
_SURE = re.compile(rf"(?<!possibly )(?<!or )(?<!- or )\b({'|'.join(BOUNDS)})-bound(?!\?)", re.IGNORECASE)


def _with_open_ones(published: list[AnalyzedReport]) -> Iterator[tuple[AnalyzedReport, Content]]:
    for report in published:
        if any(one.verdict.or_bound for one in report.analyses):
            yield report, build_content((report,), "page", default_thresholds())


def _faces(report: AnalyzedReport, page: Content, group: KernelSummary) -> Iterator[tuple[str, str]]:
    """Yield each text with the class of a kernel's median launch, by the name of its output."""
    analysis = group.analysis
    yield "table", verdict_words(analysis)
    yield "ranking", limiter_of(group.analysis)
    yield "explain", explain(report, analysis)
    yield "digest, block", to_markdown(block(1, group, page))
    yield "digest, row", to_markdown(row(1, group, page))
    yield "compare", limiter_words(analysis)
    yield "compare, sentence", limiter_sentence(analysis)
    yield "ladder", ladder.limiter(analysis)
    yield "sentence", verdict_sentence(analysis)


def _is_said(text: str, analysis: Analysis) -> bool:
    """Return whether a text calls the class open, by its mark or in words."""
    names = (analysis.verdict.bound, f"{analysis.verdict.bound}-bound", "instruction issue")
    return any(f"{name}?" in text for name in names) or "possibly" in text.lower()


def test_every_text_shows_an_open_class_as_open(published: list[AnalyzedReport]) -> None:
    """No output calls an open kernel plainly by its class, and explanations say what was not measured."""
    offenders, seen = [], Counter[str]()
    for report, page in _with_open_ones(published):
        for group in page.kernels:
            verdict = group.analysis.verdict
            if not (or_bound := verdict.or_bound):
                continue
            seen[verdict.shown_class] += group.launch_count
            for face, text in _faces(report, page, group):
                explains = not face.startswith(("compare", "ladder"))
                names = verdict.unmeasured or or_bound
                is_named = "not measured" in text and all(name in text.lower() for name in names)
                if not _is_said(text, group.analysis) or _SURE.search(text) or (explains and not is_named):
                    offenders.append((report.run.source[-40:], face, text[:200]))
    assert not offenders, (len(offenders), offenders[:5])
    assert sum(seen.values()) >= _FEWEST, seen


def test_data_and_charts_hold_an_open_class_apart(published: list[AnalyzedReport]) -> None:
    """JSON, CSV, chips, points, bars and cards give each launch's mark or the other possible classes."""
    offenders = []
    for report, page in _with_open_ones(published):
        opened = {launch.key: launch for launch in page.counted if launch.analysis.verdict.or_bound}
        written = to_document(report.analyses)["kernels"]
        flat = list(csv.DictReader(io.StringIO(to_csv(report.analyses))))
        for analysis, nested, line in zip(report.analyses, written, flat, strict=True):
            other = list(analysis.verdict.or_bound)
            if nested["verdict"]["or_bound"] != other or line["verdict_or_bound"].split() != other:
                offenders.append((report.run.source[-40:], "JSON or CSV", other))
        planes = [plane(page, gpu) for gpu in page.gpus]
        drawn = [
            ("items", {one["k"]: one["bound"] for one in items(page)}),
            ("map", {key: kind.replace(" open", "?") for key, kind in _CELL.findall(program_map(page))}),
            *(("points", {one["k"]: one["bound"] for one in kernel_rows(found)[0]}) for found in planes),
        ]
        for face, classes in drawn:
            offenders += [
                (report.run.source[-40:], face, shown)
                for key, shown in classes.items()
                if key in {one.key for one in page.counted} and is_open(shown) != (key in opened)
            ]
    assert not offenders, (len(offenders), offenders[:5])


def test_sums_by_class_do_not_count_open_ones_as_sure(published: list[AnalyzedReport]) -> None:
    """The time of a class counts launches with both sides measured; the rest is shown separately."""
    offenders = []
    for report, page in _with_open_ones(published):
        sure_ns, open_ns = Counter[str](), Counter[str]()
        for launch in page.counted:
            side = open_ns if launch.analysis.verdict.or_bound else sure_ns
            side[launch.analysis.verdict.bound] += launch.duration_ns or 0.0
        for shown, time_ns in class_times_ns(page.counted).items():
            wanted_ns = (open_ns if is_open(shown) else sure_ns)[bound_of(shown)]
            if time_ns != pytest.approx(wanted_ns):
                offenders.append((report.run.source[-40:], shown, time_ns, wanted_ns))
        texts = {
            "list": str(what_first(page)),
            "Markdown": to_markdown(overview(page, "file")),
            "digest": digest((report,)),
        }
        for part in segments(page.counted) if sum(class_times_ns(page.counted).values()) else ():
            for face, text in texts.items():
                is_one = face != "Markdown" and len(segments(page.counted)) < 2
                if is_open(part.bound) and not is_one and f"{bound_of(part.bound)}-bound?" not in words_of(text):
                    offenders.append((report.run.source[-40:], face, part.bound))
    assert not offenders, (len(offenders), offenders[:5])


def test_the_page_draws_an_open_class_hollow(published: list[AnalyzedReport]) -> None:
    """Its symbol is hollow in ranking and card, and its time span in the table is styled accordingly."""
    offenders = []
    for report, page in _with_open_ones(published):
        html = str(what_first(page)) + str(kernels(page))
        for group in page.kernels:
            shown = group.analysis.verdict.shown_class
            sign = str(write_words(Span("", shown))).removeprefix('<span class="nowrap">').removesuffix("</span>")
            if is_open(shown) and ("hollow" not in sign or sign not in html):
                offenders.append((report.run.source[-40:], shown))
        cells = [cell for table in kernels_document(page.kernels) for line in table.rows for cell in line]
        styles = {span.style for cell in cells for span in spans(cell)}
        wanted = {group.analysis.verdict.shown_class for group in page.kernels}
        offenders += [(report.run.source[-40:], "table", shown) for shown in wanted - styles]
    assert not offenders, (len(offenders), offenders[:5])


_OF_MEMORY = re.compile(r"dram|fbpa|lts|l1tex|\bl1|\bl2|sol_memory|sol_sm_memory|memory|smem|tex|global|local")
_FULL = 0.8
"""A unit that is as full limits a kernel whatever else does."""


def _has_few_blocks(kernel: Kernel) -> bool:
    """Return whether SMs have no block, so that no unit of memory can be full for want of being measured."""
    return (kernel.grid_blocks or 0) < kernel.counters.get("sm_count", 0.0)


_OF_WAITS = frozenset({"occupancy", "inflight", "barrier", "balance"})
"""Kinds of moves that end waiting: what a unit does in vain costs what it costs, whatever else was measured."""


def test_a_kernel_that_loses_its_memory_counters_is_open(kernels: list[Kernel]) -> None:
    """Without memory counters only the class of a full pipe is certain, and no gain of a wait is known."""
    offenders, seen = [], 0
    for kernel in kernels:
        if kernel.failed:
            continue
        left = {
            name: value
            for name, value in kernel.counters.items()
            if not _OF_MEMORY.search(f"{name} {kernel.counter_sources.get(name, '')}")
        }
        judged = analyze(replace(kernel, counters=left, code_totals={}, rules=(), series=None))
        verdict = judged.verdict
        is_full = verdict.bottleneck is not None and verdict.bottleneck.share >= _FULL
        if verdict.bound == "unknown" or (verdict.bound == "compute" and is_full) or _has_few_blocks(kernel):
            continue
        seen += 1
        waits = verdict.bound == "latency"
        gains = [move.gain for move in verdict.moves if waits and move.gain and move.kind in _OF_WAITS]
        if "memory" not in verdict.or_bound or verdict.confidence != "low" or gains:
            offenders.append((kernel.function_name[:40], verdict_sentence(judged)[:160]))
    assert not offenders, (len(offenders), offenders[:6])
    assert seen
