"""Rooflines as one self-contained Altair chart: rows, colours and names of its own, to compose with other charts.

The page holds rows by name, takes colours from its theme and sets parameters by their names. A notebook has none of
these, and two rooflines side by side may not share a parameter: each gets names of its own.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
from msgspec import Struct

from rooflens.report.html.theme import DARK, LIGHT, LOOKS, is_hollow, vega_config
from rooflens.report.plane.legend import FILLS
from rooflens.report.plane.marks import Spec, unchecked

_EXPRESSIONS = {"calculate", "expr", "filter", "labelExpr", "test"}
"""Keys whose texts are expressions."""
_QUOTED = r"'(?:[^'\\]|\\.)*'"


@unchecked
def inlined(specs: Sequence[Spec], *, dark: bool) -> alt.VConcatChart:
    """Make a chart of specifications as the page has them, one below another.

    Words and lines are drawn for a light or a dark ground; the ground itself, axes and legends follow Altair's theme.
    """
    styles = vega_config(DARK if dark else LIGHT, dark=dark)["style"]
    colours = {bound: look.dark if dark else look.light for bound, look in LOOKS.items()}
    parts = []
    for spec in specs:
        own = hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:6]
        names = "|".join(re.escape(param["name"]) for param in spec["params"])
        names_in_text = re.compile(rf"{_QUOTED}|(?<![\w.])(?:{names})\b")
        zoomed = frozenset(view for param in spec["params"] for view in param.get("views", ()))
        part = _Part(spec["datasets"], styles, colours, zoomed, own, names_in_text)
        chart = {key: value for key, value in spec.items() if key not in {"$schema", "datasets"}}
        parts.append(alt.VConcatChart.from_dict(part.inline(chart), validate=False))
    return alt.vconcat(*parts, spacing=32)


class _Part(Struct, frozen=True):
    """What is written into one specification.

    Attributes:
        zoomed: Views that a parameter names; no other needs a name.
        own: Ends the names of its parameters and views.
        names: Finds a parameter in an expression, or a quoted text, in which there is none.
    """

    tables: Mapping[str, Any]
    styles: Mapping[str, Mapping[str, Any]]
    colours: Mapping[str, str]
    zoomed: frozenset[str]
    own: str
    names: re.Pattern[str]

    def inline(self, value: Any, key: str = "") -> Any:
        """Write rows, colours and names into the value of a key."""
        if isinstance(value, list):
            return [self.inline(item, key) for item in value]
        if isinstance(value, str):
            return self._renamed(value, key)
        if not isinstance(value, dict):
            return value
        if key == "data":
            return {"values": self.tables[value["name"]]}
        if key == "mark":
            value = {**self.styles.get(value.get("style", ""), {}), **value}
            value.pop("style", None)
        if key == "scale" and self.colours.keys() >= set(map(str, value.get("domain", ("",)))):
            fills = {bound: "transparent" if is_hollow(bound) else colour for bound, colour in self.colours.items()}
            of = fills if value.get("range") == FILLS else self.colours
            value = (
                value
                if isinstance(value.get("range"), list)
                else {**value, "range": [of[at] for at in value["domain"]]}
            )
        if key == "params" and "value" in value:
            return value | {"name": self._renamed(value["name"], "name")}
        if key == "title":
            value = {"anchor": "start", "frame": "group", **value}
        if key in {"vconcat", "layer"} and value.get("name") not in self.zoomed:
            value = {name: item for name, item in value.items() if name != "name"}
        return {name: self.inline(item, name) for name, item in value.items()}

    def _renamed(self, text: str, key: str) -> str:
        if key in {"name", "views"}:
            return f"{text}_{self.own}"
        if key not in _EXPRESSIONS:
            return text
        return self.names.sub(lambda found: found[0] if found[0].startswith("'") else f"{found[0]}_{self.own}", text)
