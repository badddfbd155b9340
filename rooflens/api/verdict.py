"""The verdict on a kernel: its limiter, and its distance from that roof."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rooflens.model.records import Analysis, Confidence, Gain, Limit, Move
    from rooflens.model.verdict_classes import Bound, ShownClass


class Verdict:
    """What limits a kernel, and how much faster it could be.

    >>> import rooflens as rl
    >>> verdict = rl.open("fixtures/synthetic/verdict_memory_dram.synthetic.ncu-rep")[0].verdict
    >>> verdict.bound, verdict.resource, verdict.confidence
    ('memory', 'dram', 'high')
    """

    __slots__ = ("_analysis", "_record")

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self._record = analysis.verdict

    def __eq__(self, other: object) -> bool:
        return self._record == other._record if isinstance(other, Verdict) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.sentence)

    def __repr__(self) -> str:
        return f"<Verdict: {self.sentence}>"

    def _repr_html_(self) -> str:
        """Write the HTML that a notebook shows: sentence, gain and limit."""
        from rooflens.report.notebook import verdict_html

        return verdict_html(self._analysis)

    @property
    def bound(self) -> Bound:
        """What bounds the kernel: `memory`, `compute`, `latency`, `overhead`, `balanced`, or `unknown`."""
        return self._record.bound

    @property
    def or_bound(self) -> tuple[Bound, ...]:
        """The classes that an unmeasured side could turn it into; empty if the class is certain."""
        return self._record.or_bound

    @property
    def shown_class(self) -> ShownClass:
        """The class as every output shows it: `latency`, or `latency?` if another class is possible."""
        return self._record.shown_class

    @property
    def resource(self) -> str | None:
        """The limiter: a memory level or pipe of `Kernel.levels` and `Kernel.pipes`, or None."""
        return self._record.resource

    @property
    def at_roof(self) -> bool:
        """True if that resource is full, or nearly so: only less work or fewer bytes make the kernel faster."""
        return self._record.at_roof

    @property
    def cause(self) -> str | None:
        """A short phrase: `grid below one wave`, `waits for global memory`; None if `bound` says everything."""
        return self._record.cause

    @property
    def gain(self) -> Gain | None:
        """What the first move gains, with `factor`, `time_after_ns`, `proven`, `changes`; None if unknown."""
        return self._record.gain

    @property
    def limit(self) -> Limit:
        """How much faster at most: `factor`, `floor_ns`, the side it comes `by`, and what is `missing`.

        It is either `proven`, or holds at today's traffic only.
        """
        return self._record.limit

    @property
    def moves(self) -> tuple[Move, ...]:
        """What to do, most important first, each with `text`, `kind`, `finding`, `where` and `gain`."""
        return self._record.moves

    @property
    def confidence(self) -> Confidence:
        """How well the report's counters support the verdict: `high`, `medium` or `low`."""
        return self._record.confidence

    @property
    def sentence(self) -> str:
        """The verdict as a sentence, with its decisive numbers and the move."""
        from rooflens.report.words.verdict import verdict_sentence

        return verdict_sentence(self._analysis)

    @property
    def evidence(self) -> tuple[str, ...]:
        """The numbers behind the verdict, a line each."""
        from rooflens.report.words.verdict import evidence_lines

        return evidence_lines(self._analysis)
