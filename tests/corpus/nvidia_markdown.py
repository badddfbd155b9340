"""Write the results of `nvidia_findings.py` into the part of `docs/explanation/accuracy.md` about findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import finding_goals as goals
from nvidia_findings import (
    LIMITER,
    Judged,
    expected,
    findings_of,
    part,
    says_collect,
    says_number,
    silent,
    timed,
)
from nvidia_markers import marked
from nvidia_ranks import first_ranks

from rooflens.report.document import Column, Table
from rooflens.report.writers.markdown import to_markdown

DOC = Path(__file__).parents[2] / "docs" / "explanation" / "accuracy.md"
BEGIN = "<!-- Written by tests/corpus/nvidia_findings.py --write. -->"
END = "<!-- Up to here. -->"


def write(by_report: Sequence[tuple]) -> None:
    """Replace the tables in the document."""
    text = DOC.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    DOC.write_text(f"{before}{BEGIN}\n\n{markdown(by_report)}\n\n{END}{after}", encoding="utf-8")


def markdown(by_report: Sequence[tuple]) -> str:
    """Write both tables: how often each finding agrees with NVIDIA's rules, and the figures with their goals."""
    judged = [one for _, kernels in by_report for one in kernels]
    failed = len(judged) - len(timed(judged))
    head = f"Reports: {len(by_report)}; kernels: {len(judged)}, {failed} of which failed while they were profiled."
    return "\n\n".join((head, _topics(judged), _figures(by_report, judged)))


def _topics(judged: Sequence[Judged]) -> str:
    hits, quiet = list(expected(judged)), list(silent(judged))
    ours = [finding for one in judged for finding in findings_of(one.analysis)]
    count, limiters = Counter(f.id for f in ours), Counter(f.id for f in ours if f.severity == LIMITER)
    asked, found = Counter(e.topic for e in hits), Counter(e.topic for e in hits if e.severity is not None)
    mute, false = Counter(case.topic for case in quiet), Counter(case.topic for case in quiet if case.false)
    topics = sorted(asked.keys() | mute.keys() | count.keys())
    rows = [
        (f"`{topic}`", *(f"{number[topic]:,}" for number in (asked, found, mute, false, count, limiters)))
        for topic in topics
    ]
    rows.append(("all", *(f"{number.total():,}" for number in (asked, found, mute, false, count, limiters))))
    headings = ("NVIDIA >= 20 %", "found", "NVIDIA sees nothing", "our limiter there", "ours", "limiters")
    return _markdown(("finding", *headings), rows, headings)


def _figures(by_report: Sequence[tuple], judged: Sequence[Judged]) -> str:
    rows = [(what, f"{value:.1%}", f"{sign} {goal:.0%}") for what, value, sign, goal in _goals(by_report, judged)]
    return _markdown(("figure", "value", "goal"), rows, ("value", "goal"))


def _goals(by_report: Sequence[tuple], judged: Sequence[Judged]) -> Iterator[tuple[str, float, str, float]]:
    known, ranks = timed(judged), first_ranks(by_report)
    places = [place for one in judged for place in marked(one.nvidia, one.analysis.kernel)]
    unknown = part(one.analysis.verdict.bound == "unknown" for one in known)
    low = part((rank.time_share or 0.0) < goals.FIRST_RANK_TIME for rank in ranks)
    yield (
        "NVIDIA's results that have our finding",
        part(e.severity is not None for e in expected(judged)),
        ">=",
        goals.RECALL,
    )
    yield "our limiters where NVIDIA sees nothing", part(c.false for c in silent(judged)), "<=", goals.FALSE_LIMITERS
    yield (
        "first moves that hold a number of the kernel",
        part(says_number(one.analysis) for one in known),
        ">=",
        goals.MOVES_WITH_EVIDENCE,
    )
    yield (
        "first moves that ask for more counters",
        part(says_collect(one.analysis) for one in known),
        "<=",
        goals.COLLECT_FIRST,
    )
    yield "kernels whose bound is unknown", unknown, "<=", goals.UNKNOWN
    yield f"reports whose first rank has under a tenth of the time (of {len(ranks)})", low, "<=", goals.RANK_EXCEPTIONS
    yield (
        f"lines that NVIDIA marks among our top three (of {len(places)})",
        part(p.hit for p in places),
        ">=",
        goals.MARKED_PLACES,
    )


def _markdown(headings: Sequence[str], rows: Iterable[tuple[str, ...]], right: Sequence[str]) -> str:
    columns = tuple(Column(heading, right=heading in right) for heading in headings)
    return to_markdown((Table(columns, tuple(rows)),)).replace("&gt;", ">").replace("&lt;", "<")
