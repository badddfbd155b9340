"""Names of kernels short enough to stand in a chart: the function alone, and what tells it from its namesakes."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from rooflens import format as fmt
from rooflens.format import plain_name
from rooflens.model.records import Analysis
from rooflens.model.summary import kernel_name

Key = TypeVar("Key", bound="Hashable")

FULL_LABEL_WIDTH = 64
LABEL_WIDTH = 26
NARROW_LABEL_WIDTH = 15
"""Characters of a name in a chart: where there is much room, where there is little, on a telephone."""

ARGUMENT_WIDTH = 12
"""Characters of a template argument in such a name."""

_ARGUMENTS = re.compile(r"[<({].*", re.DOTALL)
_WORDS = re.compile(r"\w+")
_BLANKS = re.compile(r"\s+")
_TOLD_BY_ARGUMENT = re.compile(r"^kernel\d*$", re.IGNORECASE)
"""Names of functions that say nothing: libraries write what they do into the first template argument."""

_FIRST_ARGUMENT = re.compile(r"<(?:\w+::)*(\w+)")


def short_names(kernels: Mapping[Key, Analysis], width: int = LABEL_WIDTH) -> dict[Key, str]:
    """Name kernels by their function, and namesakes by the first template argument they differ in; by any key."""
    functions = {key: _function(analysis) for key, analysis in kernels.items()}
    namesakes: dict[str, list[Key]] = {}
    for key, function in functions.items():
        namesakes.setdefault(function, []).append(key)
    names: dict[Key, str] = {}
    for function, keys in namesakes.items():
        arguments = _differing(keys, kernels) if len(keys) > 1 else [_telling(function, kernels[keys[0]])]
        names |= {key: _cut(function, argument, width) for key, argument in zip(keys, arguments, strict=True)}
    return names


def _function(analysis: Analysis) -> str:
    """Take the last part of the function's path."""
    name = kernel_name(analysis)
    path = analysis.kernel.function_name or name
    return _one_line(_ARGUMENTS.sub("", path).rpartition("::")[2]) or _one_line(name)


def _telling(function: str, analysis: Analysis) -> str:
    argument = _FIRST_ARGUMENT.search(plain_name(kernel_name(analysis))) if _TOLD_BY_ARGUMENT.match(function) else None
    return argument[1] if argument else ""


def _differing(keys: Sequence[Key], kernels: Mapping[Key, Analysis]) -> list[str]:
    """Find for each of several kernels the first word of its name that not all of them share."""
    words = [_WORDS.findall(plain_name(kernel_name(kernels[key]))) for key in keys]
    longest = max(len(own) for own in words)
    padded = [[*own, *[""] * (longest - len(own))] for own in words]
    place = next((i for i, column in enumerate(zip(*padded, strict=True)) if len(set(column)) > 1), None)
    return ["" if place is None else own[place] for own in padded]


def _cut(function: str, argument: str, width: int) -> str:
    """Write a name in so many characters."""
    if not argument:
        return fmt.cut_middle(function, width)
    shown = fmt.cut_middle(argument, min(ARGUMENT_WIDTH, width // 2))
    return f"{fmt.cut_middle(function, width - len(shown) - 2)}<{shown}>"


def _one_line(name: str) -> str:
    return _BLANKS.sub(" ", name).strip()
