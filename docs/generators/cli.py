"""Write docs/reference/cli.md: every command with its options, defaults and examples, as defined for click."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

import click

from generators.texts import MADE, joined, table
from rooflens import errors
from rooflens.cli.group import SECTIONS, main

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_HEAD = f"""\
# The command line

Every command, option and exit code. `rooflens COMMAND --help` says the same.

{MADE}

Data goes to stdout, everything else to stderr. Where stdout is no terminal, lines stay whole and have no colour.
"""

MANY = 5
"""Commands of a group from which on what all of them take is written once."""


def page() -> str:
    """Write the page."""
    return joined(_HEAD, *_exits(), *_sections())


def _exits() -> Iterator[str]:
    codes = {
        0: "it did what was asked",
        errors.GateFailedError.exit_code: "a gate failed: `--fail-on` found a program or kernel slower",
    }
    for kind in _below(errors.RooflensError):
        if "exit_code" in vars(kind):
            said = re.sub(r"\s+", " ", inspect.getdoc(kind) or "").partition(". ")[0].rstrip(".")
            codes.setdefault(kind.exit_code, said[0].lower() + re.sub(r" \(exit code [^)]*\)", "", said[1:]))
    codes[errors.RooflensError.exit_code] = "an input is bad or gone: a report, a store, a file"
    yield "## Exit codes\n"
    yield from table(("code", "when"), ((f"{code}", codes[code]) for code in sorted(codes)))


def _below(kind: type[errors.RooflensError]) -> Iterator[type[errors.RooflensError]]:
    for lower in kind.__subclasses__():
        yield lower
        yield from _below(lower)


def _sections() -> Iterator[str]:
    for title, names in SECTIONS.items():
        yield f"\n## {title}"
        for name in names:
            command = main.get_command(click.Context(main), name)
            assert command is not None
            yield from _command(f"rooflens {name}", command)


def _command(path: str, command: click.Command, known: Collection[str] = ()) -> Iterator[str]:
    """Write one command; for a group, options common to all its commands are written once, and are `known` below it."""
    context = click.Context(command, info_name=path)
    if isinstance(command, click.Group):
        yield f"\n### `{path}`\n\n{_paragraphs(command.help)}"
        below = {name: command.get_command(context, name) for name in command.list_commands(context)}
        found = [_options(each, context) for each in below.values() if each]
        common = (
            [option for option in found[0] if all(option in others for others in found)] if len(found) > MANY else []
        )
        if common:
            yield "\nAll of them take:\n"
            yield from table(("option", "meaning"), common)
        for name, each in below.items():
            assert each is not None
            yield from _command(f"{path} {name}", each, {option for option, _ in common})
        return
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    yield f"\n### `{path}`\n\n```text\n{usage}\n```\n\n{_paragraphs(command.help)}"
    options = [(option, meaning) for option, meaning in _options(command, context) if option not in known]
    if options:
        yield ""
        yield from table(("option", "meaning"), options)
    examples = re.findall(r"^  (\S.*)$", command.epilog or "", flags=re.MULTILINE)
    if examples:
        yield "\n```text\n" + "\n".join(examples) + "\n```"


def _options(command: click.Command, context: click.Context) -> list[tuple[str, str]]:
    options = (parameter for parameter in command.params if isinstance(parameter, click.Option))
    return [_option(option, context) for option in options if not option.hidden]


def _paragraphs(text: str | None) -> str:
    return "\n\n".join(_paragraph(part) for part in inspect.cleandoc(text or "").split("\n\n"))


def _paragraph(text: str) -> str:
    if text.startswith("\b"):  # click's sign for lines that stay as they are
        return f"```text\n{inspect.cleandoc(text.removeprefix(chr(8)).strip(chr(10)))}\n```"
    return re.sub(r"\s+", " ", text).strip().replace("<", "&lt;")


def _option(option: click.Option, context: click.Context) -> tuple[str, str]:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    kind = "" if option.is_flag else f" `{option.make_metavar(context)}`"
    record = option.get_help_record(context)
    meaning = re.sub(r"\s+", " ", record[1] if record else "").strip()
    return names + kind, re.sub(r"\s*\[(default: [^\]]*)\]", r" (\1)", meaning)
