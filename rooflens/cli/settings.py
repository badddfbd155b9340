"""The user's defaults of options: from `rooflens.toml`, pyproject.toml or the environment.

Click applies them to options missing on the command line: `default_map` holds the file's values, and
`auto_envvar_prefix` names the environment variables, which take precedence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rooflens.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

PREFIX = "ROOFLENS"
"""`ROOFLENS_COMPARE_FAIL_ON=5%` is `rooflens compare --fail-on 5%`."""

FILE = "rooflens.toml"
_PROJECT = "pyproject.toml"
_ROOT = ".git"
_HINT = 'for example `[compare]`, and below it `fail-on = "5%"`; in pyproject.toml `[tool.rooflens.compare]`'

NOT_IN_FILES = frozenset({"ncu", "ncu-args", "executor", "force"})
"""Options for programs, destinations of work or files to overwrite: somebody else's folder must not set them."""


def file_settings(folder: Path, commands: Collection[str]) -> dict[str, Mapping[str, Any]]:
    """Read the nearest settings file: tables of options by command; empty if there is none.

    Args:
        folder: Where to start; the search continues upwards to the root of the repository.
        commands: The existing commands.

    Raises:
        InputError: The file cannot be parsed, or has a key that is no table of a command.
        UnknownNameError: The command does not exist.
    """
    for file in _files(folder):
        found = _read(file)
        if found is None:
            continue
        for name, table in found.items():
            if name not in commands:
                raise UnknownNameError(f"command of `{file.name}`", name, commands, "rooflens --help")
            if not isinstance(table, dict):
                raise InputError(f"{file.name}: `{name}` is not a table of options", _HINT)
        return found
    return {}


def _files(folder: Path) -> Iterator[Path]:
    try:
        here = folder.resolve()
    except OSError:
        return
    for place in (here, *here.parents):
        yield place / FILE
        yield place / _PROJECT
        if (place / _ROOT).exists():
            return


def _read(file: Path) -> dict[str, Any] | None:
    """Return the settings for us in a file; None if the file does not exist or has none."""
    try:
        if not file.is_file():
            return None
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    if file.name == _PROJECT and "rooflens" not in text:
        return None
    import tomllib

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        if file.name == _PROJECT:
            return None  # other tools will complain
        raise InputError(f"{file.name}: {error}", _HINT) from error
    if file.name == FILE:
        return document
    tools = document.get("tool", {})
    ours = tools.get("rooflens") if isinstance(tools, dict) else None
    return ours if isinstance(ours, dict) else None


def defaults_of(command: click.Command, ctx: click.Context, table: Mapping[str, Any]) -> dict[str, Any]:
    """Turn a table of options into click's defaults; keys are spelled as on the command line.

    Options shared by the commands of a group go to each command that has them.

    Raises:
        UnknownNameError: The option does not exist.
        InputError: The option must not come from a file.
    """
    if isinstance(command, click.Group):
        return _of_group(command, ctx, table)
    known = option_names(command)
    made = {}
    for key, value in table.items():
        name = key.replace("_", "-")
        if name not in known:
            raise UnknownNameError(f"option of `{command.name}`", key, list(known), f"rooflens {command.name} --help")
        made.update(_default(known[name], name, value))
    return made


def _of_group(group: click.Group, ctx: click.Context, table: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    idle = {key for key, value in table.items() if not isinstance(value, dict)}
    names: set[str] = set()
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if command is None:
            continue
        known = option_names(command)
        names |= known.keys()
        shared = {key: table[key] for key in table if key.replace("_", "-") in known}
        idle -= shared.keys()
        own = table.get(name, {})
        made[name] = defaults_of(command, ctx, {**shared, **(own if isinstance(own, dict) else {})})
    idle |= {key for key, value in table.items() if isinstance(value, dict) and key not in made}
    for key in sorted(idle):
        raise UnknownNameError(f"option of `{group.name}`", key, sorted(names), f"rooflens {group.name} --help")
    return made


def option_names(command: click.Command) -> dict[str, click.Option]:
    """Return a command's options by their name on the command line, without dashes."""
    return {
        name.removeprefix("--"): one
        for one in command.params
        if isinstance(one, click.Option)
        for name in one.opts
        if name.startswith("--")
    }


def _default(option: click.Option, name: str, value: Any) -> dict[str, Any]:
    values = value if isinstance(value, list) else [value]
    if name in NOT_IN_FILES or any(isinstance(one, str) and "://" in one for one in values):
        what = f"--{name}" if name in NOT_IN_FILES else f"an address, as of --{name},"
        hint = "give it on the command line or in the environment, so that no folder of others chooses it"
        raise InputError(f"{what} cannot be set in a file", hint)
    many = option.multiple or option.nargs != 1
    return {option.name: [value] if many and not isinstance(value, list) else value}


def with_names(command: click.Command, prefix: str) -> click.Command:
    """Name environment variables after command-line options: click would use the parameter's name."""
    for name, option in option_names(command).items():
        if isinstance(command, click.Group):
            option.allow_from_autoenv = False  # these are for options outside the group's commands
        elif option.name != name.replace("-", "_"):
            option.envvar = f"{prefix}_{name}".replace("-", "_").upper()
    return command


def written_out(command: click.Command, args: list[str]) -> list[str]:
    """Rewrite `--json` as `--format json` if a command has that format and no `--json` option."""
    known = option_names(command)
    style = known.get("format")
    if "json" in known or style is None or "json" not in getattr(style.type, "choices", ()):
        return args
    end = args.index("--") if "--" in args else len(args)
    parts = (["--format", "json"] if arg == "--json" and at < end else [arg] for at, arg in enumerate(args))
    return [part for pair in parts for part in pair]
