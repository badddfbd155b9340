"""Copy a trace and add the verdicts of reports: the entry point of `rooflens annotate`.

The trace's text is copied, not rewritten: every original character is kept.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

from msgspec import Struct

from rooflens.errors import InputError, UsageError
from rooflens.files import refuse_special, replacing
from rooflens.format import count, cut_name, plain_name, printable, some
from rooflens.ingest.reports.inputs import NSYS_REPORTS, SQLITE, has_name_of_report
from rooflens.ingest.reports.unpacking import MAGIC as REPORT_MAGIC
from rooflens.ingest.reports.unpacking import first_bytes
from rooflens.ingest.timelines.chrome import read_trace
from rooflens.ingest.timelines.events import Piece, read_pieces
from rooflens.ingest.timelines.kernel_events import is_kernel, kernel_of
from rooflens.model.program.matching import Matching
from rooflens.model.program.timeline import KernelEvent, Timeline
from rooflens.model.records import RESIDENT, Analysis, AnalyzedReport, Series, timed
from rooflens.model.roofline.unit_names import resource_label
from rooflens.model.summary import identity
from rooflens.report.words.gain_and_limit import gain_words
from rooflens.report.words.labels import BOUND_LABELS
from rooflens.report.words.verdict import best_move

PREFIX = "rooflens "
"""Prefix of all arguments that are added to an event."""

TRACK_CATEGORY = "rooflens"
"""Category of the added events."""

MOST_POINTS = 48
"""Points per unit and launch; of more samples, neighbours are averaged."""

MOST_TRACK_EVENTS = 400_000
"""Later launches get no counter track: each point is an event of some 150 characters."""

_FIRST_PID = 2_000_000_000
"""Process ID of the first GPU's tracks: larger than any real process ID."""

_TRACK_NAME_WIDTH = 60
_ENDINGS = (".json", ".json.gz")


class Annotated(Struct, frozen=True):
    """The result of annotating a trace.

    Attributes:
        event_count, matched_count: Kernel events in the trace, and those matched to a kernel of the reports.
        kernel_count, matched_kernel_count: The same for names of kernels.
        notes: Further remarks, a sentence each.
    """

    event_count: int
    matched_count: int
    kernel_count: int
    matched_kernel_count: int
    notes: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """Say in one line how much was annotated."""
        rest = self.event_count - self.matched_count
        events = f"annotated {self.matched_count:,} of {count(self.event_count, 'kernel event')}"
        kernels = f"{self.matched_kernel_count:,} of {count(self.kernel_count, 'kernel')}"
        unmatched = (
            f"; {count(rest, 'event')} match{'es' if rest == 1 else ''} no kernel of the reports" if rest else ""
        )
        return f"{events} ({kernels}){unmatched}"


def check_files(trace: Path, output: Path) -> None:
    """Refuse a trace that cannot be annotated, an output without a trace's ending, and the trace itself as output.

    Raises:
        UsageError: The trace is a report or an export of Nsight Systems, or the output's name is not a trace's.
    """
    if has_name_of_report(trace) or first_bytes(trace) == REPORT_MAGIC:
        raise UsageError(f"`{trace}` is a report, not a trace", "the trace comes first, then the reports")
    if first_bytes(trace, len(SQLITE)) == SQLITE or trace.suffix in NSYS_REPORTS:
        raise UsageError(
            f"`{trace}` is of Nsight Systems, whose files have no place for verdicts",
            "give a trace of the PyTorch profiler; `rooflens analyze REPORT --timeline FILE` reads this one",
        )
    if not output.name.lower().endswith(_ENDINGS):
        raise UsageError(f"`{output}` does not end as a trace does", f"end it in {' or '.join(_ENDINGS)}")
    if output.exists() and trace.exists() and output.samefile(trace):
        raise UsageError(f"`{output}` is the trace itself", "name another file: the trace is kept as it is")


def annotate(trace: Path, reports: Sequence[AnalyzedReport], output: Path) -> Annotated:
    """Write a copy of a trace with the verdicts of the reports in its kernels' arguments.

    Args:
        trace: A trace of the PyTorch profiler.
        reports: The reports, whose kernels are matched by name, launch shape and order.
        output: File to write: `.json`, or `.json.gz` for a compressed file.

    Raises:
        InputError: The trace is unreadable, none of its kernels is in the reports, or the file cannot be written.
    """
    timeline = read_trace(trace)
    matches = _Matches(timeline, [one for report in reports for one in timed(report.analyses)])
    refuse_special(output)
    tracks = _Tracks()
    try:
        with replacing(output) as partial, _opened_output(partial, output) as file:
            for piece in read_pieces(trace):
                file.write(_annotated(piece, matches, tracks).encode("utf-8", "surrogateescape"))
    except RecursionError as error:
        raise InputError(f"an event of the trace `{trace}` is nested too deep", "record the trace again") from error
    except OSError as error:
        raise InputError(f"cannot write `{output}`: {error.strerror}", "give another place with -o") from error
    return matches.counted((*timeline.notes, *matches.notes(), *tracks.notes()))


@contextmanager
def _opened_output(partial: Path, output: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    with partial.open("wb") as plain:
        if output.suffix.lower() != ".gz":
            yield plain
            return
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=plain, mtime=0) as packed:
            yield packed


class _Matches:
    """Match each kernel event of the trace to a kernel of the reports, per GPU in launch order."""

    def __init__(self, timeline: Timeline, analyses: Sequence[Analysis]) -> None:
        self._analyses = analyses
        self._gpu = timeline.gpu
        self._found: dict[tuple[str, int, int, int], int] = {}
        self._events: Counter[str] = Counter()
        self._times_ns: Counter[tuple[str, ...]] = Counter()
        self._total_ns = 0
        self._matched_names: set[str] = set()
        by_gpu: dict[int, Matching] = {}
        for event in timeline.kernels:
            self._events[event.name] += 1
            self._total_ns += event.duration_ns
            matching = by_gpu.setdefault(event.device, Matching([one.kernel for one in analyses]))
            if (index := matching.next(event)) is not None:
                self._found[_event_identity(event)] = index
                self._matched_names.add(event.name)
                self._times_ns[identity(analyses[index])] += event.duration_ns
        self._arguments: dict[int, dict[str, Any]] = {}
        self.matched_count = 0
        if not self._found:
            raise self._no_match()

    def of(self, event: KernelEvent) -> tuple[Analysis, dict[str, Any]] | None:
        """Return the analysis of an event's kernel, and the arguments to add; None if the reports lack it."""
        index = self._found.get(_event_identity(event))
        if index is None:
            return None
        if index not in self._arguments:
            self._arguments[index] = self._arguments_of(self._analyses[index])
        return self._analyses[index], self._arguments[index]

    def _arguments_of(self, analysis: Analysis) -> dict[str, Any]:
        """Return the arguments to add to a kernel's events."""
        verdict, kernel = analysis.verdict, analysis.kernel
        limiter = verdict.bottleneck
        share = self._times_ns[identity(analysis)] / self._total_ns if self._total_ns else None
        found = {
            "verdict": BOUND_LABELS[verdict.shown_class],
            "cause": (verdict.cause or "").replace("_", " "),
            "limiter": resource_label(limiter.resource, kernel.gpu) if limiter else "",
            "share of limiter (%)": _per_cent(limiter.share) if limiter else None,
            "confidence": verdict.confidence,
            "gain": gain_words(verdict.gain),
            "first move": best_move(analysis),
            "share of program (%)": _per_cent(share),
            "key": analysis.key,
            "report": Path(kernel.source).name,
            "synthetic": "written by a generator, not recorded" if kernel.synthetic else "",
        }
        return {
            f"{PREFIX}{name}": printable(value) if isinstance(value, str) else value
            for name, value in found.items()
            if value not in {"", None}
        }

    def counted(self, notes: Sequence[str]) -> Annotated:
        """Return the counts."""
        return Annotated(
            sum(self._events.values()), self.matched_count, len(self._events), len(self._matched_names), tuple(notes)
        )

    def notes(self) -> Iterator[str]:
        """Yield what the reader of the annotated trace should know."""
        gpus = {one.kernel.gpu for index in set(self._found.values()) if (one := self._analyses[index]).kernel.gpu}
        if self._gpu and gpus and gpus != {self._gpu}:
            named = ", ".join(sorted(map(printable, gpus)))
            yield f"the reports are of {named}, the trace is of {printable(self._gpu)}: verdicts are the reports'"
        lacking = dict.fromkeys(one.kernel.name for one in self._analyses)
        for index in self._found.values():
            lacking.pop(self._analyses[index].kernel.name, None)
        if lacking:
            yield f"{count(len(lacking), 'kernel')} of the reports not in the trace: {_some(lacking)}"

    def _no_match(self) -> InputError:
        """Make the error for a trace of another program."""
        ours = dict.fromkeys(one.kernel.name for one in self._analyses)
        hint = f"the trace has {_some(dict(self._events.most_common()))}; the reports have {_some(ours) or 'none'}"
        return InputError("no kernel of the trace is in the reports", hint)


def _event_identity(event: KernelEvent) -> tuple[str, int, int, int]:
    """Return what identifies an event."""
    return event.name, event.start_ns, event.device, event.stream


def _per_cent(share: float | None) -> float | None:
    return None if share is None else round(share * 100, 1)


def _some(names: Iterable[str]) -> str:
    """Name the first few kernels, and show that there are more."""
    return some(f"`{printable(cut_name(plain_name(name), _TRACK_NAME_WIDTH))}`" for name in names)


def _annotated(piece: Piece, matches: _Matches, tracks: _Tracks) -> str:
    """Return the text of a part of the trace with our additions; additions of an earlier copy are dropped."""
    event, text = piece.event, piece.text
    if event is None:
        return text
    if event.get("cat") == TRACK_CATEGORY and text.startswith(","):
        return ""
    if not is_kernel(event) or not isinstance(event.get("args", {}), dict):
        return text
    kernel = kernel_of(event)
    match = matches.of(kernel) if kernel else None
    analysis, added = match or (None, {})
    if added or PREFIX in text:
        text = text[: piece.at] + with_arguments(text[piece.at :], added)
    if kernel is None or analysis is None:
        return text
    matches.matched_count += 1
    return text + "".join(f",\n{one}" for one in tracks.of(kernel, analysis))


_DECODE = json.JSONDecoder(strict=False).raw_decode


def _spans(text: str, at: int) -> Iterator[tuple[str, int, int, int]]:
    """Yield, for each member of the object at `at`, its key and the positions of key, value and end."""
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, end = _DECODE(text, at)
        value_at = _skip(text, _skip(text, end) + 1)
        _, end = _DECODE(text, value_at)
        yield key, at, value_at, end
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at


def _skip(text: str, at: int) -> int:
    """Return the position of the next non-space character."""
    while text[at] in " \t\r\n":
        at += 1
    return at


def with_arguments(text: str, added: Mapping[str, Any]) -> str:
    """Return an event's text with our arguments replaced; everything else keeps each character.

    Args:
        text: An object, from its first brace to its last.
        added: The arguments, named with `PREFIX`; they replace those of an earlier annotation.
    """
    place = next(((start, end) for key, _, start, end in reversed([*_spans(text, 0)]) if key == "args"), None)
    if place is None:
        return _extended(text, {"args": added}) if added else text
    start, end = place
    args = text[start:end]
    if PREFIX not in args:
        return text[:start] + _extended(args, added) + text[end:]
    kept = 1
    for key, _, _, member_end in [*_spans(args, 0)]:
        if key.startswith(PREFIX):
            args_end = len(args.rstrip()) - 1
            args = args[:kept] + args[args_end:]  # ours are the last ones
            break
        kept = member_end
    return text[:start] + _extended(args, added) + text[end:]


def _extended(text: str, added: Mapping[str, Any]) -> str:
    """Return an object's text with members added at its end."""
    if not added:
        return text
    before = text[:-1].rstrip()
    comma = "" if before == "{" else ", "
    return f"{before}{comma}{json.dumps(added)[1:-1]}{text[len(before) :]}"


class _Tracks:
    """Each unit's course during the launches of a trace, as counters in Chrome's format."""

    def __init__(self) -> None:
        self._event_count = 0
        self._shown = self._left_out = 0
        self._named: set[int] = set()
        self._courses: dict[int, dict[str, list[float | None]]] = {}

    def of(self, event: KernelEvent, analysis: Analysis) -> Iterator[str]:
        """Yield the JSON events of a launch: its series, spread over its time in the trace."""
        series = analysis.kernel.series
        if series is None:
            return
        if self._event_count >= MOST_TRACK_EVENTS:
            self._left_out += 1
            return
        self._shown += 1
        common = f'"cat": "{TRACK_CATEGORY}", "pid": {_FIRST_PID + event.device}, "tid": 0'
        if event.device not in self._named:
            self._named.add(event.device)
            name = f"GPU {event.device}: units within profiled kernels, 0 elsewhere (Nsight Compute)"
            yield f'{{"ph": "M", {common}, "name": "process_name", "args": {{"name": "{name}"}}}}'
        if id(series) not in self._courses:
            self._courses[id(series)] = _courses(series, analysis.kernel.gpu)
        for label, course in self._courses[id(series)].items():
            name = json.dumps(printable(f"{label}, stream {event.stream}"))
            for number, value in enumerate([*course, 0.0]):  # otherwise the last value would continue forever
                if value is not None:
                    self._event_count += 1
                    moment = Decimal(event.start_ns + event.duration_ns * number // len(course)).scaleb(-3)
                    yield f'{{"ph": "C", {common}, "name": {name}, "ts": {moment:f}, "args": {{"%": {value}}}}}'

    def notes(self) -> Iterator[str]:
        """Yield a sentence about launches without counter tracks."""
        if self._left_out:
            both = self._shown + self._left_out
            yield f"counter tracks only in the first {self._shown:,} of {count(both, 'launch')} that have a series"


def _courses(series: Series, gpu: str | None) -> dict[str, list[float | None]]:
    """Return each unit's course in percent of its peak, with at most `MOST_POINTS` points."""
    return {
        "resident warps" if unit == RESIDENT else resource_label(unit, gpu): _thinned(shares)
        for unit, shares in series.shares.items()
    }


def _thinned(shares: Sequence[float | None]) -> list[float | None]:
    """Average neighbours if there are too many points."""
    points = min(len(shares), MOST_POINTS)
    groups = (
        [share for share in shares[at * len(shares) // points : (at + 1) * len(shares) // points] if share is not None]
        for at in range(points)
    )
    return [round(sum(group) / len(group) * 100, 1) if group else None for group in groups]
