"""`rooflens mcp`: a Model Context Protocol server."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import click

from rooflens.cli.usage import examples
from rooflens.errors import EnvironmentMissingError


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
    from rooflens.mcp.root import Root
    from rooflens.mcp.server import make_server

    make_server(Root(root)).run("stdio")
