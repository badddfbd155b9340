"""Options of commands as data: click reads them where it is installed, and argparse where nothing is."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from rooflens.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from click.shell_completion import CompletionItem

    Completion = Callable[..., list[CompletionItem]]


@dataclass(frozen=True, slots=True)
class CommandOption:
    """An option of a command.

    Attributes:
        name: As it is typed: `--launch-count`.
        says: Its line in the command's help.
        kind: What its value is; a flag has none.
        metavar: What stands for its value in the help.
        choices: The values that it may have; empty for any.
        default: Its value if it is not given; shown in the help unless it is empty.
        least: Smallest value of a number.
        is_many: It may be given several times; its value is then a tuple.
        key: Name of its value in Python, if that is not its own with underscores.
        short: One letter with a dash that stands for it.
    """

    name: str
    says: str
    kind: Literal["text", "flag", "number", "seconds", "file"] = "text"
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    default: Any = None
    least: int = 0
    is_many: bool = False
    key: str = ""
    short: str = ""

    @property
    def keyed(self) -> str:
        """Name of its value in Python."""
        return self.key or self.name.removeprefix("--").replace("-", "_")


def with_click(option: CommandOption, completion: Completion | None = None) -> Callable[..., Any]:
    """Return click's decorator for an option.

    Args:
        option: The option.
        completion: Names that a shell may complete.
    """
    import click

    types = {
        "number": click.IntRange(option.least),
        "seconds": click.FloatRange(0, min_open=True),
        "file": click.Path(path_type=Path, dir_okay=False),
    }
    more: dict[str, Any] = {"is_flag": True} if option.kind == "flag" else {"default": option.default}
    if option.choices:
        more["type"] = click.Choice(option.choices)
    elif option.kind in types:
        more["type"] = types[option.kind]
    if completion is not None:
        more["shell_complete"] = completion
    return click.option(
        *filter(None, (option.short, option.name, option.keyed)),
        metavar=option.metavar,
        multiple=option.is_many,
        show_default=bool(option.default),
        help=option.says,
        **more,
    )


class PlainParser(argparse.ArgumentParser):
    """A parser of the standard library whose errors are ours.

    Raises:
        UsageError: By `parse_args`, if the line cannot be parsed.
    """

    def __init__(self, prog: str, options: Sequence[CommandOption], says: str) -> None:
        """Add the options."""
        super().__init__(prog=prog, description=says, allow_abbrev=False)
        self._repeated = [option.keyed for option in options if option.is_many]
        for option in options:
            self._add_option(option)

    def error(self, message: str) -> NoReturn:
        """Raise the error instead of ending the process."""
        raise UsageError(message, f"{self.prog} --help")

    def _add_option(self, option: CommandOption) -> None:
        names = (*filter(None, (option.short,)), option.name)
        default = f"  [default: {option.default}]" if option.default else ""
        told: dict[str, Any] = {"dest": option.keyed, "help": f"{option.says}{default}".replace("%", "%%")}
        if option.kind == "flag":
            self.add_argument(*names, action="store_true", **told)
            return
        kinds: dict[str, Callable[[str], Any]] = {
            "text": str,
            "file": Path,
            "seconds": _seconds,
            "number": lambda text: _whole_number(text, option.least),
        }
        self.add_argument(
            *names,
            action="append" if option.is_many else "store",
            type=kinds[option.kind],
            choices=option.choices or None,
            default=None if option.is_many else option.default,
            metavar=option.metavar,
            **told,
        )

    def values(self, words: Sequence[str]) -> dict[str, Any]:
        """Parse a command line; return the values by key, of repeated options as tuples."""
        found = vars(self.parse_args(words))
        return {**found, **{name: tuple(found[name] or ()) for name in self._repeated}}


def _whole_number(text: str, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a valid integer") from None
    if number < least:
        raise argparse.ArgumentTypeError(f"{number} is not in the range x>={least}")
    return number


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a valid float") from None
    if not seconds > 0:
        raise argparse.ArgumentTypeError(f"{seconds} is not in the range x>0")
    return seconds
