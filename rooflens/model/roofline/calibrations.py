"""Calibrations on disk: one JSON file for each GPU, clock and driver, written whole or not at all."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rooflens.checking import CheckedTable, parse_json
from rooflens.errors import InputError
from rooflens.files import base_folder, read_text, write_whole
from rooflens.model.calibration import RATE_UNITS, MeasuredRates, Rate

SCHEMA_VERSION = 1

_CLOCK_STEP_HZ = 50e6
"""Runs whose clocks round to the same step replace each other: runs at one nominal clock differ by as much."""

_IDENTITY = frozenset({"gpu", "compute_capability", "driver", "sm_clock_hz", "rates"})
_STORED = _IDENTITY | {"schema_version", "measured_unix_s"}
_SPREAD = frozenset({"unit", "median", "min", "max", "repetitions"})
_NAME = r".*\S.*"
_CALIBRATE_HINT = "measure again: `rooflens calibrate`"


def calibrations_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of the calibrations: below ROOFLENS_HOME where it is set, else in the user's data folder."""
    environ = os.environ if environ is None else environ
    if home := environ.get("ROOFLENS_HOME"):
        return Path(home) / "calibrations"
    return base_folder("XDG_DATA_HOME", ".local/share", environ) / "rooflens" / "calibrations"


def save_attainable(attainable: MeasuredRates, folder: Path) -> Path:
    """Write a calibration, over the one of the same GPU, clock and driver, and return its file.

    Raises:
        ValueError: A rate was scaled: only what was measured is kept.
        InputError: The folder cannot be written.
    """
    if any(rate.scaled_from_hz is not None for rate in attainable.rates.values()):
        raise ValueError("a scaled rate is not a measurement")
    file = folder / _file_name(attainable)
    hint = "set ROOFLENS_HOME to a folder that can be written"
    write_whole(file, attainable_to_json(attainable), hint=hint, durable=True)
    return file


def load_calibrations(
    folder: Path, on_damaged: Callable[[InputError], None] | None = None
) -> tuple[MeasuredRates, ...]:
    """Read every calibration of a folder, the newest first; none where there is no folder.

    Args:
        folder: Where they are.
        on_damaged: Called with each unreadable file, which is left out; without it the first error is raised.

    Raises:
        InputError: A file is damaged, and `on_damaged` is None; the message names it.
    """
    found = []
    for file in sorted(folder.glob("*.json")):
        try:
            found.append(parse_attainable(read_text(file, _CALIBRATE_HINT, is_named=False), str(file)))
        except InputError as error:
            if on_damaged is None:
                raise
            on_damaged(error)
    return tuple(sorted(found, key=lambda one: one.measured_unix_s, reverse=True))


def attainable_to_json(attainable: MeasuredRates) -> str:
    """Write a calibration as its file holds it."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "gpu": attainable.gpu,
        "compute_capability": attainable.compute_capability,
        "driver": attainable.driver,
        "sm_clock_hz": attainable.sm_clock_hz,
        "measured_unix_s": attainable.measured_unix_s,
        "rates": {name: _rate_document(rate) for name, rate in attainable.rates.items()},
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def parse_attainable(text: str, source: str, measured_unix_s: int | None = None) -> MeasuredRates:
    """Build a calibration from the text of its file, or from what the measuring program printed.

    Args:
        text: A JSON document.
        source: What to call it in errors.
        measured_unix_s: When it was measured, for the program's output, which does not say; a file says it itself.

    Raises:
        InputError: Not JSON; a key unknown, missing or of the wrong kind; a unit that is not the rate's own.
    """
    document = parse_json(text, f"`{source}` is not a calibration", _CALIBRATE_HINT)
    is_stored = measured_unix_s is None
    document.check_keys(_STORED if is_stored else _IDENTITY)
    if is_stored and document.values["schema_version"] != SCHEMA_VERSION:
        raise document.error(f"schema version {document.values['schema_version']!r}, this is {SCHEMA_VERSION}")
    rates = document.table("rates")
    if not rates.values:
        raise document.error("`rates` holds nothing")
    rates.check_keys((), RATE_UNITS)
    return MeasuredRates(
        gpu=document.text("gpu", _NAME),
        compute_capability=document.text("compute_capability", r"\d+\.\d+"),
        driver=document.text("driver", _NAME),
        sm_clock_hz=document.number("sm_clock_hz"),
        measured_unix_s=document.count("measured_unix_s") if measured_unix_s is None else measured_unix_s,
        rates=MappingProxyType({name: _rate(rates.table(name), RATE_UNITS[name]) for name in rates}),
    )


def _file_name(attainable: MeasuredRates) -> str:
    megahertz = round(attainable.sm_clock_hz / _CLOCK_STEP_HZ) * round(_CLOCK_STEP_HZ / 1e6)
    parts = (attainable.gpu, f"{megahertz}mhz", attainable.driver)
    return "_".join(re.sub(r"[^a-z0-9.]+", "-", part.casefold()).strip("-.") for part in parts) + ".json"


def _rate_document(rate: Rate) -> dict[str, Any]:
    document = {name: getattr(rate, name) for name in ("unit", "median", "min", "max", "repetitions")}
    return document if rate.sm_clock_hz is None else document | {"sm_clock_hz": rate.sm_clock_hz}


def _rate(table: CheckedTable, unit: str) -> Rate:
    table.check_keys(_SPREAD, ("sm_clock_hz",))
    table.one_of("unit", (unit,))
    low, median, high = (table.number(part) for part in ("min", "median", "max"))
    if not low <= median <= high:
        raise table.error(f"`{table.path.removesuffix('.')}` must have min <= median <= max")
    clock = table.number("sm_clock_hz") if "sm_clock_hz" in table else None
    return Rate(median, low, high, unit, table.count("repetitions"), clock)
