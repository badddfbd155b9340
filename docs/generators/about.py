"""Write the pages of findings, verdicts, flags and stall reasons, each with a published kernel that has it."""

from __future__ import annotations

import inspect
import re
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from generators.texts import MADE, table
from rooflens.analyzing import analyze_paths
from rooflens.format import cut_name, percent, plain_name, sentence_case, significant
from rooflens.model.about import everything
from rooflens.model.counters.balance import SAMPLED_AS
from rooflens.model.findings.find import RULES
from rooflens.model.hotspots import STALL, hottest
from rooflens.model.knowledge.items import KINDS, find_item
from rooflens.report.about import WIDTH, about_page, wrapped
from rooflens.report.words.gain_and_limit import gain_words
from rooflens.report.words.labels import evidence_words
from rooflens.report.words.verdict import verdict_head

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rooflens.model.about import About
    from rooflens.model.knowledge.items import Kind
    from rooflens.model.records import Analysis, Finding, Kernel

PUBLISHED = Path(__file__).parents[2] / "fixtures" / "published"
MOST_WORDS = 300
"""A page is one idea: it has fewer words."""

_HEADS: dict[Kind, str] = {
    "verdicts": """\
# Verdicts

A verdict says what limits a kernel: the first of these that fits. [Findings](../findings/index.md) say why.
""",
    "findings": """\
# Findings

A [verdict](../verdicts/index.md) says what limits a kernel; a finding says why, where, and what to do. Each has a
severity: `limiter` (it is what bounds the kernel), `contributes` (it costs time as well), `note` (true, but not what
costs time). The speed-up given is for this waste alone; those of several findings do not add up. "Needs" has the names
that `rooflens metrics --findings` lists with the tier that collects them; one of the groups is enough. `rooflens
metrics --report PATH` lists what a report cannot tell, and `rooflens about NAME` prints a page of these offline.
""",
    "flags": """\
# Flags

A flag is a trap that applies to a kernel. Some make the verdict another; the others say how numbers were made.
""",
    "stalls": """\
# Stall reasons

A warp that does not issue in a cycle has a reason, and ncu reports the reasons in two ways: **counted**, as cycles
between two instructions of a warp, and **sampled**, as the state of a warp at regular moments, with the instruction it
was at. The counts are exact but have no place in the code; the samples have the place but are a sample. rooflens takes
the counts where a report has both.

## How to read them

1. **A stall costs time only where an issue slot stays empty.** A scheduler issues at most once per cycle, from any warp
   that is ready. While one warp issues, it does not matter that fifteen wait. So look at the issue slots first: at 90 %
   busy, no stall matters, however large its share.
2. **A full unit comes before any stall.** When memory is full, all loads wait. The limiter gives the
   [verdict](../verdicts/index.md); the stall only says where warps feel it.
3. **Read cycles, not per cent.** The shares add up to one, so some reason leads in every kernel. In a good matrix
   product `wait` has a third of the warp's time, and that is two cycles.
4. **Samples fall on the instruction that waits**, not on the one it waits for: the first use of the value, the line
   after the barrier, the load that finds no room in the queue.
5. **ncu has two columns of samples per instruction**: all of them, and those in cycles in which the scheduler issued
   nothing (`_not_issued`). Where the two differ much, other warps hid the wait.
6. **The sum should hold.** All reasons and `selected` add up to the cycles between two instructions. Where the sum is
   more than a tenth off, the profiler's passes saw different runs, as happens with short kernels.

[Why is my kernel latency-bound?](../../tutorials/latency-bound.md) works out how many warps hide how long a wait.
[Samples and stall ratios](../counters/execution.md#samples-and-stall-ratios) explains what a sample and a counted cycle
are. Where one reason takes much of a warp's time, rooflens makes a [finding](../findings/index.md) `stall_REASON`,
which is on the reason's page. `rooflens about REASON` prints it offline.
""",
}
_STALL_GROUPS = {
    "Waiting for data": ("long_scoreboard", "short_scoreboard", "imc_miss"),
    "Waiting for room in a queue": ("lg_throttle", "mio_throttle", "tex_throttle", "math_pipe_throttle"),
    "Waiting for other warps, or for writes": ("barrier", "gmma", "warpgroup_arrive", "membar", "drain", "sleeping"),
    "Waiting for the instruction itself": ("wait", "no_instruction", "branch_resolving", "dispatch_stall", "misc"),
    "Not waiting": ("not_selected", "selected"),
}
_SEVERITIES = ("note", "contributes", "limiter")


def pages() -> dict[str, Callable[[], str]]:
    """Return the writer of each page, by its file below docs/reference."""
    return {
        **{f"{kind}/index.md": partial(_index, kind) for kind in KINDS},
        **{f"{page_of(address)}.md": partial(_page, page) for address, page in everything().items() if _has_page(page)},
    }


def page_of(address: str) -> str:
    """Return the page of an item: a stall reason and its finding share one, as do a finding and its flag."""
    kind, _, name = address.partition("/")
    shared = {"findings": f"stalls/{name.removeprefix(STALL)}", "flags": f"findings/{name}"}.get(kind)
    return shared if shared in everything() else address


def _has_page(page: About) -> bool:
    return page_of(page.address) == page.address


def _index(kind: Kind) -> str:
    lines = [_HEADS[kind], MADE]
    for heading, listed in _groups(kind):
        lines += [f"\n## {heading}\n", *(f"- [`{page.name}`]({_address(kind, page)}): {page.title}" for page in listed)]
    if kind == "stalls":
        lines += ["", *_usual()]
    return "\n".join(lines) + "\n"


def _usual() -> list[str]:
    """Show the usual size of each reason in the published launches that count stalls."""
    launches = [one.kernel for one in _published() if one.kernel.counters.get("warp_latency_cycles")]
    rows, small = [], []
    for name in (page.name for page in everything().values() if page.kind == "stalls"):
        having = [(found, one) for one in launches if (found := _waited(one, name)) is not None]
        shares = [cycles / between for (cycles, between), _ in having]
        if max(shares, default=0.0) < _SMALL:
            small.append(f"[`{name}`]({name}.md)")
            continue
        _, most = having[shares.index(max(shares))]
        cells = (median(cycles for (cycles, _), _ in having), percent(median(shares)), percent(max(shares)))
        where = f"`{cut_name(plain_name(most.function_name or most.name), 32)}`"
        rows.append((-median(shares), (f"[`{name}`]({name}.md)", significant(cells[0]), *cells[1:], where)))
    return [
        "## How large they usually are",
        "",
        f"A reason's part of a warp's time in {len(launches)} launches of published reports:",
        "",
        *table(
            ("reason", "cycles, median", "share, median", "share, highest", "where"), [row for _, row in sorted(rows)]
        ),
        "",
        *wrapped(f"Below {percent(_SMALL)} in all of them, or not counted: {', '.join(small)}.", WIDTH),
    ]


_SMALL = 0.005
"""A part of a warp's time that is not worth a name."""


def _waited(kernel: Kernel, reason: str) -> tuple[float, float] | None:
    """Return the cycles of a reason, and all between two instructions of a warp; None if one was not counted."""
    cycles = 1.0 if reason == "selected" else kernel.counters.get(f"{STALL}{reason}_cycles")
    between = kernel.counters.get("warp_latency_cycles")
    return (cycles, between) if cycles is not None and between else None


def _groups(kind: Kind) -> Iterator[tuple[str, list[About]]]:
    known = {page.name: page for page in everything().values() if page.kind == kind}
    if kind == "verdicts":
        yield "In this order", [known[name] for name in dict.fromkeys(("unknown", "overhead", "balanced", *known))]
    elif kind == "flags":
        changing = [page for page in known.values() if _is_changing(page)]
        yield "These change the verdict", changing
        yield "These are information", [page for page in known.values() if page not in changing]
    elif kind == "stalls":
        yield from ((head, [known.pop(name) for name in names]) for head, names in _STALL_GROUPS.items())
        assert not known, "in no group"
    else:
        for module in dict.fromkeys(inspect.getmodule(rule.find) for rule in RULES):
            own = [rule.id for rule in RULES if inspect.getmodule(rule.find) is module]
            yield _subject(inspect.getdoc(module) or ""), [known.pop(name) for name in own]
        yield "NVIDIA's rules", list(known.values())


def _is_changing(page: About) -> bool:
    item = find_item("flags", page.name)
    return item is not None and item.changes_verdict


def _subject(doc: str) -> str:
    """Turn a module's `Findings about launches: ...` into a heading."""
    words = " ".join(doc.split()).removeprefix("Findings about ").partition(":")[0].partition(".")[0]
    return sentence_case(words)


def _page(page: About) -> str:
    title, _, rest = about_page(page, link=partial(_linked, page)).partition("\n\n")
    opening, _, rest = rest.partition("\n\n")
    text = "\n\n".join((title, opening, MADE, rest + "\n## An example", "\n".join(_example(page)))) + "\n"
    others = [other for other in everything().values() if other != page and page_of(other.address) == page.address]
    return "".join((text, *map(_as_another, others)))


def _as_another(page: About) -> str:
    """Write an item as a section of the page that it shares."""
    _, _, rest = about_page(page, link=partial(_linked, page)).partition("\n\n")
    text = rest.replace("\n## ", "\n### ")
    heading = f"\n## As a {KINDS[page.kind]}"
    return "\n\n".join((heading, text + "\n### Where it is found", "\n".join(_example(page)))) + "\n"


def _address(start: str, page: About) -> str:
    """Return the address of an item's page, relative to a folder."""
    folder, _, name = page_of(page.address).partition("/")
    return f"{name}.md" if folder == start else f"../{folder}/{name}.md"


def _linked(page: About, text: str) -> str:
    """Turn names of other pages into links."""

    def link(match: re.Match[str]) -> str:
        name = match[1]
        kind = next((kind for kind in ("findings", "flags", "stalls") if f"{kind}/{name}" in everything()), None)
        if name == page.name or kind is None or page_of(f"{kind}/{name}") == page_of(page.address):
            return match[0]
        folder = page_of(page.address).partition("/")[0]
        return f"[`{name}`]({_address(folder, everything()[f'{kind}/{name}'])})"

    return re.sub(r"`(\w+)`", link, text)


def _example(page: About) -> list[str]:
    found = max(_having(page), key=lambda one: one[0], default=None)
    if found is None:
        return [f"No kernel of the published reports has this {KINDS[page.kind]}."]
    (share, *_), analysis, finding = found
    kernel = analysis.kernel
    report = Path(kernel.source).name
    name = cut_name(plain_name(kernel.function_name or kernel.name), 40)
    where = f"`{name}` of [{Path(report).stem}](../../../fixtures/published/{report}), on {kernel.gpu}"
    if page.kind == "stalls":
        return [
            *wrapped(f"{where}: {_wait_words(kernel, page.name, share)}", WIDTH),
            "",
            *_quoted(verdict_head(analysis)),
        ]
    if finding is None:
        return [*wrapped(f"{where}:", WIDTH), "", *_quoted(verdict_head(analysis))]
    gain = f", {gain_words(finding.gain)}" if finding.gain else ""
    numbers = "; ".join(evidence_words(one) for one in finding.evidence)
    return [
        *wrapped(f"{where} (`{finding.severity}`{gain}):", WIDTH),
        "",
        *_quoted(f"{sentence_case(finding.move)}."),
        ">",
        *_quoted(f"{sentence_case(numbers)}."),
    ]


def _wait_words(kernel: Kernel, reason: str, share: float) -> str:
    cycles, between = (f"{number:.3g}" for number in _waited(kernel, reason) or ())
    issued = kernel.counters.get("issue_active_per_cycle")
    text = f"{percent(share)} of a warp's time, {cycles} of {between} cycles between two instructions"
    text += f", and an instruction in {percent(issued)} of the cycles." if issued is not None else "."
    (top,) = hottest(kernel.hotspots, f"{STALL}{SAMPLED_AS.get(reason, reason)}", 1, "sass") or (None,)
    if top is not None and top.sass:
        text += f" Most of its samples stand at `{top.sass}`."
    return text


def _quoted(text: str) -> list[str]:
    return [f"> {line}" for line in wrapped(text, WIDTH - 2)]


def _having(page: About) -> Iterator[tuple[tuple[float, ...], Analysis, Finding | None]]:
    """Yield the kernels that have the subject of a page, and how well each shows it."""
    for analysis in _published():
        time_ns = analysis.gpu_time_ns or 0.0
        if page.kind == "findings":
            for one in analysis.findings:
                if one.id == page.name:
                    yield (
                        (_SEVERITIES.index(one.severity), one.gain.factor if one.gain else 0.0, time_ns),
                        analysis,
                        one,
                    )
        elif page.kind == "stalls":
            cycles, between = _waited(analysis.kernel, page.name) or (0.0, 1.0)
            if cycles / between >= _SMALL:
                yield (cycles / between, time_ns), analysis, None
        elif page.name in ((analysis.verdict.bound,) if page.kind == "verdicts" else analysis.flags):
            yield (-len(analysis.flags), time_ns), analysis, None


@cache
def _published() -> tuple[Analysis, ...]:
    """Analyze the published reports, in one thread as they are few and small."""
    found = analyze_paths([str(path) for path in sorted(PUBLISHED.glob("*.ncu-rep"))])
    return tuple(analysis for report in found.reports for analysis in report.analyses)
