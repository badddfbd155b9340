"""Names of kernels short enough to stand in a chart: the function alone, and what tells it from its namesakes."""

from __future__ import annotations

from collections.abc import Mapping

from rooflens import format as fmt
from rooflens.model import keys

FULL_LABEL_WIDTH = 64
LABEL_WIDTH = 26
NARROW_LABEL_WIDTH = 15
"""Characters of a name in a chart: where there is much room, where there is little, on a telephone."""

ARGUMENT_WIDTH = 12
"""Characters of a template argument in such a name."""


def short_names(kernels: Mapping[str, str], width: int = LABEL_WIDTH) -> dict[str, str]:
    """Shorten kernel names to at most `width` characters, by the keys given."""
    names = keys.short_names(kernels.values())
    return {key: _cut_name(names[name], width) for key, name in kernels.items()}


def _cut_name(name: str, width: int) -> str:
    """Shorten a name, keeping the template arguments that tell it from its namesakes."""
    function, bracket, arguments = name.partition("<")
    if len(name) <= width or not bracket:
        return fmt.cut_middle(name, width)
    shown = fmt.cut_middle(arguments.removesuffix(">"), min(ARGUMENT_WIDTH, width // 2))
    return f"{fmt.cut_middle(function, width - len(shown) - 2)}<{shown}>"
