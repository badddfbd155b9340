"""`rooflens mcp`: a Model Context Protocol server."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import click

from rooflens.cli.usage import examples
from rooflens.errors import EnvironmentMissingError, InputError


@click.command(
    epilog=examples(
        "rooflens mcp --root reports/", "claude mcp add rooflens -- $(which rooflens) mcp --root $PWD/reports"
    )
)
@click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Folder that may be read, with all its subfolders.  [default: the working directory]",
)
def mcp(root: Path) -> None:
    """Let a model read reports: a read-only Model Context Protocol server on stdin and stdout."""
    if importlib.util.find_spec("mcp") is None:
        raise EnvironmentMissingError("the MCP SDK is not installed", "`pip install 'mcp>=2,<3'`")
    if not root.is_dir():
        raise InputError(f"`{root}` is not a folder", "give the folder that holds your reports with --root")
    from rooflens.mcp.children import Children

    with Children() as children:  # they start while we import what follows
        from rooflens.mcp.server import serve

        serve(root, children)
