"""From the line that somebody types to the line that the commands read: words by the table `rooflens.meant`, and order.

What stands for itself by its place is given its option here: the store behind reports, the limit of a gate, a program
without dashes, the sizes of an operation.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rooflens.cli.console import say
from rooflens.cli.settings import option_names
from rooflens.cli.usage import is_report
from rooflens.meant import BY_COMMAND, BY_OPTION

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import click

_PATIENCE_SECONDS = 10.0
"""How long a line without words waits for the first byte of a pipe: a program may hold one open and never write."""

_PER_CENT = re.compile(r"\d+(?:\.\d+)?\s*%")
_SIZE_LIST = re.compile(r"[1-9]\d*(?:[x*,][1-9]\d*)*")
_FILES_OF_REPORT = frozenset({"-o", "--output", "--html", "--pdf", "--png", "--svg"})


def is_piped() -> bool:
    """Return whether something was piped into a line without words; waits for a program that is about to write."""
    try:
        number = sys.stdin.fileno()
        kind = os.fstat(number)
    except (AttributeError, OSError, ValueError):
        return False
    if stat.S_ISREG(kind.st_mode):
        return kind.st_size > 0
    if not stat.S_ISFIFO(kind.st_mode):
        return False
    if sys.platform == "win32":  # there it selects sockets alone
        return True
    return bool(select.select([number], [], [], _PATIENCE_SECONDS)[0])


def with_command(args: Sequence[str]) -> list[str]:
    """Replace a word for a command, and say so; a file or folder of that name alone is read."""
    at = next((i for i, word in enumerate(args) if not word.startswith("-")), len(args))
    before, rest = args[:at], [*args[at + 1 :]]
    word = args[at] if at < len(args) else ""
    meant = BY_COMMAND.get(word)
    if meant is None or (not rest and os.path.lexists(word)):
        return [*args]
    name, *more = meant.split()
    if not name.startswith("-"):
        say(f"note: `rooflens {word}` is `rooflens {meant}`")
    if name == "--help" and rest:
        return [*before, rest[0], name]
    if more[-1:] == ["--fail-on"]:
        rest, more = _with_limit(rest, more)
    return [*before, name, *rest, *more]


def _with_limit(rest: list[str], option: list[str]) -> tuple[list[str], list[str]]:
    """Leave a gate's limit to its option; a gate without one keeps the open option, which is then asked for."""
    is_given = any(BY_OPTION.get(word.partition("=")[0], word.partition("=")[0]) == option[0] for word in rest)
    return rest, [] if is_given or any(map(_PER_CENT.fullmatch, rest)) else option


def other_command(name: str, args: Sequence[str]) -> str:
    """Return the command that does what was asked of another: `analyze` writes no file, and a word is no report."""
    if name == "analyze" and any(word.partition("=")[0] in _FILES_OF_REPORT for word in args):
        return "report"
    if name == "explain" and args and not any(word.startswith("-") or os.path.lexists(word) for word in args):
        return "about" if is_word(" ".join(args)) else name
    return name


def is_word(text: str) -> bool:
    """Return whether `about` explains exactly this."""
    from rooflens.writing.about import explains

    return not is_report(text) and explains(text)


def with_options(command: click.Command, args: Sequence[str]) -> list[str]:
    """Replace words for a command's options."""
    taken = _params_by_name(command)
    made: list[str] = []
    for i, word in enumerate(args):
        if word == "--":
            return [*made, *args[i:]]
        if not word.startswith("-") or _wants_value(made, taken):
            made.append(word)
            continue
        typed, sign, value = word.partition("=")
        meant = BY_OPTION.get(typed, "").split() if typed not in taken else []
        if not meant or meant[0] not in taken or not {*meant[1:]} <= {*_choices(taken[meant[0]])}:
            made.append(word)
        else:
            made += [*meant, *([value] if sign else [])]
    return made


def _params_by_name(command: click.Command) -> dict[str, click.Parameter]:
    """Map each spelling of an option to its click parameter."""
    return {name: param for param in command.params for name in (*param.opts, *param.secondary_opts)}


def _wants_value(made: Sequence[str], taken: dict[str, click.Parameter]) -> bool:
    """Return whether the last word is an option whose value comes next."""
    last = taken.get(made[-1]) if made else None
    is_alone = getattr(last, "is_flag", False) or isinstance(getattr(last, "flag_value", None), str)
    return last is not None and not is_alone


def _choices(param: click.Parameter) -> Sequence[str]:
    return getattr(param.type, "choices", ())


def _places(command: click.Command, args: Sequence[str]) -> Iterator[int]:
    """Yield where the words are that are neither options nor their values."""
    taken = _params_by_name(command)
    for i, word in enumerate(args):
        if word == "--":
            return
        if not (word.startswith("-") and word != "-") and not _wants_value(args[:i], taken):
            yield i


_OF_PROGRAMS = frozenset({"profile", "collect"})


def as_meant(name: str, command: click.Command, args: list[str]) -> list[str]:
    """Return a command's line with the options that are meant; what follows a program is the program's own."""
    if name in _OF_PROGRAMS:
        args = in_order(name, command, args)
    return in_order(name, command, with_options(command, args))


def in_order(name: str, command: click.Command, args: list[str]) -> list[str]:
    """Insert the option that a bare word stands for: `--store`, `--fail-on`, `--report`, or `--` before a program."""
    places = list(_places(command, args))
    if name == "ingest" and len(places) > 1 and "--store" not in {word.partition("=")[0] for word in args}:
        last = places[-1]
        return [*args[:last], "--store", *args[last:]] if _may_be_store(args[last]) else args
    if name == "compare" and (limits := [i for i in places if _PER_CENT.fullmatch(args[i])]):
        i = limits[0]
        return args if os.path.lexists(args[i]) else [*args[:i], "--fail-on", *args[i:]]
    if name == "metrics" and places and is_report(args[places[0]]):
        return [*args[: places[0]], "--report", *args[places[0] :]]
    if name in _OF_PROGRAMS and "--" not in args and places:
        first = places[0]
        return [*args[:first], "--", *args[first:]] if _is_program(args[first]) else args
    return args


def _may_be_store(name: str) -> bool:
    """Return whether a name is a store or can become one: it is there and no report, or not there and not named so."""
    from rooflens.model.store import store_at

    if is_report(name):
        return False
    place = Path(name)
    return store_at(name) is not None or not place.exists() or (place.is_dir() and not any(place.iterdir()))


def _is_program(name: str) -> bool:
    from rooflens.workloads.registry import load_workloads

    is_named = name.startswith((".", "/", "~")) or shutil.which(name) is not None
    return is_named and name not in {one.name for one in load_workloads()}


def with_sizes(command: click.Command, args: Sequence[str]) -> list[str]:
    """Give an operation's sizes their options: `4096 4096 4096`, `4096x4096x4096`, and `-m 4096`."""
    sizes = [name for name, option in option_names(command).items() if option.required]
    dashed = {f"-{name}" for name in option_names(command)}
    words = [f"-{word}" if word.partition("=")[0].casefold() in dashed else word for word in args]
    places = [i for i in _places(command, words) if _SIZE_LIST.fullmatch(words[i])]
    values = [value for i in places for value in re.split(r"[x*,]", words[i])]
    rest = [word for i, word in enumerate(words) if i not in places]
    given = {word.partition("=")[0].casefold().lstrip("-") for word in rest}
    missing = [size for size in sizes if size not in given]
    if len(values) != len(missing):
        return words
    return [*rest, *(part for size, value in zip(missing, values, strict=True) for part in (f"--{size}", value))]
