"""The one table of thresholds: defaults with their source in `thresholds.toml`, overridable by a file."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tomllib
from functools import cache
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict, replace

from rooflens.checking import parse_toml


class Thresholds(Struct, frozen=True):
    """Limits of the classes; shares are fractions, 0 to 1. `thresholds.toml` says where each comes from."""

    most_share: float
    nearly_all_share: float
    quarter_share: float
    little_share: float
    negligible_share: float
    noise_share: float
    trace_share: float
    noise_bytes: float
    untold_gain: float
    far_more: float
    several: float
    small_block_threads: float
    large_block_threads: float
    large_tile_bytes: float
    at_roof_share: float
    at_roof_device_share: float
    copy_share: float
    best_copy_share: float
    done_share: float
    tile_registers: float
    bound_share: float
    balanced_lead: float
    overhead_duration_ns: float
    small_grid_waves: float
    dominant_stall: float
    full_occupancy_share: float
    occupancy_gap_share: float
    short_warp_instructions: float
    tail_idle_share: float
    limiter_gain: float
    plateau_share: float
    short_duration_ns: float
    slowdown: float
    issue_filled: float
    open_room: float
    shortest_launch_ns: float
    contributing_share: float
    contributing_cost_share: float
    limiting_waste_share: float
    active_threads: float
    matrix_pipe_share: float

    @property
    def digest(self) -> str:
        """Short digest that distinguishes results of different thresholds."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]


@cache
def default_thresholds() -> Thresholds:
    """Return the thresholds that ship with the package."""
    text = Path(__file__).with_name("thresholds.toml").read_text(encoding="utf-8")
    return Thresholds(**{name: float(value) for name, value in tomllib.loads(text)["thresholds"].items()})


def override_thresholds(text: str, source: str) -> Thresholds:
    """Return the defaults, overridden by the values of a TOML text.

    Raises:
        InputError: Not TOML, an unknown name, or a value that is not a positive number.
    """
    hint = "the file has one table, [thresholds]; its names are those of `rooflens/model/verdict/thresholds.toml`"
    document = parse_toml(text, f"`{source}`", hint)
    document.check_keys(("thresholds",))
    table = dataclasses.replace(document.table("thresholds"), path="")
    known = Thresholds.__struct_fields__
    if unknown := [name for name in table if name not in known]:
        raise table.error(f"unknown threshold `{unknown[0]}`", f"known are: {', '.join(sorted(known))}")
    values = {name: table.number(name, zero=True) for name in table}
    for name, value in values.items():
        if name.endswith("_share") and value > 1:
            raise table.error(f"threshold `{name}` is a fraction and at most 1, not {value:g}", "60 % is 0.6")
    return replace(default_thresholds(), **values)
