"""The command line: one group, a short function per command, and the only place where errors are shown.

Heavy modules are imported inside the commands, so that `--help` is fast.
"""

from __future__ import annotations

import errno
import importlib
from pathlib import Path
from typing import Any

import click

from rooflens import __version__
from rooflens.cli.console import echo, show_error
from rooflens.cli.streams import flush, prepare
from rooflens.cli.usage import NamedGroup, is_report
from rooflens.errors import InputError, RooflensError, StoppedError, lacking_package
from rooflens.machine import collect_seldom, without_pandas

SECTIONS = {
    "Read reports": ("analyze", "report", "explain", "hotspots", "annotate", "ingest", "share", "viewer"),
    "Compare and predict": ("compare", "predict"),
    "Collect, on a machine with a GPU": ("profile", "collect", "calibrate"),
    "Look up": ("about", "workloads", "gpus", "metrics", "doctor", "completion"),
    "For agents": ("mcp", "skill"),
}
"""The commands as `--help` lists them. Each is a file in `commands/`, imported when used."""

ALIASES = {"diff": "compare"}
"""Alias -> command."""

COMMANDS = tuple(name for names in SECTIONS.values() for name in names)

_AS_WRITTEN = [[name] for name in (*COMMANDS, *ALIASES)]
_BY_PLACE = frozenset({"ingest", "compare", "explain", "metrics", "profile", "collect"})
"""Commands in whose lines a word may stand for an option by its place."""

_SUMMARY = 100
"""Characters of a command's summary; longer ones would wrap, as they are not cut."""


class _ErrorShowingGroup(NamedGroup):
    """Show errors that the user or the system can fix as `error:` and `hint:`; anything else stays a traceback."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line; without arguments, analyze what is piped in on stdin."""
        if not ctx.resilient_parsing and args[:1] not in _AS_WRITTEN:
            from rooflens.cli.lines import is_piped, with_command

            args = with_command(args) if args else ["analyze", "-"] if is_piped() else []
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        from rooflens.cli.ending import ended_by_signals

        prepare()
        collect_seldom()
        try:
            with ended_by_signals():
                try:
                    with without_pandas():
                        return super().invoke(ctx)
                finally:
                    flush()  # while errors can still be shown
        except RooflensError as error:
            show_error(error)
            ctx.exit(error.exit_code)
        except ImportError as error:
            lacking = lacking_package(error)
            if lacking is None:
                raise
            show_error(lacking)
            ctx.exit(lacking.exit_code)
        except OSError as error:
            show_error(_of_system(error))
            ctx.exit(1)
        except KeyboardInterrupt:  # click would end with 1, as after bad input
            click.echo(err=True)
            ctx.exit(StoppedError.exit_code)
        except MemoryError:
            show_error(
                InputError(
                    "out of memory", "read fewer reports at once, or ingest them into a store: `rooflens ingest`"
                )
            )
            ctx.exit(1)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        cmd_name = ALIASES.get(cmd_name, cmd_name)
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"rooflens.cli.commands.{cmd_name}")
        found = getattr(module, cmd_name)
        return found if isinstance(found, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; instead of a command, a report is analyzed, and output of ncu is explained."""
        name, command, rest = self._meant(ctx, args)
        if name is None or command is None or ctx.resilient_parsing:
            return name, command, rest
        from rooflens.cli.settings import PREFIX, use_file, with_names

        name, command, rest = self._as_meant(ctx, ALIASES.get(name, name), command, rest)
        if ctx.params["isolated"]:
            ctx.auto_envvar_prefix = None  # which is what click names the variables of a command's options after
        else:
            use_file(ctx, command, name, COMMANDS)
        prefix = ctx.auto_envvar_prefix and f"{PREFIX}_{name.upper()}"
        return name, with_names(command, prefix), rest

    def _as_meant(
        self, ctx: click.Context, name: str, command: click.Command, rest: list[str]
    ) -> tuple[str, click.Command, list[str]]:
        """Return the command, and its line, that do what is meant; a line of paths alone is read as it is written."""
        if isinstance(command, click.Group) or (name not in _BY_PLACE and not any(map(_is_option, rest))):
            return name, command, rest
        from rooflens.cli.lines import as_meant, other_command

        name = other_command(name, rest)
        command = self.get_command(ctx, name) or command
        return name, command, as_meant(name, command, rest)

    def _meant(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in {*COMMANDS, *ALIASES} and not ctx.resilient_parsing and _is_to_read(args[0]):
            return "analyze", self.get_command(ctx, "analyze"), args
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            from rooflens.cli.lines import is_word
            from rooflens.writing.about import is_ncu_message

            if is_ncu_message(args[0]) or is_word(" ".join(args)):
                return "about", self.get_command(ctx, "about"), args
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section, names in SECTIONS.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(section):
                formatter.write_dl([(name, found.get_short_help_str(_SUMMARY)) for name, found in commands if found])


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _is_to_read(name: str) -> bool:
    """Return whether the name means a report (existing or not), stdin, or a folder."""
    try:
        return name == "-" or Path(name).is_dir() or is_report(name)
    except OSError:  # a name too long for a file
        return False


def _of_system(error: OSError) -> InputError:
    """Explain an unexpected error of the operating system: its words, the file, and what may help."""
    place = f": `{error.filename}`" if error.filename is not None else ""
    if told := _SYSTEM_ERRORS.get(error.errno or 0):
        return InputError(*told)
    if isinstance(error, FileNotFoundError) and not _is_somewhere():
        return InputError("the current folder was deleted", "change to another one")
    return InputError(f"{error.strerror or error}{place}")


def _is_somewhere() -> bool:
    try:
        return bool(Path.cwd())
    except OSError:
        return False


_SYSTEM_ERRORS = {
    errno.ENOSPC: ("no disk space left", "free some space, or write elsewhere"),
    errno.EMFILE: ("too many files are open for this process", "allow more with `ulimit -n 1024`"),
    errno.ENFILE: ("too many files are open on this machine", "close other programs, and try again"),
}


@click.group(
    cls=_ErrorShowingGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "ROOFLENS"},
)
@click.version_option(__version__, prog_name="rooflens", allow_from_autoenv=False)
@click.option(
    "--isolated",
    is_flag=True,
    envvar="ROOFLENS_NO_SETTINGS",
    allow_from_autoenv=False,
    help="Take no defaults from files or the environment, as with ROOFLENS_NO_SETTINGS=1.",
)
@click.pass_context
def main(ctx: click.Context, *, isolated: bool) -> None:  # noqa: ARG001 - `resolve_command` asks it
    """See what limits every GPU kernel.

    Opens Nsight Compute reports, computes arithmetic intensity and positions on the hierarchical roofline, and says for
    each kernel what bounds it, how far it is from that limit, and which move can help. `rooflens REPORT` is short for
    `rooflens analyze REPORT`, `rooflens diff` for `rooflens compare`, and `--json` for `--format json`. Defaults of
    options come from `rooflens.toml`, from `[tool.rooflens]` in pyproject.toml, and from `ROOFLENS_COMMAND_OPTION`,
    unless --isolated turns that off; a gate (`compare --fail-on`) takes them from its line alone.
    """
    if ctx.invoked_subcommand is None:
        from rooflens.cli.welcome import welcome

        echo(welcome(Path()))


def mcp_main() -> None:
    """Start `rooflens mcp` under the name that installers of MCP servers look for."""
    import sys

    main(["mcp", *sys.argv[1:]], prog_name="rooflens")
