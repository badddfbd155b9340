"""Writes the pages of the findings, verdicts and flags, each with a kernel of the published reports that has it."""

from __future__ import annotations

import inspect
import re
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from support.reference.texts import MADE

from rooflens.analyzing import analyze_paths
from rooflens.format import cut_name, factor, plain_name, sentence_case
from rooflens.model.about.pages import KINDS, every_page
from rooflens.model.findings.table import RULES
from rooflens.model.verdict.flags import FLAGS
from rooflens.model.verdict.sentences import without_move
from rooflens.report.about import WIDTH, about_page, wrapped
from rooflens.report.labels import evidence_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rooflens.model.about.pages import About, Kind
    from rooflens.model.records import Analysis, Finding

PUBLISHED = Path(__file__).parents[3] / "fixtures" / "published"
MOST_WORDS = 300
"""A page is one idea: it has fewer words."""

_HEADS: dict[Kind, str] = {
    "verdicts": """\
# Verdicts

For anyone who reads "memory-bound" on a card and wants to know what that is worth.

A verdict says which wall a kernel hits: the first of these that fits. [Findings](../findings/index.md) say why.
""",
    "findings": """\
# Findings

For anyone who wants to know what a finding says, and what it does not.

A [verdict](../verdicts/index.md) says which wall a kernel hits; a finding says why, where, and what to do. Each has a
severity: `limiter` (it is what bounds the kernel), `contributes` (it costs time as well), `note` (true, but not what
costs time). The speed-up given is for this waste alone; those of several findings do not add up. "Needs" has the names
that `rooflens metrics --findings` lists with the tier that collects them; one of the groups is enough. `rooflens
metrics --report PATH` lists what a report cannot tell, and `rooflens about NAME` prints a page of these offline.
""",
    "flags": """\
# Flags

For anyone who sees a caveat beside a number and wants to know how far it can be trusted.

A flag is a trap that applies to a kernel. Some make the verdict another; the others say how numbers were made.
""",
}
_SEVERITIES = ("note", "contributes", "limiter")


def pages() -> dict[str, Callable[[], str]]:
    """Return what writes each page, by its file below docs/reference."""
    return {
        **{f"{kind}/index.md": partial(_index, kind) for kind in KINDS},
        **{f"{address}.md": partial(_page, page) for address, page in every_page().items()},
    }


def _index(kind: Kind) -> str:
    lines = [_HEADS[kind], MADE]
    for heading, listed in _groups(kind):
        lines += [f"\n## {heading}\n", *(f"- [`{page.name}`]({page.name}.md): {page.title}" for page in listed)]
    return "\n".join(lines) + "\n"


def _groups(kind: Kind) -> Iterator[tuple[str, list[About]]]:
    known = {page.name: page for page in every_page().values() if page.kind == kind}
    if kind == "verdicts":
        yield "In this order", [known[name] for name in dict.fromkeys(("unknown", "overhead", "balanced", *known))]
    elif kind == "flags":
        changing = [page for page in known.values() if FLAGS[page.name].changes_verdict]
        yield "These change the verdict", changing
        yield "These are information", [page for page in known.values() if page not in changing]
    else:
        for module, rules in groupby(RULES, key=lambda rule: inspect.getmodule(rule.find)):
            yield _subject(inspect.getdoc(module) or ""), [known.pop(rule.id) for rule in rules]
        yield "NVIDIA's rules", list(known.values())


def _subject(doc: str) -> str:
    """Turn a module's `Findings about launches: ...` into a heading."""
    words = " ".join(doc.split()).removeprefix("Findings about ").partition(":")[0].partition(".")[0]
    return sentence_case(words)


def _page(page: About) -> str:
    title, _, rest = about_page(page, link=partial(_linked, page)).partition("\n\n")
    reader, _, rest = rest.partition("\n\n")
    return "\n\n".join((title, reader, MADE, rest + "\n## An example", "\n".join(_example(page)))) + "\n"


def _linked(page: About, text: str) -> str:
    """Let names of other pages lead to them."""

    def link(match: re.Match[str]) -> str:
        name = match[1]
        kind = next((kind for kind in ("findings", "flags") if f"{kind}/{name}" in every_page()), None)
        if kind is None or f"{kind}/{name}" == page.address:
            return match[0]
        return f"[`{name}`]({'' if kind == page.kind else f'../{kind}/'}{name}.md)"

    return re.sub(r"`(\w+)`", link, text)


def _example(page: About) -> list[str]:
    found = max(_having(page), key=lambda one: one[0], default=None)
    if found is None:
        return [f"No kernel of the published reports has this {KINDS[page.kind]}."]
    _, analysis, finding = found
    kernel = analysis.kernel
    report = Path(kernel.source).name
    name = cut_name(plain_name(kernel.function_name or kernel.name), 40)
    where = f"`{name}` of [{Path(report).stem}](../../../fixtures/published/{report}), on {kernel.gpu}"
    if finding is None:
        return [*wrapped(f"{where}:", WIDTH), "", *_quoted(without_move(analysis.verdict))]
    gain = f", up to {factor(finding.speedup_up_to)}" if finding.speedup_up_to else ""
    numbers = "; ".join(evidence_words(one) for one in finding.evidence)
    return [
        *wrapped(f"{where} (`{finding.severity}`{gain}):", WIDTH),
        "",
        *_quoted(f"{sentence_case(finding.move)}."),
        ">",
        *_quoted(f"{sentence_case(numbers)}."),
    ]


def _quoted(text: str) -> list[str]:
    return [f"> {line}" for line in wrapped(text, WIDTH - 2)]


def _having(page: About) -> Iterator[tuple[tuple[float, ...], Analysis, Finding | None]]:
    """Give the kernels that have what a page is about, and how well each shows it."""
    for analysis in _published():
        time_ns = analysis.gpu_time_ns or 0.0
        if page.kind == "findings":
            for one in analysis.findings:
                if one.id == page.name:
                    yield (_SEVERITIES.index(one.severity), one.speedup_up_to or 0.0, time_ns), analysis, one
        elif page.name in ((analysis.verdict.bound,) if page.kind == "verdicts" else analysis.flags):
            yield (-len(analysis.flags), time_ns), analysis, None


@cache
def _published() -> tuple[Analysis, ...]:
    """Analyze the published reports, in one thread: they are few and small."""
    found = analyze_paths([str(path) for path in sorted(PUBLISHED.glob("*.ncu-rep"))])
    return tuple(analysis for report in found.reports for analysis in report.analyses)
