"""Write docs/reference/json.md from the schema of `analyze --format json`."""

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


def page() -> str:
    """Write the page."""
    schema = json.loads(resources.files("rooflens").joinpath("report/analysis.schema.json").read_text(encoding="utf-8"))
    return joined(_HEAD, *table(("field", "type", "unit", "meaning"), _rows(schema, "")))


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
