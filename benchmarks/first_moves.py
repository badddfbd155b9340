"""Compare first moves with what authors changed next, by program and by kind of input, as Markdown.

`first_moves.py OUTCOMES [FORM=FOLDER ...]` reads `siblings_all.tsv` of OUTCOMES (pairs of a slower and a faster kernel
for the same job), its `reports` and its `printed` texts; a FORM is a folder of other exports of the same reports, named
`REPORT.txt`. NVIDIA's first rule stands beside ours: that with the largest estimate, else the first with any advice.
"""

from __future__ import annotations

import csv
import statistics
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from rooflens.analyzing import analyze_paths
from rooflens.errors import RooflensError
from rooflens.model.findings.find import KIND_OF
from rooflens.model.findings.nvidia import covered_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rooflens.model.records import Analysis

    Row = Mapping[str, str]
    Kinds = Callable[[Analysis], Sequence[str]]

CLASSES: Mapping[str, set[str]] = {
    "shape": {"block"},
    "spill": {"local"},
    "fuse": {"bytes"},
    "precision": {"type", "fp64"},
    "instructions": {"instructions", "conversion"},
}
"""Kind of a move -> classes of the table of pairs that it names; any other names the class of its own word."""

NVIDIA_KINDS: Mapping[str, str] = {
    "MemoryCacheAccessPattern": "coalesce",
    "MemoryL2Compression": "precision",
    "HighPipeUtilization": "instructions",
    "TensorCoreUtilization": "tensor",
    "IssueSlotUtilization": "inflight",
    "SlowPipeLimiter": "instructions",
}
"""What NVIDIA's rules that no finding of ours covers would change; our answers only quote them."""


def moves_of(analysis: Analysis) -> list[str]:
    """Return the kinds of a kernel's moves in order."""
    return [move.kind for move in analysis.verdict.moves]


def rules_of(analysis: Analysis) -> list[str]:
    """Return the advice of NVIDIA's rules in our kinds: the highest estimate first, then in NVIDIA's order."""
    rules = sorted(analysis.kernel.rules, key=lambda rule: -(rule.speedup_pct or 0.0))
    kinds = (next((KIND_OF[one] for one in covered_by(rule)), NVIDIA_KINDS.get(rule.identifier)) for rule in rules)
    return [kind for kind in kinds if kind]


def hits(pairs: Iterable[tuple[Row, Analysis | None]], kinds: Kinds, most: int) -> dict[str, list[bool]]:
    """Return by program, for each pair, whether one of the first `most` kinds names the author's change."""
    found: defaultdict[str, list[bool]] = defaultdict(list)
    for row, analysis in pairs:
        wanted = set(row["classes"].split(","))
        told = kinds(analysis)[:most] if analysis else ()
        found[row["path"].partition("/")[0]].append(any(CLASSES.get(kind, {kind}) & wanted for kind in told))
    return found


@cache
def analyses(path: Path) -> dict[int, Analysis]:
    """Return the launches of a file by their index; none if it cannot be read."""
    try:
        found = analyze_paths([path])
    except RooflensError:
        return {}
    return {one.kernel.index: one for report in found.reports for one in report.analyses}


def pairs_of(rows: Iterable[Row], folder: Path, ending: str = "") -> list[tuple[Row, Analysis | None]]:
    """Return each pair whose file is in a folder, with the slower kernel's analysis."""
    paths = ((row, folder / (row["path"] + ending)) for row in rows)
    return [(row, analyses(path).get(int(row["index"]))) for row, path in paths if path.exists()]


def main(arguments: Sequence[str]) -> int:
    """Print one table of all forms and programs; return 0, or 2 without a table of pairs."""
    if not arguments or not (table := Path(arguments[0]) / "siblings_all.tsv").is_file():
        print(__doc__, file=sys.stderr)
        return 2
    outcomes = Path(arguments[0])
    rows = [row for row in csv.DictReader(table.open(encoding="utf-8"), delimiter="\t") if row["classes"]]
    known = outcomes / "siblings.tsv"
    early = {row["path"].partition("/")[0] for row in csv.DictReader(known.open(encoding="utf-8"), delimiter="\t")}
    forms = {"report": pairs_of(rows, outcomes / "reports")}
    for form in arguments[1:]:
        name, _, folder = form.partition("=")
        forms[name] = pairs_of(rows, Path(folder), ".txt")
    forms["text"] = pairs_of(rows, outcomes / "printed", ".txt")
    print(
        "| program | among the first 25 pairs | "
        + " | ".join(f"{form}: first, of three" for form in forms)
        + " | NVIDIA's first rule, report |"
    )
    print("|---|---|" + "---:|" * (len(forms) + 1))
    first = {form: hits(pairs, moves_of, 1) for form, pairs in forms.items()}
    three = {form: hits(pairs, moves_of, 3) for form, pairs in forms.items()}
    nvidias = hits(forms["report"], rules_of, 1)
    for program in first["report"]:
        cells = [
            f"{sum(first[form][program])}, {sum(three[form][program])} of {len(first[form][program])}"
            if program in first[form]
            else "-"
            for form in forms
        ]
        rule = f"{sum(nvidias[program])} of {len(nvidias[program])}"
        when = "yes" if program in early else "no"
        print(f"| {program.partition('__')[2] or program} | {when} | {' | '.join(cells)} | {rule} |")
    means = [f"{_mean(first[form])}, {_mean(three[form])}" for form in forms]
    print(f"| mean of programs | | {' | '.join(means)} | {_mean(nvidias)} |")
    return 0


def _mean(groups: Mapping[str, Sequence[bool]]) -> str:
    return f"{statistics.mean(statistics.mean(hits) for hits in groups.values()):.0%}" if groups else "-"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
