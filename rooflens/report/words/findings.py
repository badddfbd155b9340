"""A finding in words, which are written only here: title, gain, numbers, places and move."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, get_args

from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.findings.find import RULES
from rooflens.model.findings.siblings import SIBLING
from rooflens.model.records import Analysis, Confidence, Finding, Hotspot, Inside, Severity, Verdict
from rooflens.model.verdict.collecting import not_profiled
from rooflens.model.verdict.nvidia_rules import NVIDIA_RULE
from rooflens.report.words.gain_and_limit import gain_words
from rooflens.report.words.labels import evidence_words, place_label

_EXPLAINED = frozenset((*(rule.id for rule in RULES), NVIDIA_RULE, SIBLING))

_FALLING: tuple[Confidence, ...] = get_args(Confidence)

CODE_WIDTH = 100
"""Characters of a source line or an instruction at most."""


class ShownPlace(Struct, frozen=True):
    """The place of a finding.

    Attributes:
        share: The share of the finding's subject at this place, in words.
        code: The source line if the report embeds it, else the instruction; empty if it has neither.
    """

    label: str
    share: str
    code: str


class ShownFinding(Struct, frozen=True):
    """One finding in words.

    Attributes:
        title: As at the beginning of a sentence; `name` as inside a sentence.
        gain: `about 1.4x`; empty if it cannot be modelled.
        numbers: Its evidence, each number with its name; `sources` the counters behind each.
        brief: Title, gain and first numbers in one line.
    """

    id: str
    title: str
    name: str
    severity: Severity
    confidence: Confidence
    gain: str
    numbers: tuple[str, ...]
    sources: tuple[str, ...]
    move: str
    places: tuple[ShownPlace, ...]

    @property
    def about(self) -> str:
        """Name of its explanation; empty if it has none."""
        return self.id if self.id in _EXPLAINED else ""

    def brief(self, numbers: int = 2) -> str:
        """Write title, gain and some numbers in one line."""
        gain = f", {self.gain}" if self.gain else ""
        shown = ", ".join(self.numbers[:numbers])
        return f"{self.title}{gain}{f': {shown}' if shown else ''}"


def confidence_words(confidence: Confidence | None, of: Literal["class", "class and move", "finding"]) -> str:
    """Say how sure something is: `class confidence: high`; empty if it is not judged."""
    return f"{of} confidence: {confidence}" if confidence else ""


def sureness(verdict: Verdict, findings: Iterable[Finding], finding: str | None) -> Confidence:
    """Return the confidence in a move: its verdict's, or that of the move's finding if lower."""
    of_finding = (one.confidence for one in findings if one.id == finding)
    return least_sure((verdict.confidence, *of_finding))


def least_sure(confidences: Iterable[Confidence]) -> Confidence:
    """Return the lowest of at least one confidence; unknown words count as none at all."""
    return max(confidences, key=lambda one: _FALLING.index(one) if one in _FALLING else len(_FALLING))


def costing(analysis: Analysis) -> Iterator[Finding]:
    """Yield the findings that cost time, worst first."""
    return (finding for finding in analysis.findings if finding.severity != "note")


def shown(finding: Finding, inside: Inside | None) -> ShownFinding:
    """Put a finding into words, its places by what is known of the kernel's code."""
    return ShownFinding(
        id=finding.id,
        title=fmt.sentence_case(finding.title),
        name=finding.title,
        severity=finding.severity,
        confidence=finding.confidence,
        gain=gain_words(finding.gain),
        numbers=tuple(map(evidence_words, finding.evidence)),
        sources=tuple(number.source for number in finding.evidence),
        move=finding.move,
        places=tuple(
            ShownPlace(place_label(place.hotspot, inside), fmt.percent(place.share), code_of(place.hotspot))
            for place in finding.where
        ),
    )


def code_of(hotspot: Hotspot, width: int = CODE_WIDTH) -> str:
    """Return the source line of a place, else its instruction, cut to one line."""
    return fmt.cut_end(" ".join((hotspot.text or hotspot.sass or "").split()), width)


def no_line_words(read: Iterable[tuple[Analysis, str]]) -> str:
    """Say why of none of some kernels a line is known, and what would tell it; empty if one has samples.

    Args:
        read: The kernels, each with what read its report.
    """
    known = list(read)
    if not known or any(one.kernel.code_totals.get("samples") for one, _ in known):
        return ""
    is_printed = all(reader in {"text", "csv"} for _, reader in known)
    why = "an export has no samples of the code" if is_printed else "the code was not sampled"
    if all(not_profiled(one.kernel.compute_capability) for one, _ in known):
        return f"No line: {why}."
    how = "open its `.ncu-rep`, profiled with" if is_printed else "profile with"
    return f"No line: {why}; {how} `ncu --set full --import-source yes` and built with `-lineinfo`."
