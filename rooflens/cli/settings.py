"""The user's defaults of options: from `rooflens.toml`, pyproject.toml or the environment.

Click applies them to options missing on the command line: `default_map` holds the file's values, and
`auto_envvar_prefix` names the environment variables, which take precedence. `--isolated` turns both off.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from rooflens.cli.console import say
from rooflens.errors import MOST_LISTED, UnknownNameError, UsageError
from rooflens.files import read_text
from rooflens.format import cut_middle

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from rooflens.checking import CheckedTable
    from rooflens.model.compare.given import Given

PREFIX = "ROOFLENS"
"""`ROOFLENS_COMPARE_THRESHOLD=5%` is `rooflens compare --threshold 5%`."""

FILE = "rooflens.toml"
_PROJECT = "pyproject.toml"
_ROOT = ".git"
_IGNORE = "`rooflens --isolated` reads no such file"
_SETTINGS_HINT = f'for example `[compare]`, and below it `threshold = "5%"`; {_IGNORE}'
_MOST_SETTINGS_BYTES = 1 << 20
"""Size of a settings file; 100 kB are a large pyproject.toml."""

_LONGEST_NAME = 80
"""Characters of a wrong name in an error."""

_SETTINGS_FILE = "rooflens.settings_file"

NOT_IN_FILES = frozenset({"ncu", "ncu-args", "kill", "executor", "force", "fail-on", "per-kernel", "floor"})
"""Options that run or end programs, that say where work and data go, what is overwritten, and what a gate fails:
somebody else's folder must not set them."""


def file_settings(folder: Path, commands: Collection[str]) -> CheckedTable | None:
    """Read the nearest settings file: tables of options by command; None if there is no file.

    Args:
        folder: Where to start; the search continues upwards to the root of the repository.
        commands: The existing commands.

    Raises:
        InputError: The file cannot be read, is no TOML, or has a key that is no table of a command.
        UnknownNameError: The command does not exist.
    """
    found = next((table for file in _settings_files(folder) if (table := _read_settings(file)) is not None), None)
    if found is None:
        return None
    for name in found:
        if name not in commands:
            kind = f"command of {found.source}"
            raise UnknownNameError(kind, cut_middle(name, _LONGEST_NAME), commands, "rooflens --help")
        found.table(name)
    return found


def _settings_files(folder: Path) -> Iterator[Path]:
    """Yield the files that may exist, nearest first, as paths from the folder."""
    try:
        here = folder.resolve()
    except OSError:
        return
    for up, place in enumerate((here, *here.parents)):
        for name in (FILE, _PROJECT):
            file = Path(*[".."] * up, name)
            if os.path.lexists(folder / file):
                yield folder / file
        if os.path.lexists(place / _ROOT):
            return


def _read_settings(file: Path) -> CheckedTable | None:
    """Return the settings for us in a file; None if a project's file has none.

    Raises:
        InputError: It cannot be read, or is no TOML: what it says must not be lost without a word.
    """
    from rooflens.checking import parse_toml

    text = read_text(file, _IGNORE, is_named=False, most_bytes=_MOST_SETTINGS_BYTES)
    if file.name == FILE:
        return parse_toml(text, f"`{file}`", _SETTINGS_HINT)
    if "rooflens" not in text:
        return None  # what other tools read there is theirs to judge
    document = parse_toml(text, f"`{file}`", _SETTINGS_HINT)
    if "tool" not in document or "rooflens" not in (tools := document.table("tool")):
        return None
    return tools.table("rooflens")


def use_file(ctx: click.Context, command: click.Command, name: str, commands: Collection[str]) -> None:
    """Make a command's table of the nearest settings file its defaults.

    Args:
        ctx: The context of the main group.
        command: The command.
        name: Its name.
        commands: The existing commands.

    Raises:
        InputError: As `file_settings`, or a value is of the wrong type, or must not come from a file.
        UnknownNameError: The file names a command or an option that does not exist.
    """
    from dataclasses import replace

    found = file_settings(Path(), commands)
    if found is not None and name in found:
        table = replace(found.table(name), hint=f"`rooflens {name} --help` says what each option takes; {_IGNORE}")
        ctx.default_map = {name: defaults_of(command, ctx, table)}
        ctx.meta[_SETTINGS_FILE] = found.source.strip("`")


def defaults_of(command: click.Command, ctx: click.Context, table: CheckedTable) -> dict[str, Any]:
    """Turn a table of options into click's defaults; keys are spelled as on the command line.

    Options shared by the commands of a group go to each command that has them.
    """
    if isinstance(command, click.Group):
        return _of_group(command, ctx, table)
    known = option_names(command)
    made = {}
    for key in table:
        name = key.replace("_", "-")
        if name not in known:
            raise _unknown(command, key, table, known)
        made[str(known[name].name)] = _default(known[name], ctx, table, key)
    return made


def _of_group(group: click.Group, ctx: click.Context, table: CheckedTable) -> dict[str, Any]:
    from dataclasses import replace

    commands = {name: found for name in group.list_commands(ctx) if (found := group.get_command(ctx, name))}
    names = {option for command in commands.values() for option in option_names(command)}
    for key in table:
        if key not in commands and key.replace("_", "-") not in names:
            raise _unknown(group, key, table, sorted(names))
    made = {}
    for name, command in commands.items():
        known = option_names(command)
        shared = {key: table.values[key] for key in table if key not in commands and key.replace("_", "-") in known}
        made[name] = defaults_of(command, ctx, replace(table, values=shared))
        if name in table:
            made[name] |= defaults_of(command, ctx, table.table(name))
    return made


def _unknown(command: click.Command, key: str, table: CheckedTable, choices: Collection[str]) -> UnknownNameError:
    kind = f"option of `{command.name}` ({table.source})"
    return UnknownNameError(kind, cut_middle(key, _LONGEST_NAME), [*choices], f"rooflens {command.name} --help")


def option_names(command: click.Command) -> dict[str, click.Option]:
    """Return a command's options by their name on the command line, without dashes."""
    return {
        name.removeprefix("--"): one
        for one in command.params
        if isinstance(one, click.Option)
        for name in one.opts
        if name.startswith("--")
    }


def _default(option: click.Option, ctx: click.Context, table: CheckedTable, key: str) -> Any:
    """Return the value of an option, as click would read it.

    Raises:
        InputError: It is of the wrong type, the option cannot have it, or it must not come from a file.
    """
    name = key.replace("_", "-")
    if name in NOT_IN_FILES:
        raise table.error(f"--{name} cannot be set in a file", _ON_COMMAND_LINE)
    kind, noun = _TOML_KINDS[type(option.type)]
    values: list[Any] = table.values_of(key, kind, noun, is_list=option.multiple)
    if any(isinstance(value, str) and "://" in value for value in values):
        raise table.error(f"an address, as of --{name}, cannot be set in a file", _ON_COMMAND_LINE)
    for value in values:
        try:
            option.type.convert(value, option, ctx)
        except click.BadParameter as error:
            said = cut_middle(error.message.removesuffix("."), MOST_LISTED)
            raise table.error(f"{table.name(key)}: {said}") from error
    return values if option.multiple else values[0]


_ON_COMMAND_LINE = f"give it on the command line, so that no folder of others chooses it; {_IGNORE}"

_TOML_KINDS: Mapping[type, tuple[type, str]] = {
    click.types.BoolParamType: (bool, "true or false"),
    click.IntRange: (int, "a whole number"),
    click.types.FloatParamType: (float, "a number"),
    click.FloatRange: (float, "a number"),
    click.types.StringParamType: (str, "a text in quotes"),
    click.Choice: (str, "a text in quotes"),
    click.Path: (str, "a text in quotes"),
}
"""Type of an option -> the type that its value has in a file, and that in words."""


def with_names(command: click.Command, prefix: str | None) -> click.Command:
    """Name environment variables after command-line options: click would use the parameter's name.

    Args:
        command: The command.
        prefix: What the names begin with; None for no variables.
    """
    for name, option in option_names(command).items():
        if isinstance(command, click.Group):
            option.allow_from_autoenv = False  # these are for options outside the group's commands
        elif option.name != name.replace("-", "_"):
            option.envvar = None if prefix is None else f"{prefix}_{name}".replace("-", "_").upper()
    return command


def given_options(ctx: click.Context) -> tuple[Given, ...]:
    """Return what was asked of the command: options that were given, but for how it is written, if that was typed."""
    from rooflens.model.compare.given import COMMAND_LINE, HOW_WRITTEN, Given

    found = []
    for name, option in option_names(ctx.command).items():
        sources = {
            ParameterSource.COMMANDLINE: COMMAND_LINE,
            ParameterSource.DEFAULT_MAP: ctx.meta.get(_SETTINGS_FILE, FILE),
            ParameterSource.ENVIRONMENT: str(option.envvar or f"{ctx.auto_envvar_prefix}_{option.name}").upper(),
        }
        source = ctx.get_parameter_source(str(option.name))
        value = ctx.params.get(str(option.name))
        if source in sources and name != "help" and value is not False:
            values = value if isinstance(value, tuple) else () if option.is_flag else (value,)
            found.append(Given(name, tuple(map(str, values)), sources[source]))
    return tuple(one for one in found if not (one.is_typed and one.option in HOW_WRITTEN))


def say_defaults(ctx: click.Context) -> None:
    """Name on stderr the options that nobody typed, with the file or variable that they come from."""
    if _UNTYPED & {ctx.get_parameter_source(str(one.name)) for one in ctx.command.params}:
        from rooflens.model.compare.given import defaults_words

        say(f"note: {defaults_words(given_options(ctx))}")


_UNTYPED = {ParameterSource.DEFAULT_MAP, ParameterSource.ENVIRONMENT}


def refuse_defaults(ctx: click.Context, what: str) -> None:
    """Refuse options that nobody typed, where the command line alone must decide; how an answer is written is free.

    Args:
        ctx: The command's context.
        what: What the command line decides, for the error: "a gate".

    Raises:
        UsageError: There is such an option.
    """
    from rooflens.model.compare.given import HOW_WRITTEN

    for one in given_options(ctx):
        if not one.is_typed and one.option not in HOW_WRITTEN:
            raise UsageError(
                f"{what} goes by its command line alone, and `{one.source}` sets `{one.typed}`",
                f"type --{one.option} if you want it, or leave all such defaults out: `rooflens --isolated "
                f"{ctx.info_name} ...`",
            )
