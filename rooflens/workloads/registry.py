"""The workloads: every folder here with a `workload.toml` is one. Adding a folder registers it.

`rooflens.model.cases` has the records that they are read into.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rooflens.errors import InputError
from rooflens.model.cases import Case, Expectation, Workload

FOLDER = Path(__file__).parent
RANGE_NAME = "rooflens"
"""Name of the one start/end NVTX range that a workload marks: what is profiled."""


@cache
def load_workloads() -> tuple[Workload, ...]:
    """Load every workload, sorted by name."""
    files = sorted(FOLDER.glob("*/workload.toml"))
    return tuple(parse_workload(file.parent, file.read_text(encoding="utf-8")) for file in files)


def find_workload(name: str) -> Workload:
    """Return a workload by name.

    Raises:
        InputError: There is none of that name.
    """
    for workload in load_workloads():
        if workload.name == name:
            return workload
    raise InputError(f"no workload is called `{name}`", "`rooflens workloads` lists them")


def parse_workload(folder: Path, text: str) -> Workload:
    """Make a workload of the text of its `workload.toml`; its name is the folder's.

    Raises:
        InputError: The text is no TOML or lacks something.
    """
    try:
        table = tomllib.loads(text)
        return Workload(
            name=folder.name,
            kind=table["kind"],
            summary=table["summary"],
            program=table["program"],
            folder=folder,
            cases=tuple(_case(case) for case in table["case"]),
        )
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise InputError(f"`{folder.name}/workload.toml` is not a workload: {error}") from error


def _case(table: dict[str, Any]) -> Case:
    return Case(
        name=table["name"],
        parameters=MappingProxyType(table["parameters"]),
        dtype=table["dtype"],
        source=table["source"],
        expect=Expectation(table["expect"]["bound"], table["expect"].get("resource"), table["expect"]["why"]),
        flop=table.get("flop"),
        bytes=table.get("bytes"),
        toy=MappingProxyType({**table["parameters"], **table.get("toy", {})}),
    )
