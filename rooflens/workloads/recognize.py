"""Recognise from a report's command line which case of a bundled workload ran.

A PyTorch workload is `-m` and this package's harness. A compiled workload has the name given by `build`: workload,
architecture and the SHA-256 of its sources, so that nobody else's program is mistaken for it. The rest of the line must
consist of options that the workload takes, and for a compiled workload include each parameter.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct

from rooflens.errors import UnknownNameError
from rooflens.workloads.commands import HARNESS, IN_TURN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflens.model.cases import Case, Workload

_PROGRAM_FILE = re.compile(r"(?:.*[/\\])?(?P<name>[a-z][a-z0-9_]*)-(?:sm_\d+[a-z]?|native)-[0-9a-f]{64}")
_NUMBER = re.compile(r"-?[0-9]{1,18}")

_HARNESS_OPTIONS = {"case", "iterations", "device", "timing", "check", "seconds"}
_HARNESS_FLAGS = {"toy", "mark-cases"}
_PROGRAM_OPTIONS = {"iterations", "check"}
_HARNESS_ITERATIONS = 1
_PROGRAM_ITERATIONS = 10
"""Defaults of the programs."""


class Recognized(Struct, frozen=True):
    """A bundled workload as it ran.

    Attributes:
        case: The case whose formulas apply.
        parameters: Sizes as given; the case's own sizes if `as_listed`.
        iterations: Repetitions of the work.
    """

    workload: Workload
    case: Case
    parameters: Mapping[str, int]
    iterations: int

    @property
    def as_listed(self) -> bool:
        """True if exactly the case ran, so that its expected limiter applies too."""
        return dict(self.parameters) == dict(self.case.parameters)

    @property
    def source(self) -> str:
        """Where the formulas come from; a case that refers to another case uses its words."""
        for case in self.workload.cases:
            if self.case.source == f"as {case.name}":
                return case.source
        return self.case.source


def recognize(command_line: str | None) -> Recognized | None:
    """Find the workload and case that a profiler's command line ran; None if it ran something else."""
    words = (command_line or "").split()
    try:
        return _harness(words) or _program(words)
    except UnknownNameError:  # a workload or case unknown to this version of the package
        return None


def _workload(name: str) -> Workload:
    from rooflens.workloads.registry import find_workload  # noqa: PLC0415 - most programs are none of ours

    return find_workload(name)


def _harness(words: Sequence[str]) -> Recognized | None:
    """Recognize `python -m rooflens.workloads.torch_harness NAME --case CASE --iterations N`, or `NAME.CASE`."""
    places = [at for at, pair in enumerate(pairwise(words)) if pair == ("-m", HARNESS)]
    if not places or places[-1] + 2 >= len(words):
        return None
    name, *rest = words[places[-1] + 2 :]
    options = _options(rest, _HARNESS_OPTIONS, _HARNESS_FLAGS)
    iterations = _count(options.get("iterations"), _HARNESS_ITERATIONS) if options is not None else None
    if options is None or iterations is None:
        return None
    name, dot, case_name = name.partition(".")
    workload = _workload(name)
    if workload.kind != "torch" or (dot and "case" in options):
        return None
    case = workload.case(case_name or options.get("case"))
    return Recognized(workload, case, case.toy if "toy" in options else case.parameters, iterations)


def _options(words: Sequence[str], names: set[str], flags: set[str]) -> dict[str, str] | None:
    """Parse `--name value`, `--name=value` and `--flag` to the end; None if there is anything else, or a name twice."""
    options: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or name in options or (name not in names and (name not in flags or equals)):
            return None
        if name in names and not equals:
            if not rest:
                return None
            value = rest.pop(0)
        options[name] = value
    return options


def _count(text: str | None, default: int) -> int | None:
    """Parse the number of iterations; None if it is not positive."""
    if text is None:
        return default
    return int(text) if _NUMBER.fullmatch(text) and int(text) > 0 else None


def _program(words: Sequence[str]) -> Recognized | None:
    """Recognize `/cache/rooflens/cuda/saxpy-sm_90-<digest> --n 65536 --iterations 1`."""
    found = [(at, match["name"]) for at, word in enumerate(words) if (match := _PROGRAM_FILE.fullmatch(word))]
    if not found or IN_TURN in words:  # several in turn: each report of one has the words of that one alone
        return None
    at, name = found[-1]
    workload = _workload(name)
    if workload.kind != "cuda":
        return None
    names = set(workload.cases[0].parameters)
    options = _options(words[at + 1 :], names | _PROGRAM_OPTIONS, set())
    if options is None or not names <= options.keys() or not all(map(_NUMBER.fullmatch, options.values())):
        return None
    given = {name: int(value) for name, value in options.items()}
    parameters = {name: given[name] for name in workload.cases[0].parameters}
    case = _case_of(workload, parameters)
    iterations = given.get("iterations", _PROGRAM_ITERATIONS)
    return Recognized(workload, case, parameters, iterations) if case is not None and iterations > 0 else None


def _case_of(workload: Workload, parameters: Mapping[str, int]) -> Case | None:
    """Choose the case that agrees in most parameters; None if cases with different formulas tie."""
    agreeing = {case.name: _agreement(case, parameters) for case in workload.cases}
    most = max(agreeing.values())
    nearest = [case for case in workload.cases if agreeing[case.name] == most]
    formulas = {(case.flop, case.bytes, case.dtype) for case in nearest}
    return nearest[0] if len(formulas) == 1 else None


def _agreement(case: Case, parameters: Mapping[str, int]) -> int:
    return sum(case.parameters[name] == value for name, value in parameters.items())
