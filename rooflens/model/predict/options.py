"""Options of a forecast besides its operation and sizes: command, Python and MCP offer them from this one list."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, get_args

from msgspec import Struct

from rooflens.errors import UnknownNameError, UsageError
from rooflens.model.predict.rows import DTYPES
from rooflens.model.roofline.datasheets import LinkKind

DEFAULT_GPU = "h100-sxm"
"""Used if no GPU is named."""


class ForecastOption(Struct, frozen=True):
    """One option as every door offers it.

    Attributes:
        meaning: Starts in lower case and ends without a full stop.
        default: None if it depends on operation and GPU.
        choices: The allowed words, if there are only a few.
        kind: `float` for a number, which must be above 0.
    """

    name: str
    meaning: str
    default: str | None = None
    choices: tuple[str, ...] = ()
    kind: type[str | float] = str


OPTIONS: tuple[ForecastOption, ...] = (
    ForecastOption("gpu", "short name of a GPU, or part of it", DEFAULT_GPU),
    ForecastOption("dtype", f"type of the operands: {', '.join(DTYPES)}; by default the operation's"),
    ForecastOption("out_dtype", "type of a product's results; by default the operands', or bf16 for narrower ones"),
    ForecastOption("link", "link between GPUs; by default the fastest", choices=get_args(LinkKind)),
    ForecastOption(
        "network_gb_per_s", "GB/s that a GPU sends over a network between GPUs, in place of a link", kind=float
    ),
    ForecastOption("measured_ms", "measured time in ms, to compare with the floor", kind=float),
)


class Options(Struct, frozen=True, kw_only=True):
    """The chosen options, a field for each of `OPTIONS`; None for the default.

    Raises:
        UnknownNameError: A value is not one of the option's choices.
        UsageError: A number is not above 0.
    """

    gpu: str = DEFAULT_GPU
    dtype: str | None = None
    out_dtype: str | None = None
    link: LinkKind | None = None
    network_gb_per_s: float | None = None
    measured_ms: float | None = None

    @classmethod
    def of(cls, asked: Mapping[str, Any]) -> tuple[Options, dict[str, int]]:
        """Take the options out of what was asked by name; what is left are sizes of the operation."""
        names = {one.name for one in OPTIONS}
        options = {name: value for name, value in asked.items() if name in names and value is not None}
        return cls(**options), {name: value for name, value in asked.items() if name not in names}

    def __post_init__(self) -> None:
        """Reject invalid values."""
        for one in OPTIONS:
            value = getattr(self, one.name)
            if one.choices and value not in (None, *one.choices):
                raise UnknownNameError(one.name, value, one.choices)
            if one.kind is float and value is not None and not (isfinite(value) and value > 0):
                raise UsageError(f"{one.name} must be a positive number, not {value:g}", "for example 1.7")
