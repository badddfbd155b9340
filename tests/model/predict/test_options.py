"""The options of a forecast are defined once, and every interface offers them."""

from __future__ import annotations

from inspect import signature
from typing import get_overloads

from msgspec.structs import fields

import rooflens
from rooflens.cli.commands.predict import _command
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.predict.options import OPTIONS, Options


def test_every_door_offers_every_option() -> None:
    """The record, the command line and Python have the same names, each explained in Python's docstring."""
    names = [one.name for one in OPTIONS]
    assert [one.name for one in fields(Options)] == names
    assert {one.name: one.default for one in fields(Options)} == {one.name: one.default for one in OPTIONS}
    lacking = [
        (door, name)
        for door, offered in (
            ("command line", {param.name for param in _command(OPERATIONS["gemm"]).params}),
            ("Python", signature(get_overloads(rooflens.predict)[0]).parameters),
            ("docstring", {name for name in names if f"        {name}: " in (rooflens.predict.__doc__ or "")}),
        )
        for name in names
        if name not in offered
    ]
    assert lacking == []
    assert [one.name for one in OPTIONS if not one.meaning] == []
