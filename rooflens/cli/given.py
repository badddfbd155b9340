"""The options of a command by their names, and those that a command line gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from rooflens.model.compare.given import Given


def option_names(command: click.Command) -> dict[str, click.Option]:
    """Return a command's options by their name on the command line, without dashes."""
    return {
        name.removeprefix("--"): one
        for one in command.params
        if isinstance(one, click.Option)
        for name in one.opts
        if name.startswith("--")
    }


def given_options(ctx: click.Context) -> tuple[Given, ...]:
    """Return what was asked of the command: the options that were given, but for how the answer is written."""
    from rooflens.model.compare.given import HOW_WRITTEN, Given

    given = []
    for name, option in option_names(ctx.command).items():
        value = ctx.params.get(str(option.name))
        if ctx.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE and name not in HOW_WRITTEN:
            values = value if isinstance(value, tuple) else () if option.is_flag else (value,)
            given.append(Given(name, tuple(map(str, values))))
    return tuple(given)
