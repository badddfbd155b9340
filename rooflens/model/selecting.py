"""Choose launches by kernel and by NVTX range: what `--kernel` and `--nvtx` mean, in every command and in the API.

A launch is chosen where it matches one of the kernel patterns, if there are any, and one of the NVTX patterns, if there
are any. A kernel pattern is

- a key of `rooflens.model.keys`, which is one launch;
- a short name as tables print it, which is the kernel that is called so, and no other;
- a glob with `*` or `?`, which covers a short name, the name of the function, the whole name, or a key;
- `re:` and a regular expression, which matches anywhere in the name;
- any other text, which may stand anywhere in the name, whatever its case.

A name that a table has cut with `…` is a glob too. An NVTX pattern is a glob which covers any range that was open at
the launch, or several from outside in (`step*/forward`), or a regular expression over all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from rooflens.errors import NoMatchError, UsageError
from rooflens.format import cut_name, plain_name, printable, some
from rooflens.model.keys import SHORT_NAME_WIDTH, bare_name, function_of, short_names
from rooflens.model.records import Analysis, AnalyzedReport

Matcher = Callable[[str], bool]

_REGEX = "re:"
_CUT = "…"
_SUGGESTED = 3
_COMPARED = 2000
_LIKENESS = 0.6
"""How alike a name must be to what was typed to be suggested, 0 to 1."""
_LOOSE = re.compile(r"[*?…]|-[0-9a-f]{6}(?:#\d+)?$")
"""What is left out of a pattern before it is compared: signs of globs, and the digits of a key."""
_WORD = re.compile(r"[^\W_]{3,}")
_AFTER_NAMESPACES = r"(?:(?<![^ ])|(?<=::))"
_BEFORE_SLASH, _AFTER_SLASH = r"(?![^/])", r"(?<![^/])"


class Selection(Struct, frozen=True):
    """The launches to select; all of them without a pattern.

    Attributes:
        kernel: Patterns of kernels.
        nvtx: Patterns of NVTX ranges.
        gpu: What the name of the GPU contains, whatever its case; empty for all GPUs.
    """

    kernel: tuple[str, ...] = ()
    nvtx: tuple[str, ...] = ()
    gpu: str = ""

    def __bool__(self) -> bool:
        return bool(self.kernel or self.nvtx or self.gpu)


def select(reports: Iterable[AnalyzedReport], selection: Selection | None) -> tuple[AnalyzedReport, ...]:
    """Keep the launches that are wanted, and the reports that hold any.

    Raises:
        NoMatchError: No launch is wanted; the hint names kernels with similar names.
        UsageError: A pattern cannot be read.
    """
    if not selection:
        return tuple(reports)
    chooser = Chooser(selection)
    found = chooser.chosen(reports)
    chooser.check()
    return found


class Chooser:
    """Choose launches of reports, and remember the names met, for the hint where nothing matches."""

    def __init__(self, selection: Selection) -> None:
        """Read the patterns.

        Raises:
            UsageError: One of them is empty, or no regular expression.
        """
        self._kernel = {pattern: _name_matcher(pattern) for pattern in selection.kernel}
        self._keys = {pattern: _key_matcher(pattern) for pattern in selection.kernel}
        self._nvtx = {pattern: _range_matcher(pattern) for pattern in selection.nvtx}
        self._gpu = selection.gpu
        self._gpus: set[str] = set()
        self._short: dict[str, str] = {}
        self._exact: frozenset[str] = frozenset()
        self._names: dict[str, frozenset[str]] = {}
        self._ranges: dict[str, frozenset[str]] = {}
        self._met: set[str] = set()
        self._chosen = 0

    def chosen(self, reports: Iterable[AnalyzedReport]) -> tuple[AnalyzedReport, ...]:
        """Leave out the launches that are not wanted, and the reports that hold no other."""
        reports = tuple(reports)
        self._learn(one.kernel.name for report in reports for one in report.analyses)
        found = [replace(report, analyses=tuple(filter(self._is_wanted, report.analyses))) for report in reports]
        self._chosen = sum(len(report.analyses) for report in found)
        return tuple(report for report in found if report.analyses)

    def named(self, names: Iterable[str]) -> frozenset[str]:
        """Return those of a timeline's kernels that are wanted: they have names alone, and no keys."""
        met = tuple(dict.fromkeys(names))
        self._learn(met)
        for name in met:
            self._names[name] = self._meant(name, function_of(bare_name(name)), self._short[name])
            self._met |= self._names[name]
        found = frozenset(name for name in met if self._names[name] or not self._kernel)
        self._chosen += len(found)
        return found

    def is_in_range(self, opened: str) -> bool:
        """Return whether launches are wanted that were launched while these ranges were open; empty for none."""
        if opened not in self._ranges:
            self._ranges[opened] = _meeting(self._nvtx, (opened,)) if opened else frozenset()
        self._met |= self._ranges[opened]
        return bool(self._ranges[opened]) or not self._nvtx

    def _learn(self, names: Iterable[str]) -> None:
        """Take the names of all kernels that there are: what the pattern is the short name of is meant alone."""
        self._short = short_names(names)
        self._exact = frozenset(self._short.values()).intersection(self._kernel)

    @property
    def idle(self) -> tuple[str, ...]:
        """Patterns that have matched no launch so far."""
        return tuple(pattern for pattern in (*self._kernel, *self._nvtx) if pattern not in self._met)

    def check(self) -> None:
        """Raise where nothing was chosen, once all reports have come.

        Raises:
            NoMatchError: No launch was wanted.
        """
        if self._chosen:
            return
        if self._gpus and not self._names:
            raise NoMatchError(
                f"no kernel ran on a GPU whose name contains `{printable(self._gpu)}`",
                f"there are: {', '.join(_printable_names(sorted(self._gpus)))}",
            )
        if not self._names:
            raise NoMatchError("there is no kernel to choose from", "`rooflens doctor` says how to record some")
        for what, patterns, seen in (
            ("kernel", self._kernel, self._names_to_suggest()),
            ("NVTX range", self._nvtx, self._open()),
        ):
            if patterns and not self._met.intersection(patterns):
                raise NoMatchError(f"no {what} matches {_either(patterns)}", _hint(patterns, seen))
        kernels, ranges = _either(self._kernel), _either(self._nvtx)
        raise NoMatchError(
            f"no kernel that matches {kernels} was launched in a range that matches {ranges}",
            "drop one of the two",
        )

    def _is_wanted(self, analysis: Analysis) -> bool:
        kernel = analysis.kernel
        if self._gpu:
            self._gpus.add(kernel.gpu or "a GPU that is not named")
            if self._gpu.casefold() not in (kernel.gpu or "").casefold():
                return False
        if kernel.name not in self._names:
            self._names[kernel.name] = self._meant(kernel.name, kernel.function_name, analysis.short_name)
        by_name = self._names[kernel.name] | _meeting(self._keys, (analysis.key,))
        self._met |= by_name
        is_in_range = self.is_in_range(kernel.nvtx_range or "")
        return (bool(by_name) or not self._kernel) and is_in_range

    def _meant(self, name: str, function_name: str, elsewhere: str) -> frozenset[str]:
        """Return the patterns that match a kernel: a kernel's exact short name matches no other kernel."""
        short = self._short[name]
        texts = (*_called(name, function_name), short, elsewhere)
        loose = {pattern: matches for pattern, matches in self._kernel.items() if pattern not in self._exact}
        return _meeting(loose, texts) | self._exact.intersection((short,))

    def _names_to_suggest(self) -> dict[str, str]:
        """Map what may have been meant to the name to suggest: short names to themselves, functions to the first."""
        seen: dict[str, str] = {}
        for name in self._names:
            for written in (self._short[name], function_of(name)):
                seen.setdefault(written, self._short[name])
        return seen

    def _open(self) -> dict[str, str]:
        return {part: part for opened in self._ranges for part in opened.split("/") if part}


def _name_matcher(pattern: str) -> Matcher:
    if pattern.startswith(_REGEX):
        return _regex(pattern)
    return _covers(pattern) if _is_glob(pattern) else lambda name: pattern.casefold() in name.casefold()


def _key_matcher(pattern: str) -> Matcher:
    if pattern.startswith(_REGEX):
        return lambda _: False
    return _covers(pattern)


def _range_matcher(pattern: str) -> Matcher:
    if pattern.startswith(_REGEX):
        return _regex(pattern)
    _is_glob(pattern)
    from rooflens.globs import glob  # noqa: PLC0415 - most commands choose nothing

    found = glob(pattern, begin=_AFTER_SLASH, end=_BEFORE_SLASH)
    return lambda opened: found.match(opened) is not None


def _regex(pattern: str) -> Matcher:
    try:
        found = re.compile(pattern.removeprefix(_REGEX))
    except re.error as error:
        raise UsageError(
            f"`{printable(pattern)}` is not a regular expression: {error}", "a glob needs no `re:`"
        ) from error
    return lambda text: found.search(text) is not None


def _is_glob(pattern: str) -> bool:
    if not pattern.strip():
        raise UsageError("a pattern of kernels or NVTX ranges is empty", "leave it out for all of them")
    return any(sign in pattern for sign in ("*", "?", _CUT))


def _covers(pattern: str) -> Matcher:
    """Match whole texts; the part that a table has cut matches anything, as do the namespaces before it."""
    from rooflens.globs import glob  # noqa: PLC0415 - as above

    found = glob(pattern, begin=_AFTER_NAMESPACES) if _CUT in pattern else glob(pattern)
    return lambda text: found.match(text) is not None


def _called(name: str, function_name: str) -> tuple[str, ...]:
    """Return what a kernel may be called: as its report does, as pages do, and by its function."""
    return tuple(dict.fromkeys((name, plain_name(name), function_of(name), function_name)))


def _meeting(matchers: Mapping[str, Matcher], texts: Iterable[str]) -> frozenset[str]:
    return frozenset(pattern for pattern, matches in matchers.items() if any(map(matches, texts)))


def _either(patterns: Iterable[str]) -> str:
    return some((f"`{pattern}`" for pattern in patterns), " or ")


def _hint(patterns: Iterable[str], seen: Mapping[str, str]) -> str:
    """Suggest names with a similar spelling, or else list all."""
    if not seen:
        return "the reports hold no NVTX ranges: `ncu --nvtx` records them"
    alike = list(dict.fromkeys(name for pattern in patterns for name in _nearest_names(pattern, seen)))
    if alike:
        return f"did you mean {_either(_printable_names(alike))}?"
    names = list(dict.fromkeys(seen.values()))
    more = f", and {len(names) - _SUGGESTED} more" if len(names) > _SUGGESTED else ""
    return f"there are: {', '.join(_printable_names(names[:_SUGGESTED]))}{more}"


def _nearest_names(pattern: str, seen: Mapping[str, str]) -> list[str]:
    """Return the names nearest to what was typed: as a whole, by their beginning, or by one of their words."""
    from difflib import get_close_matches  # noqa: PLC0415 - only where nothing was found

    typed = _LOOSE.sub("", pattern.removeprefix(_REGEX)).casefold()
    forms: dict[str, str] = {}
    for written, name in islice(seen.items(), _COMPARED):
        folded = written.casefold()
        for form in (folded, folded[: len(typed)], *_WORD.findall(folded)):
            forms.setdefault(form, name)
    near = get_close_matches(typed, forms, _SUGGESTED, _LIKENESS)
    return list(dict.fromkeys(forms[form] for form in near))


def _printable_names(names: Iterable[str]) -> list[str]:
    return [printable(cut_name(name, SHORT_NAME_WIDTH)) for name in names]
