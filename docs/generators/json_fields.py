"""Write docs/reference/json.md and forecast.md from the schemas of `analyze` and `predict --format json`."""

from __future__ import annotations

import json
from importlib import resources
from typing import TYPE_CHECKING, Any

from generators.texts import MADE, joined, shown_unit, table, unit_of
from rooflens.model.records import LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD = f"""\
# The JSON of `analyze`

Every field of `rooflens analyze --format json`, with its type, unit and meaning.

{MADE}

A missing value is null, never 0. Keys may be added without notice; those that are here keep their meaning while
`schema_version` stays. The [schema](../../rooflens/report/analysis.schema.json) itself comes with the
package. `[]` is each entry of a list, `{{}}` each value under a name.
"""
_FORECAST_HEAD = f"""\
# The JSON of `predict`

Every field of `rooflens predict --format json`, with its type, unit and meaning.

{MADE}

A rate that is unknown is null, and so is its time, which then bounds nothing. A single prediction is an object, several
are a list under `predictions`; an entry of `parts` has the keys of its own floor again. The
[schema](../../rooflens/report/forecast.schema.json) comes with the package.
"""


def page() -> str:
    """Write the page of `analyze`."""
    return joined(_HEAD, *table(_COLUMNS, _rows(_schema("analysis"), "")))


def forecast_page() -> str:
    """Write the page of `predict`."""
    rows = _rows(_schema("forecast")["$defs"]["prediction"], "")
    return joined(_FORECAST_HEAD, *table(_COLUMNS, (row for row in rows if not row[0].startswith("`parts[]."))))


_COLUMNS = ("field", "type", "unit", "meaning")


def _schema(answer: str) -> dict[str, Any]:
    text = resources.files("rooflens").joinpath(f"report/{answer}.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def _rows(schema: dict[str, Any], path: str) -> Iterator[tuple[str, str, str, str]]:
    for name, field in schema.get("properties", {}).items():
        yield f"`{path}{name}`", _type(field), _unit(name, field), field["description"]
        yield from _rows(*_inside(field, f"{path}{name}"))


def _inside(field: dict[str, Any], path: str) -> tuple[dict[str, Any], str]:
    """Return the contents of lists and mappings; the memory levels are a mapping with known names."""
    field = _named(field)
    below = field.get("properties", {})
    if isinstance(field.get("items"), dict):
        return _inside(field["items"], f"{path}[]")
    if isinstance(field.get("additionalProperties"), dict):
        return _inside(field["additionalProperties"], f"{path}{{}}")
    if tuple(below) == LEVELS:
        return _inside(below[LEVELS[0]], f"{path}{{}}")
    return field, f"{path}."


def _named(field: dict[str, Any]) -> dict[str, Any]:
    """Return the object of a field that may be null instead."""
    return field["anyOf"][0] if "anyOf" in field else field


def _unit(name: str, field: dict[str, Any]) -> str:
    if "unit" in field:
        return shown_unit(field["unit"])
    kinds = field.get("type")
    return unit_of(name) if "number" in ([kinds] if isinstance(kinds, str) else kinds or ()) else ""


def _type(field: dict[str, Any]) -> str:
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return ", ".join("null" if value is None else f"`{value}`" for value in field["enum"])
    if "anyOf" in field:
        return " or ".join(_type(one) for one in field["anyOf"])
    kinds = field["type"]
    return kinds if isinstance(kinds, str) else " or ".join(kinds)
