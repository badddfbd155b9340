"""Every form of every report names a unit with the unit's own per cent, and uses a per cent for one thing only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.kernels import placed

from rooflens.errors import InputError
from rooflens.ingest.reports.read import ReadOptions, read_report
from rooflens.model.analyze import analyze
from rooflens.model.records import Analysis, AnalyzedReport, Bottleneck, Level, Pipe
from rooflens.model.roofline.unit_names import resource_label
from rooflens.model.verdict.bottleneck import compute_bottleneck, memory_bottleneck
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import build_content
from rooflens.report.kernel.document import explain
from rooflens.report.overview.document import OverviewRequest, overview
from rooflens.report.text.digest import digest
from rooflens.report.words.verdict import evidence_lines, verdict_sentence
from rooflens.report.writers.markdown import to_markdown
from rooflens.report.writers.terminal import to_terminal

pytestmark = pytest.mark.corpus

_ROUNDED = 0.005
_RELATIVE = 0.02
"""Shares of the run made from printed shares of active cycles, clocks and cycles."""
_KERNELS_OF_A_FILE = 8
_PER_CENT = r"(?P<share>\d+(?:\.\d+)?) %"
_RATES = re.compile(
    r"(?P<done>\d[\d.]*)(?: (?P<done_unit>[kMGTP]?)[A-Za-z]+/s)? of "
    rf"(?P<peak>\d[\d.]*) (?P<peak_unit>[kMGTP]?)[A-Za-z]+/s \({_PER_CENT}\)"
)
"""`8.85 TB/s of 12.4 TB/s (71 %)`: the per cent is that of the two rates."""
_SAID = r" (?:is full, |is only |is )?(?:its (?P<stage>[\w ]+?) stage (?:is )?|at least )?"
"""What may stand between a unit and its own per cent; a stage's says that it is the stage's."""
_BARS = re.compile(r"(?:Memory levels|Pipes), share of peak(.*?)(?:Useful part|Opcode mix|, share of|$)", re.DOTALL)
_LOOPS = re.compile(r"(?:## )?Loops\n.*?(?=\n(?:## )?Where\n|\Z)", re.DOTALL)
"""The table of loops, whose shares are of the time in each."""
_HITS = re.compile(r"hit rates: [^;.\n]*(?:\.\d[^;.\n]*)*")
"""`sector hit rates: L1 88 %, L2 0.4 %`: of look-ups, and says so."""
_MIX = re.compile(r"by kind: [^.\n]*(?:\.\d[^.\n]*)*")
"""`by kind: integer 57 %, FP32 8.5 %`: of instructions, and says so."""
_ON_PAGES = {"DRAM": "dram", "shared memory": "smem"}
_MARKUP = re.compile(r"<(script|style)\b.*?</\1>|<[^>]+>", re.DOTALL)


def both_sides(analysis: Analysis) -> list[Bottleneck]:
    """Find the busiest memory level and the busiest pipe, as far as they are known."""
    facts = placed(analysis.kernel, analysis.levels, analysis.pipes)
    return [side for side in (memory_bottleneck(facts), compute_bottleneck(facts)) if side is not None]


def misnamed(analysis: Analysis) -> Iterator[str]:
    """Return the unit that is named with a per cent other than its own, or without having one."""
    for side in both_sides(analysis):
        name = side.unit or side.resource
        if name is None:
            continue
        own = _own(analysis, name)
        if own is None and name in {"dram", "issue", "tensor_pipe"}:  # lower bounds, by bytes or by what was counted
            continue
        if own is None and _is_nvidia_s(analysis, name, side.share):
            continue
        if own is None or abs(side.share - own) > _ROUNDED + _RELATIVE * own:
            yield f"{analysis.kernel.source} {analysis.kernel.index}: {name} {side.share:.3f}, its own {own}"


def _is_nvidia_s(analysis: Analysis, name: str, share: float) -> bool:
    """Return whether a rule of NVIDIA's calls that pipe the busiest, and the share is NVIDIA's of the compute side."""
    kernel = analysis.kernel
    pipe = resource_label(name, kernel.gpu).removesuffix(" pipe")
    is_named = any(f"{pipe} is the highest-utilized pipeline" in rule.message for rule in kernel.rules)
    return is_named and any(kernel.counters.get(of) == share for of in ("sol_compute", "sol_instructions_share"))


def _own(analysis: Analysis, name: str, stage: str | None = None) -> float | None:
    place: Level | Pipe | None = analysis.levels.get(name) or analysis.pipes.get(name)
    if stage is not None and isinstance(place, Level):
        own = place.stages.get(stage.lower().replace(" ", "_"))
        # Of L2 as a whole NVIDIA's per cent counts what its per cent of memory leaves out.
        return own if own is None or place.share is None else min(own, place.share)
    return place.share if place else None


def faces(one: AnalyzedReport, analysis: Analysis) -> Iterator[tuple[str, str]]:
    """Yield every text about a kernel, by name of its output."""
    verdict, content = analysis.verdict, build_content([one], "report", default_thresholds())
    yield "explain", explain(one, analysis)
    yield "digest", digest([one])
    yield "table", to_terminal(overview(content, "terminal", OverviewRequest(place=("x",))), 200)
    yield "Markdown", to_markdown(overview(content, "file"))
    sentences = (verdict_sentence(analysis), *evidence_lines(analysis), *verdict.advice, verdict.cause or "")
    yield "JSON", "\n".join((*sentences, *(text for found in analysis.findings for text in (found.title, found.move))))


def _claims(text: str, analysis: Analysis) -> Iterator[tuple[str, str, str | None, float, float]]:
    """Yield each per cent that a text gives a unit: the words, unit and stage, share, and half of its last digit."""
    labels = {resource_label(name, analysis.kernel.gpu): name for name in (*analysis.levels, *analysis.pipes)}
    labels |= _ON_PAGES
    words = "|".join(map(re.escape, sorted(labels, key=len, reverse=True)))
    for claim in re.finditer(rf"(?<![\w-])(?P<unit>{words}){_SAID}{_PER_CENT}", text):
        digits = len(claim["share"].partition(".")[2])
        yield claim[0], labels[claim["unit"]], claim["stage"], float(claim["share"]) / 100, 0.0051 / 10**digits


def contradictions(text: str, analysis: Analysis) -> Iterator[str]:
    """Yield statements about units that differ from their own per cent or from the quotient of the two rates before."""
    plain = _LOOPS.sub("", _MIX.sub("", _HITS.sub("", text.replace("\u00a0", " "))))
    bounds: dict[str, Bottleneck] = {side.unit or side.resource or "": side for side in both_sides(analysis)}
    for words, name, stage, share, rounding in _claims(plain, analysis):
        own = _own(analysis, name, stage)
        if own is None and name in bounds:  # a lower bound, the same in all outputs
            own = bounds[name].share
        if own is None or abs(share - own) > rounding:
            yield f"{words!r}, its own {own}"
    for rates in _RATES.finditer(plain):
        unit = rates["peak_unit"] if rates["done_unit"] is None else rates["done_unit"]
        part = float(rates["done"]) * _scale(unit) / (float(rates["peak"]) * _scale(rates["peak_unit"]))
        if abs(part - float(rates["share"]) / 100) > 0.016:
            yield f"{rates[0]!r}, which are {part:.3f}"


def _scale(prefix: str) -> float:
    return 1000.0 ** ("", "k", "M", "G", "T", "P").index(prefix)


def _files(corpus: Path) -> list[Path]:
    """List the reports, exports and texts of the corpus, and of cases and outcomes if present."""
    shared = corpus.parent
    kinds = (
        "corpus/*.*",
        "cases/*.ncu-rep",
        "outcomes/reports/**/*.*",
        "outcomes/texts/*",
        "outcomes/printed/**/*.txt",
    )
    return [path for kind in kinds for path in sorted(shared.glob(kind)) if path.suffix != ".tsv"]


@pytest.fixture(scope="module")
def every(corpus: Path) -> list[tuple[AnalyzedReport, Analysis]]:
    """Analyze a few kernels of every file, each as a report of its own."""
    found = []
    for path in _files(corpus):
        try:
            report = read_report(path, path.name, ReadOptions())
        except InputError:  # a text with no share of a peak
            continue
        kinds = {(kernel.name, kernel.grid): kernel for kernel in reversed(report.kernels) if not kernel.failed}
        for kernel in list(kinds.values())[-_KERNELS_OF_A_FILE:]:
            analysis = analyze(kernel)
            found.append((AnalyzedReport(report.run, (analysis,)), analysis))
    return found


def test_no_unit_has_another_units_per_cent(every: list[tuple[AnalyzedReport, Analysis]]) -> None:
    """Holds for the busiest unit of each side, by the model's own records."""
    assert len(every) > 50
    assert [said for _, analysis in every for said in misnamed(analysis)] == []


def test_no_two_per_cents_stand_for_one_thing(every: list[tuple[AnalyzedReport, Analysis]]) -> None:
    """In all texts about a kernel, a unit, a stage and two rates have one per cent each."""
    wrong, compared = [], 0
    for one, analysis in every:
        for face, text in faces(one, analysis):
            compared += sum(1 for _ in _claims(text.replace("\u00a0", " "), analysis))
            where = f"{analysis.kernel.source} {analysis.kernel.index} {face}"
            wrong += [f"{where}: {said}" for said in contradictions(text, analysis)]
    assert compared > 500
    assert wrong == []
