"""The sides of a ladder: which reports are recordings of a program, and whether its sides can be compared.

The command, the Python API, the gates and the tools of a model pair sides by `pair_sides`, and ask `checked`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import PurePath

from msgspec import Struct
from msgspec.structs import replace

from rooflens.errors import InputError
from rooflens.format import count, some
from rooflens.model.compare.causes import shared_counters
from rooflens.model.compare.compare import DEFAULT_THRESHOLD, Change, Side
from rooflens.model.compare.ladder import Ladder, ladder, pair_name, with_pairs
from rooflens.model.compare.matching import match_launches
from rooflens.model.compare.same_code import same_code_words
from rooflens.model.records import Analysis, AnalyzedReport, Run
from rooflens.model.verdict.thresholds import default_thresholds

Programs = Mapping[str, Sequence[AnalyzedReport]]


REPORT_ENDINGS = (".ncu-rep", ".ncu-repz", ".nsight-cuprof-report", ".csv")
"""How the name of a report may end; what is before it names the program."""


_COUNT_IN_NAME = re.compile(r"[-_. (]*\d(?:[-_. ()\d]*[\d)])?\Z")
"""A number or a date at the end of a file's name."""

_VERSION_IN_NAME = re.compile(
    r"(?:(?<=[-_. ])|\A)(?:v|ver|version|rev)[-_. ]?\d+(?:\.\d+)*[a-z]?(?=[-_. ]|\Z)", re.IGNORECASE
)
"""A version in a file's name: v4, ver_2, rev3b."""

_ENDING = re.compile(r"\.[a-z][\w-]*\Z", re.IGNORECASE)

LEAST_NAME = 3
_NO_NAMES = frozenset({"report", "profile", "ncu", "results", "result", "kernel", "output", "out", "test", "run"})
"""Names of files that tell nothing of the program."""

NAME_WORDS = re.compile(r"[^\s._/\\@-]+|[\s._/\\@-]+")
"""A name in words and what stands between them."""

_UNNAMED = "recording"
"""The program of files that are named by a number or a date only: 1.ncu-rep, 2026-05-01.ncu-rep."""


Matched = tuple[str, Side, Side]
"""A program, and both of its sides."""


class Unpaired(Struct, frozen=True):
    """Programs that one side has and another lacks.

    Attributes:
        where: Name of the side that has them: `base`, `v4`.
    """

    where: str
    programs: tuple[str, ...]

    @property
    def words(self) -> str:
        """Write `only SIDE has: PROGRAMS`."""
        return f"only {self.where} has: {', '.join(self.programs)}"


def _matched(
    base: Sequence[AnalyzedReport], head: Sequence[AnalyzedReport], labels: tuple[str, str]
) -> tuple[list[Matched], tuple[str, ...], tuple[str, ...]]:
    """Return the programs of both sides, those that only the base has, and those that only the head has."""
    mine, theirs = _programs(base), _programs(head)
    if len(mine) == len(theirs) == 1:
        common = [(next(iter(mine)), next(iter(theirs)))]
    else:
        common = [(name, name) for name in mine if name in theirs] or _by_program(mine, theirs)
    if not common:
        raise InputError(
            f"the two sides have no program in common: {some(mine)} and {some(theirs)}",
            "reports of one program have the same launches, and one name but for a number at its end: gemm_1, gemm_2",
        )
    named = len(base) == 1, len(head) == 1
    matched = []
    for before, after in common:
        sides = [
            Side(label, tuple(reports), is_named)
            for label, reports, is_named in zip(labels, (mine[before], theirs[after]), named, strict=True)
        ]
        called = [_called(name, side) for name, side in zip((before, after), sides, strict=True)]
        matched.append((pair_name("", *called), sides[0], sides[1]))
    paired = [{pair[side] for pair in common} for side in (0, 1)]
    return (
        matched,
        tuple(name for name in mine if name not in paired[0]),
        tuple(name for name in theirs if name not in paired[1]),
    )


def _called(name: str, side: Side) -> str:
    """Name a program as its only report is; several of one name are recordings, told apart by the number at its end."""
    return _ENDING.sub("", _path(side.runs[0]).name) if side.is_named else name


def pair_sides(
    sides: Sequence[Sequence[AnalyzedReport]], labels: Sequence[str], threshold: float = DEFAULT_THRESHOLD
) -> tuple[list[Ladder], tuple[Unpaired, ...]]:
    """Pair the programs of each later side with those of the first; return those without a partner, too.

    Args:
        sides: The reports of each side, two or more.
        labels: What the sides are called.
        threshold: Smaller changes count as no change.

    Raises:
        InputError: A side has no program in common with the first.
    """
    base, *heads = sides
    found: defaultdict[frozenset[str], list[Matched]] = defaultdict(list)
    unpaired: list[Unpaired] = []
    for head, label in zip(heads, labels[1:], strict=True):
        matched, *alone = _matched(base, head, (labels[0], label))
        for one in matched:
            found[one[1].digests].append(one)
        names = ("the base", "the head") if len(heads) == 1 else (f"{labels[0]}, and not {label},", label)
        unpaired += [Unpaired(name, programs) for name, programs in zip(names, alone, strict=True) if programs]
    return [_set_upon(of, threshold) for of in found.values()], tuple(unpaired)


def _set_upon(matched: Sequence[Matched], threshold: float) -> Ladder:
    """Set the sides of a program side by side; each was paired with the first.

    Files of other names are told by what these share, else by their kernel or folder, else by the first and the last.
    """
    sides = (matched[0][1], *(head for _, _, head in matched))
    names = list(dict.fromkeys(name for name, _, _ in matched))
    called = [_called(names[0], side) for side in sides]
    named = (
        set(names),
        {shared_name(called)} - {""},
        {
            max(side.at_work, key=lambda one: one.gpu_time_ns or 0.0).kernel.function_name
            for side in sides
            if side.at_work
        },
        {_path(run).parent.name for side in sides for run in side.runs} - {""},
        {pair_name("", called[0], called[-1])},
    )
    return ladder(next(next(iter(one)) for one in named if len(one) == 1), sides, threshold)


def _by_program(mine: Programs, theirs: Programs) -> list[tuple[str, str]]:
    """Find programs that differ in version between the sides: the name on either side."""
    before, after = (_unversioned(side) for side in (mine, theirs))
    return [(before[name], after[name]) for name in before if name in after]


def _unversioned(programs: Programs) -> dict[str, str]:
    """Name programs without their version if a side holds only one."""
    names = {name: program_name(reports[0].run) for name, reports in programs.items()}
    amounts = Counter(names.values())
    return {short: name for name, short in names.items() if amounts[short] == 1}


def reports_of(ladders: Iterable[Ladder]) -> tuple[AnalyzedReport, ...]:
    """List the reports of all sides, each once."""
    sides = (rung.side for one in ladders for rung in one.rungs)
    return tuple({report.run.digest: report for side in sides for report in side.reports}.values())


def _programs(reports: Sequence[AnalyzedReport]) -> dict[str, list[AnalyzedReport]]:
    """Group reports by file name without its ending and number, where their launches are the same."""
    groups: defaultdict[str, list[AnalyzedReport]] = defaultdict(list)
    for report in reports:
        groups[version_name(report.run)].append(report)
    programs: dict[str, list[AnalyzedReport]] = {}
    for name, group in groups.items():
        if all(is_repeated(group[0].analyses, other.analyses) for other in group[1:]):
            programs[name] = group
        else:
            programs |= _distinct_names(group)
    return programs


def _distinct_names(reports: Sequence[AnalyzedReport]) -> dict[str, list[AnalyzedReport]]:
    """Name reports after their files, with as many folders above them as it takes; the last resort is a digest."""
    for depth in range(1, max(len(_path(report.run).parts) for report in reports) + 1):
        named = {"/".join((*_path(report.run).parts[:-1], _stem(report.run))[-depth:]): [report] for report in reports}
        if len(named) == len(reports):
            return named
    return {f"{_stem(report.run)} {report.run.digest}": [report] for report in reports}


def _path(run: Run) -> PurePath:
    return PurePath(run.source.replace("\\", "/"))


def _stem(run: Run) -> str:
    name = _path(run).name
    return next((name.removesuffix(ending) for ending in REPORT_ENDINGS if name.endswith(ending)), name)


def program_name(run: Run) -> str:
    """Name the program of a report after its file, without ending, version, and number or date at its end."""
    parts = (part.strip("-_. ") for part in _VERSION_IN_NAME.split(_stem(run)))
    return _COUNT_IN_NAME.sub("", "_".join(part for part in parts if part)) or _UNNAMED


def shared_name(names: Sequence[str]) -> str:
    """Return the words that all names begin with; empty where these tell nothing: a number, or `profile`."""
    split = [NAME_WORDS.findall(name) for name in names]
    same = "".join(words[0] for words in takewhile(lambda words: len(set(words)) == 1, zip(*split, strict=False)))
    shared = same.strip(" ._/\\@-")
    return shared if len(shared) >= LEAST_NAME and shared.lower() not in _NO_NAMES else ""


def version_name(run: Run) -> str:
    """Name the program as `program_name` does, with its version: times of two versions are not samples of one."""
    stem = _stem(run)
    end = max((match.end() for match in _VERSION_IN_NAME.finditer(stem)), default=0)
    return stem[:end] + _COUNT_IN_NAME.sub("", stem[end:]) or _UNNAMED


def is_repeated(launches: Sequence[Analysis], other: Sequence[Analysis]) -> bool:
    """Return whether two reports hold nearly the same launches on the same GPU."""
    if {a.kernel.gpu_model for a in launches} != {a.kernel.gpu_model for a in other}:
        return False
    matches = match_launches([a.kernel for a in launches], [a.kernel for a in other])
    same = sum(match.how == "same" for match in matches)
    return same >= default_thresholds().nearly_all_share * max(len(launches), len(other))


_ONLY_FILLS = "only kernels that fill inputs"
_OF_YOURS = "record the kernel that uses them: `rooflens profile --kernel NAME -- PROGRAM`"
_TIMED_BY = "record them with `gpu__time_duration.sum` in `ncu --metrics`, or with `rooflens profile`"


def refusals(pair: Ladder) -> Iterator[str]:
    """Say why two sides must not be compared unless the user insists; nothing if they may be."""
    sides = pair.base, pair.head
    base, head = (frozenset(one.kernel.workload for one in side.at_work) for side in sides)
    if base != head:
        yield f"one side holds results of {_and(base)}, the other of {_and(head)}"
    base, head = (_stated(side, "replay_mode") for side in sides)
    if base and head and base != head:
        yield f"replay modes differ: {_and(base)} and {_and(head)}"
    synthetic = [any(run.synthetic for run in side.runs) for side in sides]
    if synthetic[0] != synthetic[1]:
        yield f"the {'base' if synthetic[0] else 'head'} is synthetic: written by a generator, not measured"
    yield from _untimed(*map(_is_timed, sides))


def _untimed(*timed: bool) -> tuple[str, ...]:
    """Say which of two sides has no time; nothing if both have."""
    if all(timed):
        return ()
    return (f"times were not recorded in the {'head' if timed[0] else 'base'}: no kernel of it has a duration",)


def _only_fills(pair: Ladder) -> str:
    """Say which side holds only kernels that fill inputs, and what else there was to profile; empty if neither does."""
    sides = {
        name: side for name, side in (("base", pair.base), ("head", pair.head)) if side.set_up and not side.at_work
    }
    if not sides:
        return ""
    failed = dict.fromkeys(one.kernel.function_name for side in sides.values() for one in side.failed)
    lost = f"; {', '.join(f'`{name}`' for name in failed)} could not be profiled" if failed else ""
    whose = "both sides hold" if len(sides) == 2 else f"the {next(iter(sides))} holds"
    return f"nothing to compare: {whose} {_ONLY_FILLS}{lost}"


def is_of_others(comparison: Ladder) -> bool:
    """Return whether two sides have neither a GPU nor a kernel in common: nothing of them can be compared.

    Kernels of other names at one place are not a kernel in common, unless the files name one program: libraries choose
    kernels by GPU.
    """
    sides = (comparison.base, comparison.head)
    base, head = ({one.kernel.gpu_model for one in side.at_work} for side in sides)
    before, after = ({program_name(run) for run in side.runs} for side in sides)
    both = [change.how for change in comparison.changes if change.base and change.head]
    known = both if before & after else [how for how in both if how != "renamed"]
    return not base & head and not known


def warnings(pair: Ladder) -> Iterator[str]:
    """Say what a reader must keep in mind about two sides that were not collected alike."""
    sides = pair.base, pair.head
    if shared := sum(run.digest in pair.base.digests for run in pair.head.runs):
        yield f"{shared} of the head's reports {'is' if shared == 1 else 'are'} among the base's too"
    base, head = (frozenset(one.kernel.gpu_model or "" for one in side.at_work) - {""} for side in sides)
    before_hz, after_hz = (mean_clock_hz(side) or 0.0 for side in sides)
    if base != head:
        yield f"different GPUs ({_and(base)}; {_and(head)}): compare shares of the roofs, not times"
    elif is_apart(before_hz, after_hz):
        yield f"the SM clock differs: {before_hz / 1e9:.2f} GHz and {after_hz / 1e9:.2f} GHz"
    for what, name in (
        ("clock control", "clock_control"),
        ("cache control", "cache_control"),
        ("ncu version", "ncu_version"),
    ):
        base, head = (_stated(side, name) for side in sides)
        if base != head and base and head:
            yield f"{what}: {_and(base)} and {_and(head)}"
    for name, side in zip(("base", "head"), sides, strict=True):
        if set_up := len(side.set_up):
            only = "only fills inputs, and counts" if set_up == 1 else "only fill inputs, and count"
            yield f"{count(set_up, 'launch')} of the {name} {only} in no time"
        if failed := len(side.failed):
            yield f"{failed} of the {name}'s kernels failed while they were profiled, and are left out"


def _stated(side: Side, name: str) -> frozenset[str]:
    """Return what the runs of a side state; what they do not is left out."""
    return frozenset(value for run in side.runs if (value := getattr(run, name)))


def _is_timed(side: Side) -> bool:
    return any(one.kernel.duration_ns for one in side.at_work)


def _share_counters(change: Change) -> bool:
    return bool(change.base and change.head and shared_counters(change.base, change.head))


def _and(values: Iterable[str]) -> str:
    return " and ".join(sorted(values)) or "none"


def is_apart(before: float | None, after: float | None) -> bool:
    """Return whether two clocks, or what follows them, differ by more than noise."""
    return bool(before and after and max(before / after, after / before) > 1 + default_thresholds().noise_share)


def mean_clock_hz(side: Side) -> float | None:
    """Return the mean SM clock, weighted by GPU time: a short launch at an idle clock counts little."""
    return _by_time((a.kernel.counters.get("sm_clock_hz"), a.kernel.duration_ns) for a in side.at_work)


def mean_memory_bytes_per_s(side: Side) -> float | None:
    """Return the mean peak of DRAM, weighted by GPU time; it follows the memory clock."""
    return _by_time((a.levels["dram"].peak_bytes_per_s, a.kernel.duration_ns) for a in side.at_work)


def _by_time(pairs: Iterable[tuple[float | None, float | None]]) -> float | None:
    known = [(value, time_ns) for value, time_ns in pairs if value and time_ns]
    whole_ns = sum(time_ns for _, time_ns in known)
    return sum(value * time_ns for value, time_ns in known) / whole_ns if whole_ns else None


def checked(ladders: Iterable[Ladder], *, anyway: bool, hint: str) -> list[Ladder]:
    """Compare the first side of each ladder with each of the others, too, and note what to keep in mind.

    Args:
        ladders: A program each.
        anyway: Compare even recordings that were not collected alike.
        hint: How the caller's user asks for that.

    Raises:
        InputError: Two sides were not collected alike, or have neither a GPU nor a kernel in common.
    """
    found = []
    for one in map(with_pairs, ladders):
        # A version without a time is a rung of its ladder without one, as long as others can be compared.
        goes_on = sum(_is_timed(rung.side) for rung in one.rungs) > 1 and len(one.rungs) > 2
        pairs = [replace(pair, warnings=_checked(pair, anyway, hint, goes_on=goes_on)) for pair in one.each]
        found.append(replace(one, pairs=tuple(pairs)) if one.pairs else pairs[0])
    return found


def _checked(pair: Ladder, anyway: bool, hint: str, *, goes_on: bool) -> tuple[str, ...]:  # noqa: FBT001 - as asked
    if only_fills := _only_fills(pair):
        raise InputError(f"{pair.program}: {only_fills}", _OF_YOURS)
    reasons = tuple(refusals(pair))
    refused, is_timed = f"{pair.program}: {'; '.join(reasons)}", _is_timed(pair.base) and _is_timed(pair.head)
    borne = _untimed(_is_timed(pair.base), _is_timed(pair.head)) if goes_on else ()
    if not anyway and set(reasons) - set(borne):
        raise InputError(refused, hint if is_timed else f"{_TIMED_BY}; {hint}")
    if not is_timed and not goes_on and not any(_share_counters(change) for change in pair.changes):
        raise InputError(f"{refused}; nor has a kernel of both sides a counter in both", _TIMED_BY)
    if not anyway and not pair.is_detected and is_of_others(pair):
        raise InputError(f"{pair.program}: the sides are of different GPUs and have no kernel in common", hint)
    if pair.is_of_one_report:
        return reasons
    noise = (f"{pair.total.runs}: noise unknown",) if pair.total.runs else ()
    return (*reasons, *warnings(pair), *noise, *same_code_words(pair.changes))
