"""What printed summaries have beside kernels: copies, calls and ranges of the host, and the other view of a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from rooflens.format import count, cut_middle, duration
from rooflens.model.program.program import Program
from rooflens.model.program.totals import TOTALS_OF, Total, TotalOf
from rooflens.report.document import Block, Heading, Words, bullets, code, few

_LONGEST = 120
"""Characters of a name: a text may hold any."""

_NAMED = 3

_TOTAL_NAMES: Mapping[TotalOf, str] = MappingProxyType(
    {
        "kernel": "kernels, within the time above",
        "operator": "operators, within the time above",
        "copy": "copies and memsets",
        "call": "calls of the host",
        "range": "ranges, by the host's time",
    }
)


def beside_kernels(programs: Sequence[Program]) -> Iterator[Block]:
    """Say what was added up beside the kernels of summaries, most time first."""
    totals: defaultdict[TotalOf, list[Total]] = defaultdict(list)
    for program in programs:
        for one in program.totals:
            totals[one.of].append(one)
    if not totals:
        return
    lines: list[Words] = []
    for of in TOTALS_OF:
        if of in totals:
            each: list[Words] = [
                (code(cut_middle(one.name, _LONGEST)), f" ({duration(one.time_ns)}, {count(one.count, 'time')})")
                for one in sorted(totals[of], key=lambda one: -one.time_ns)
            ]
            lines.append((f"{_TOTAL_NAMES[of]}: ", *few(each, _NAMED)))
    yield Heading("Beside the kernels", 3)
    yield bullets(lines)
