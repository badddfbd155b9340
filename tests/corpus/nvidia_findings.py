"""Compare our findings with NVIDIA's own rule results, which are withheld from our analysis.

`python tests/corpus/nvidia_findings.py` prints hits and misses by topic over the corpus and the cases beside it, false
limiters, and the quality of first moves; without a corpus, over the published figures in `fixtures/`. What is read is
cached, so that the next run after a change of a rule takes seconds. `test_nvidia_findings.py` compares the same
numbers with the goals in `finding_goals.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import finding_goals as goals
from msgspec import Struct
from msgspec.structs import replace
from nvidia_results import NvidiaKernel, NvidiaResult
from nvidia_topics import LOAD, STORE, Excluded, choice_of

from rooflens.model.analyze import analyze
from rooflens.model.records import Analysis, Kernel

LIMITER = "limiter"
_SPOKEN = ("optimization", "warning")
_BOTH_SIDES = "UncoalescedGlobalAccess"
"""The rule that speaks of loads and stores at once."""


class Judged(Struct, frozen=True):
    """One kernel as NVIDIA's rules see it, and as we see it without them."""

    nvidia: NvidiaKernel
    analysis: Analysis

    @property
    def severities(self) -> dict[str, str]:
        """Severity by id of our findings."""
        return {finding.id: finding.severity for finding in findings_of(self.analysis)}


class Expected(Struct, frozen=True):
    """One of NVIDIA's results with an estimate large enough to count, and whether we have its topic."""

    judged: Judged
    result: NvidiaResult
    topic: str

    @property
    def severity(self) -> str | None:
        """Severity of our finding of this topic; None if there is no finding, which is a miss."""
        return self.judged.severities.get(self.topic)


class Silent(Struct, frozen=True):
    """One kernel and a topic on which NVIDIA's rules see no problem.

    Attributes:
        why: `ok` if the rule says so, `elsewhere` if the rule only mentioned another kernel of the report.
    """

    judged: Judged
    topic: str
    why: str

    @property
    def severity(self) -> str | None:
        """Severity of our finding of this topic; None if we have no such finding either."""
        return self.judged.severities.get(self.topic)

    @property
    def false(self) -> bool:
        """True if we call it a limiter of the kernel."""
        return self.severity == LIMITER


def findings_of(analysis: Analysis) -> tuple:
    """Return the findings of an analysis, which may lack this part."""
    return tuple(getattr(analysis, "findings", ()))


def withheld(kernel: Kernel) -> Kernel:
    """Remove NVIDIA's rule results from a kernel, so that only counters are left."""
    return replace(kernel, rules=())


def judge(pairs: Iterable[tuple[NvidiaKernel, Kernel]]) -> list[Judged]:
    """Analyze kernels without NVIDIA's rule results."""
    return [Judged(nvidia, analyze(withheld(kernel))) for nvidia, kernel in pairs]


def expected(judged: Iterable[Judged]) -> Iterator[Expected]:
    """Yield each of NVIDIA's results that counts for recall."""
    for one in judged:
        for result in one.nvidia.results:
            topic = choice_of(result, one.nvidia)
            if (result.estimate_pct or 0.0) >= goals.NVIDIA_ESTIMATE_PCT and isinstance(topic, str):
                yield Expected(one, result, topic)


def unmatched(judged: Iterable[Judged]) -> Iterator[Expected]:
    """Yield NVIDIA's results without an estimate, as of versions before 2023: shown, but not counted."""
    for one in judged:
        for result in one.nvidia.results:
            topic = choice_of(result, one.nvidia)
            if result.estimate_pct is None and result.kind in _SPOKEN and isinstance(topic, str):
                yield Expected(one, result, topic)


def silent(judged: Sequence[Judged]) -> Iterator[Silent]:
    """Yield each kernel and topic on which a rule could have reported something and did not."""
    reports: dict[str, list[Judged]] = {}
    for one in judged:
        reports.setdefault(one.nvidia.report, []).append(one)
    for kernels in reports.values():
        rules = {rule for one in kernels for rule in spoken(one.nvidia)}
        for one in kernels:
            if not one.analysis.kernel.failed:
                yield from _silent_of(one, rules)


def _silent_of(one: Judged, rules: set[tuple[str, str, str]]) -> Iterator[Silent]:
    said = {topic for _, _, topic in spoken(one.nvidia)}
    failed = {result.identifier for result in one.nvidia.results if result.kind == "error"}
    allowed = {
        topic
        for result in one.nvidia.results
        if result.kind == "ok" and isinstance(topic := choice_of(result, one.nvidia), str)
    }
    elsewhere = {
        topic for identifier, section, topic in rules if section in one.nvidia.sections and identifier not in failed
    }
    for topic in sorted((allowed | elsewhere) - said):
        yield Silent(one, topic, "ok" if topic in allowed else "elsewhere")


def spoken(kernel: NvidiaKernel) -> Iterator[tuple[str, str, str]]:
    """Yield rule, section and topic of all that NVIDIA reports about a kernel, however small its estimate."""
    for result in kernel.results:
        if result.kind not in _SPOKEN:
            continue
        topic = choice_of(result, kernel)
        topics = (LOAD, STORE) if result.identifier == _BOTH_SIDES else (topic,)
        yield from ((result.identifier, result.section, topic) for topic in topics if isinstance(topic, str))


def undecided(kernels: Iterable[NvidiaKernel]) -> set[tuple[str, str]]:
    """Return the pairs of rule and title that the table of topics lacks."""
    return {
        (result.identifier, result.title)
        for kernel in kernels
        for result in kernel.results
        if choice_of(result, kernel) is None
    }


class PairCount(Struct, frozen=True):
    """How often a pair of rule and title occurs in the reports, and its topics."""

    identifier: str
    title: str
    count: int
    largest_pct: float | None
    topics: tuple[str, ...]
    exclusions: tuple[str, ...]


def pair_counts(kernels: Sequence[NvidiaKernel]) -> list[PairCount]:
    """Count every pair of rule and title, with its largest estimate and its topics."""
    found: dict[tuple[str, str], list[tuple[NvidiaResult, NvidiaKernel]]] = {}
    for kernel in kernels:
        for result in kernel.results:
            found.setdefault((result.identifier, result.title), []).append((result, kernel))
    return [_pair_count(*pair, results) for pair, results in sorted(found.items())]


def _pair_count(identifier: str, title: str, results: list[tuple[NvidiaResult, NvidiaKernel]]) -> PairCount:
    choices = {choice_of(result, kernel) for result, kernel in results}
    estimates = [result.estimate_pct for result, _ in results if result.estimate_pct is not None]
    return PairCount(
        identifier=identifier,
        title=title,
        count=len(results),
        largest_pct=max(estimates, default=None),
        topics=tuple(sorted(choice for choice in choices if isinstance(choice, str))),
        exclusions=tuple(sorted(choice.reason for choice in choices if isinstance(choice, Excluded))),
    )


_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")
_SCALES = (1.0, 100.0, *(1000.0**power for power in (-5, -4, -3, -2, -1, 1, 2, 3)))
"""What stands between a number as it is kept and as it is written: per cents and SI prefixes."""


def numbers_in(text: str) -> list[tuple[float, float]]:
    """Find the numbers of a sentence, each with half a unit of its last digit."""
    found = []
    for match in _NUMBER.finditer(text):
        digits = match[0].rstrip(",").replace(",", "")
        decimals = len(digits.partition(".")[2])
        found.append((float(digits), 0.5 * 10.0**-decimals))
    return found


def holds_evidence(move: str, values: Iterable[float]) -> bool:
    """Tell whether a sentence contains one of these values, in its own or another common unit, rounded as written."""
    numbers = numbers_in(move)
    return any(
        abs(value * scale - number) <= half * (1 + 1e-9)
        for value in values
        if value
        for scale in _SCALES
        for number, half in numbers
        if number
    )


def best_move(analysis: Analysis) -> str | None:
    """Return the first move of the verdict."""
    return next(iter(analysis.verdict.advice), None)


def says_number(analysis: Analysis) -> bool:
    """Tell whether the first move contains a number from the evidence of its finding."""
    move = best_move(analysis) or ""
    findings = [finding for finding in findings_of(analysis) if finding.severity != "note"]
    own = next((finding for finding in findings if finding.move == move), next(iter(findings), None))
    return own is not None and holds_evidence(move, [item.value for item in own.evidence])


def says_collect(analysis: Analysis) -> bool:
    """Tell whether the first move asks for more counters."""
    return re.match(r"(collect|record|profile)\b", best_move(analysis) or "", re.IGNORECASE) is not None


def part(values: Iterable[bool]) -> float:
    """Return the share of true values; 0 if there are none."""
    known = list(values)
    return sum(known) / len(known) if known else 0.0


def timed(judged: Iterable[Judged]) -> list[Judged]:
    """Leave out kernels whose profiling failed, as nothing can be said about them."""
    return [one for one in judged if not one.analysis.kernel.failed]


if __name__ == "__main__":
    from nvidia_table import main

    main()
