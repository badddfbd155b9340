"""Copy a trace with the verdicts of reports in it: the door of `rooflens annotate`.

The text of the trace is copied, not written anew: whatever is not added keeps each character.
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
from rooflens.ingest.timelines.chrome import is_kernel, kernel_of, read_trace
from rooflens.ingest.timelines.events import Piece, read_pieces
from rooflens.model.records import RESIDENT, Analysis, AnalyzedReport, Series, timed
from rooflens.model.summary import first_move, identity
from rooflens.model.timeline import KernelEvent, Matching, Timeline
from rooflens.model.verdict.sentences import gain_words, resource_label
from rooflens.report.words.labels import BOUND_LABELS

PREFIX = "rooflens "
"""What the names of all arguments begin with that are added to an event."""

TRACK_CATEGORY = "rooflens"
"""Category of the events that are added."""

MOST_POINTS = 48
"""Points of a unit in a launch; more samples are averaged with their neighbours."""

MOST_TRACK_EVENTS = 400_000
"""Later launches get no course of their own: each such event has some 150 characters."""

_FIRST_PID = 2_000_000_000
"""Process of the first GPU's tracks: larger than the number of any process of the system."""

_NAME_WIDTH = 60
_ENDINGS = (".json", ".json.gz")


class Annotated(Struct, frozen=True):
    """What became of a trace.

    Attributes:
        event_count, matched_count: Events of kernels in the trace; those that a kernel of the reports was found for.
        kernel_count, matched_kernel_count: The same by the names of kernels.
        notes: What to know besides, one sentence each.
    """

    event_count: int
    matched_count: int
    kernel_count: int
    matched_kernel_count: int
    notes: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """Say how much was annotated, in one line."""
        rest = self.event_count - self.matched_count
        events = f"annotated {self.matched_count:,} of {count(self.event_count, 'kernel event')}"
        kernels = f"{self.matched_kernel_count:,} of {count(self.kernel_count, 'kernel')}"
        unmatched = (
            f"; {count(rest, 'event')} match{'es' if rest == 1 else ''} no kernel of the reports" if rest else ""
        )
        return f"{events} ({kernels}){unmatched}"


def check_files(trace: Path, output: Path) -> None:
    """Refuse what cannot be annotated, an output that would not be read as a trace, and the trace itself.

    Raises:
        UsageError: The trace is a report or an export of Nsight Systems, or the output has the name of something else.
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
    """Write a copy of a trace whose kernels have the verdicts of the reports in their arguments.

    Args:
        trace: A trace of the PyTorch profiler.
        reports: Their kernels are matched by name, launch shape and order.
        output: Ends in `.json`, or in `.json.gz` to be compressed.

    Raises:
        InputError: The trace cannot be read, no kernel of it is in the reports, or the file cannot be written.
    """
    timeline = read_trace(trace)
    matches = _Matches(timeline, [one for report in reports for one in timed(report.analyses)])
    refuse_special(output)
    tracks = _Tracks()
    try:
        with replacing(output) as partial, _opened(partial, output) as file:
            for piece in read_pieces(trace):
                file.write(_annotated(piece, matches, tracks).encode("utf-8", "surrogateescape"))
    except RecursionError as error:
        raise InputError(f"an event of the trace `{trace}` is nested too deep", "record the trace again") from error
    except OSError as error:
        raise InputError(f"cannot write `{output}`: {error.strerror}", "give another place with -o") from error
    return matches.counted((*timeline.notes, *matches.notes(), *tracks.notes()))


@contextmanager
def _opened(partial: Path, output: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """Open the file to write to, compressing where its name says so."""
    with partial.open("wb") as plain:
        if output.suffix.lower() != ".gz":
            yield plain
            return
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=plain, mtime=0) as packed:
            yield packed


class _Matches:
    """Which kernel of the reports each event of the trace is, GPU by GPU in the order of launches."""

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
                self._found[_place(event)] = index
                self._matched_names.add(event.name)
                self._times_ns[identity(analyses[index])] += event.duration_ns
        self._arguments: dict[int, dict[str, Any]] = {}
        self.matched_count = 0
        if not self._found:
            raise self._no_match()

    def of(self, event: KernelEvent) -> tuple[Analysis, dict[str, Any]] | None:
        """Return the analysis of an event's kernel, and the arguments that say it; None if the reports lack it."""
        index = self._found.get(_place(event))
        if index is None:
            return None
        if index not in self._arguments:
            self._arguments[index] = self._arguments_of(self._analyses[index])
        return self._analyses[index], self._arguments[index]

    def _arguments_of(self, analysis: Analysis) -> dict[str, Any]:
        """Return what is added to the events of a kernel."""
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
            "first move": first_move(analysis.verdict),
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
        """Make the error of a trace of another program."""
        ours = dict.fromkeys(one.kernel.name for one in self._analyses)
        hint = f"the trace has {_some(dict(self._events.most_common()))}; the reports have {_some(ours) or 'none'}"
        return InputError("no kernel of the trace is in the reports", hint)


def _place(event: KernelEvent) -> tuple[str, int, int, int]:
    """Return what tells an event from all others."""
    return event.name, event.start_ns, event.device, event.stream


def _per_cent(share: float | None) -> float | None:
    """Write a share as per cent to a tenth."""
    return None if share is None else round(share * 100, 1)


def _some(names: Iterable[str]) -> str:
    """Name the first few kernels, and show that there are more."""
    return some(f"`{printable(cut_name(plain_name(name), _NAME_WIDTH))}`" for name in names)


def _annotated(piece: Piece, matches: _Matches, tracks: _Tracks) -> str:
    """Return the text of a part of the trace with what is added to it; what an earlier copy added is left out."""
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
    """Yield the key of each member of the object that begins at `at`, and where key, value and its end are."""
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, end = _DECODE(text, at)
        value_at = _skip(text, _skip(text, end) + 1)
        _, end = _DECODE(text, value_at)
        yield key, at, value_at, end
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at


def _skip(text: str, at: int) -> int:
    """Return the place of the next non-space character."""
    while text[at] in " \t\r\n":
        at += 1
    return at


def with_arguments(text: str, added: Mapping[str, Any]) -> str:
    """Return the text of an event with other arguments of ours; all else keeps each character.

    Args:
        text: An object, from its first brace to its last.
        added: The arguments, whose names begin with `PREFIX`; those of an earlier annotation go.
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
    """Return the text of an object with more members at its end."""
    if not added:
        return text
    before = text[:-1].rstrip()
    comma = "" if before == "{" else ", "
    return f"{before}{comma}{json.dumps(added)[1:-1]}{text[len(before) :]}"


class _Tracks:
    """The course of each unit during the launches of a trace, as counters of Chrome's format."""

    def __init__(self) -> None:
        self._event_count = 0
        self._shown = self._left_out = 0
        self._named: set[int] = set()
        self._courses: dict[int, dict[str, list[float | None]]] = {}

    def of(self, event: KernelEvent, analysis: Analysis) -> Iterator[str]:
        """Yield the events of a launch in JSON: its series, spread over its time in the trace."""
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
            for number, value in enumerate([*course, 0.0]):  # else the last value would be drawn on and on
                if value is not None:
                    self._event_count += 1
                    moment = Decimal(event.start_ns + event.duration_ns * number // len(course)).scaleb(-3)
                    yield f'{{"ph": "C", {common}, "name": {name}, "ts": {moment:f}, "args": {{"%": {value}}}}}'

    def notes(self) -> Iterator[str]:
        """Yield a sentence on launches without their course."""
        if self._left_out:
            both = self._shown + self._left_out
            yield f"counter tracks only in the first {self._shown:,} of {count(both, 'launch')} that have a series"


def _courses(series: Series, gpu: str | None) -> dict[str, list[float | None]]:
    """Return the course of each unit in per cent of its peak, with at most `MOST_POINTS` points."""
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
