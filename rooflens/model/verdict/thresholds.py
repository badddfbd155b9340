"""The one table of thresholds: defaults with their source in `thresholds.toml`, overridable by a file."""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from importlib.resources import files

from rooflens.errors import InputError


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Limits of the classes; shares are fractions, 0 to 1. `thresholds.toml` says where each comes from."""

    at_roof_share: float
    bound_share: float
    balanced_lead: float
    overhead_gap_share: float
    overhead_duration_ns: float
    small_grid_waves: float
    low_occupancy: float
    eligible_warps: float
    dominant_stall: float
    imbalance_ratio: float
    tail_share: float
    short_duration_ns: float
    slowdown: float
    share_over_one: float
    clock_spread: float
    resident_write_bytes: float
    resident_write_share: float
    conflict_share: float
    sectors_per_request: float
    pipe_explained: float
    smem_part_of_l1: float

    @property
    def digest(self) -> str:
        """Short digest that tells results of different thresholds apart."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]


@cache
def default_thresholds() -> Thresholds:
    """Return the thresholds that ship with the package."""
    text = files("rooflens.model.verdict").joinpath("thresholds.toml").read_text(encoding="utf-8")
    return Thresholds(**{name: float(value) for name, value in tomllib.loads(text)["thresholds"].items()})


def override_thresholds(text: str, source: str) -> Thresholds:
    """Return the defaults with the values of a TOML text put over them.

    Raises:
        InputError: Not TOML, an unknown name, or a value that is no positive number.
    """
    hint = "the file has one table, [thresholds]; docs/method.md shows one"
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"`{source}` is no valid TOML: {error}", hint) from error
    table = document.get("thresholds")
    if not isinstance(table, dict) or document.keys() != {"thresholds"}:
        raise InputError(f"`{source}` is not a file of thresholds", hint)
    known = {field.name for field in fields(Thresholds)}
    for name, value in table.items():
        if name not in known:
            raise InputError(f"`{source}`: unknown threshold `{name}`", f"known are: {', '.join(sorted(known))}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise InputError(f"`{source}`: threshold `{name}` must be a number from 0 up, not `{value}`", hint)
        if name.endswith("_share") and value > 1:
            raise InputError(f"`{source}`: threshold `{name}` is a fraction and at most 1, not {value}", "60 % is 0.6")
    return replace(default_thresholds(), **{name: float(value) for name, value in table.items()})
