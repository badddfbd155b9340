"""Names of kernels short enough to stand in a chart."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from rooflens.model import units
from rooflens.report.format import plain_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rooflens.report.rows import Launch

LABEL_WIDTH = 26
NARROW_LABEL_WIDTH = 15
"""Characters of a name in a chart."""

_ARGUMENTS = re.compile(r"[<({].*", re.DOTALL)
_PARAMETERS = re.compile(r"\(.*", re.DOTALL)
_TOLD_BY_ARGUMENT = re.compile(r"^kernel\d*$", re.IGNORECASE)
"""Names of functions that say nothing: libraries write what they do into the first template argument."""

_FIRST_ARGUMENT = re.compile(r"<(?:\w+::)*(\w+)")
_BLANKS = re.compile(r"\s+")


def short_names(launches: Iterable[Launch], width: int = LABEL_WIDTH) -> dict[str, str]:
    """Name kernels by their function alone, with the template arguments where two would have one name; by group key."""
    kernels = {launch.group_key: launch for launch in launches}
    functions = {key: _function(launch) for key, launch in kernels.items()}
    shared = Counter(functions.values())
    return {
        key: units.cut_middle(function, width) if shared[function] == 1 else _with_arguments(kernels[key], width)
        for key, function in functions.items()
    }


def _function(launch: Launch) -> str:
    """Take the last part of the function's path."""
    path = launch.analysis.kernel.function_name or launch.name
    function = _clean(_ARGUMENTS.sub("", path).rpartition("::")[2]) or _clean(launch.name)
    argument = _FIRST_ARGUMENT.search(plain_name(launch.name)) if _TOLD_BY_ARGUMENT.match(function) else None
    return f"{function}<{argument[1]}>" if argument else function


def _with_arguments(launch: Launch, width: int) -> str:
    name = plain_name(launch.name).replace("(anonymous namespace)::", "")
    return units.cut_name(_clean(_PARAMETERS.sub("", name)) or _clean(launch.name), width)


def _clean(name: str) -> str:
    """Put a name on one line."""
    return _BLANKS.sub(" ", name).strip()
