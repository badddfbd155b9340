"""`rooflens viewer`: the page that reads reports in a browser, served on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rooflens.cli.console import say
from rooflens.cli.usage import Command, examples
from rooflens.errors import InputError

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

_BUILT = Path("out", "viewer")


@click.command(
    cls=Command,
    epilog=examples(
        "rooflens viewer",
        "rooflens viewer site/open --no-open --port 8000",
    ),
)
@click.argument("folder", type=click.Path(path_type=Path), default=_BUILT)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of 127.0.0.1.  [default: a free one]")
@click.option("--open/--no-open", "opened", default=True, help="Open it in the browser.  [default: open]")
def viewer(folder: Path, *, port: int, opened: bool) -> None:
    """Serve the viewer here: a page that reads dropped reports in the browser and sends them nowhere.

    It listens on 127.0.0.1, until Control-C. FOLDER is where `make viewer` built it, by default out/viewer; any static
    host serves it as well.
    """
    if not (folder / "manifest.json").is_file():
        raise InputError(
            f"there is no viewer in `{folder}`",
            "build it in a clone of rooflens with `make viewer`, and name its folder: `rooflens viewer out/viewer`",
        )
    with server_of(folder, port) as server:
        address = f"http://127.0.0.1:{server.server_port}/"
        say(f"serving `{folder}` at {address}, until Control-C")
        if opened and click.launch(address) != 0:
            say(f"note: no browser could be started: open {address} yourself")
        server.serve_forever()


def server_of(folder: Path, port: int) -> ThreadingHTTPServer:
    """Listen on 127.0.0.1.

    Raises:
        InputError: Another program listens there, or this user may not.
    """
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    class Handler(SimpleHTTPRequestHandler):
        # Not as this machine is set up: a module or wasm of another type is not run.
        extensions_map = {  # noqa: RUF012 - as the base class has it
            **SimpleHTTPRequestHandler.extensions_map,
            ".html": "text/html",
            ".js": "text/javascript",
            ".mjs": "text/javascript",
            ".json": "application/json",
            ".wasm": "application/wasm",
        }

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            """Print nothing: requests are not what a user waits for."""

    try:
        return ThreadingHTTPServer(("127.0.0.1", port), partial(Handler, directory=str(folder)))
    except OSError as error:
        raise InputError(
            f"port {port} of 127.0.0.1 cannot be used: {error.strerror}", "leave out --port, which takes a free one"
        ) from error
