"""Names in docstrings and on the Python page exist."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import altair as alt

import rooflens as rl
from rooflens.api.figures import Sizes
from rooflens.cli.group import COMMANDS
from rooflens.model.about import named
from rooflens.model.counters.metric import DETAILS
from rooflens.model.counters.table import NAMES
from rooflens.model.knowledge.items import KINDS
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.predict.rows import ELEMENT_BYTES
from rooflens.model.records import LEVELS
from rooflens.model.roofline.roofs import RoofLine
from rooflens.model.roofline.units import PIPE_ROWS
from rooflens.model.store.tables import ROOFLINE
from rooflens.report.roofline.rows import POINT_KEYS, ROOF_KEYS

RECORDS = (
    *(
        "records",
        "verdict_classes",
        "unprofiled",
        "predict.forecast",
        "predict.compared",
        "predict.other_gpu",
        "program.program",
    ),
    *("roofline.datasheets", "compare.ladder", "compare.compare", "compare.matching"),
)
MODULES = (
    *(import_module(f"rooflens.model.{name}") for name in RECORDS),
    *(
        import_module(f"rooflens.{name}")
        for name in ("errors", "writing.annotating", "ingest.load", "api.frames", "api.figures")
    ),
)
EXAMPLES = {"all", "adamw", "export_chrome_trace"}
"""Words that are no attributes: a level meaning all, a part of a kernel's name, and a function of PyTorch."""


def _public() -> Iterator[tuple[str, Any]]:
    for name in rl.__all__:
        thing = getattr(rl, name)
        yield name, thing
        if inspect.isclass(thing):
            members = {key: value for key, value in vars(thing).items() if not key.startswith("_")}
            yield from ((f"{name}.{key}", value) for key, value in members.items())


def _attributes() -> set[str]:
    """Return all attributes of the API's objects."""
    classes = [thing for module in MODULES for thing in vars(module).values() if inspect.isclass(thing)]
    classes += [thing for _, thing in _public() if inspect.isclass(thing)]
    return {name for one in classes for name in (*dir(one), one.__name__)} | {*dir(rl)}


def _values() -> set[str]:
    """Return all words that are values: of literals, tables and options."""
    literals = [thing for module in MODULES for thing in vars(module).values() if get_origin(thing) is Literal]
    stalls = {name for kind in KINDS for name in named(kind)}
    tensors = [f"tensor_{dtype}" for dtype in ELEMENT_BYTES]
    pipes = [row.key for row in PIPE_ROWS]
    return {
        *(value for one in literals for value in get_args(one)),
        *(
            *POINT_KEYS,
            *ROOF_KEYS,
            *ROOFLINE.names,
            *RoofLine.__struct_fields__,
            *Sizes.__annotations__,
            *dir(alt.LayerChart),
        ),
        *(*LEVELS, *pipes, *tensors, *OPERATIONS, *ELEMENT_BYTES, *DETAILS, *NAMES, *COMMANDS, *stalls),
        *EXAMPLES,
    }


def test_docstrings_name_only_what_there_is() -> None:
    """Every name in backticks is an attribute, an argument or a value."""
    known, wrong = _attributes() | _values(), []
    for name, thing in _public():
        inner = thing.fget if isinstance(thing, property) else getattr(thing, "func", thing)
        text = (inspect.getdoc(inner) or "").partition(">>>")[0]
        arguments = {*inspect.signature(inner).parameters} if callable(inner) else set()
        wrong += [f"{name}: {word}" for word in re.findall(r"`([a-z_]\w*)`", text) if word not in known | arguments]
    assert wrong == []


def test_the_page_on_python_names_only_what_there_is() -> None:
    """Every `.name` on the Python page is an attribute, or a file extension."""
    page = (Path(__file__).parents[2] / "docs/reference/api.md").read_text("utf-8")
    known = _attributes() | {"ncu", "html", "md", "pdf", "png", "svg", "json", "csv"}
    assert [word for word in re.findall(r"`\.([a-z_]\w*)", page) if word not in known] == []
