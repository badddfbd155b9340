"""The command line: one group, one short function a command, and the one place where errors are shown.

Heavy modules are imported inside the commands, so that `--help` answers at once.
"""

from __future__ import annotations

import errno
import importlib
import io
import sys
from typing import Any

import click

from rooflens import __version__
from rooflens.cli.console import show_error
from rooflens.errors import InputError, RooflensError

COMMANDS = (
    "profile",
    "collect",
    "ingest",
    "store",
    "analyze",
    "report",
    "hotspots",
    "compare",
    "history",
    "predict",
    "calibrate",
    "workloads",
    "gpus",
    "metrics",
    "doctor",
)
"""The commands as `--help` lists them: in the order of the work. Each is a file of `commands/`, imported when used."""


class _Group(click.Group):
    """Show the errors a user can mend as `error:` and `hint:`; anything else stays a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # a terminal that is no UTF-8 shows `?`, and goes on
        try:
            return super().invoke(ctx)
        except RooflensError as error:
            show_error(error)
            ctx.exit(error.exit_code)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            show_error(InputError("no space left to write to", "free some, or write elsewhere"))
            ctx.exit(1)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name not in COMMANDS:
            return None
        found = getattr(importlib.import_module(f"rooflens.cli.commands.{cmd_name}"), cmd_name)
        return found if isinstance(found, click.Command) else None


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="rooflens")
def main() -> None:
    """See which wall every GPU kernel is hitting.

    Opens Nsight Compute reports, computes arithmetic intensity and hierarchical roofline positions, and says for each
    kernel what bounds it, how far it is from that wall, and which move can help.
    """
