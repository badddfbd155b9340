"""Run commands of rooflens on the files that a worker was handed, as a shell would."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import time
from pathlib import Path

if not hasattr(os, "geteuid"):  # Python for wasm has one user, and one thread
    os.geteuid = os.getuid
    time.thread_time = time.process_time

PLACE = Path("/reports")
PAGE = Path("/page.html")
READ = ("--reader", "direct")  # NVIDIA's module is no wasm


class _Bytes(io.TextIOWrapper):
    """A stream of text that ends in memory."""

    def __init__(self) -> None:
        self.held = io.BytesIO()
        super().__init__(self.held, encoding="utf-8", newline="\n", write_through=True)

    def text(self) -> str:
        """Return what was written."""
        return self.held.getvalue().decode("utf-8")


def place(files: list[tuple[str, bytes]]) -> list[str]:
    """Write the files where the commands run, instead of those before; return their paths."""
    os.chdir("/")
    if PLACE.exists():
        shutil.rmtree(PLACE)
    PLACE.mkdir()
    os.chdir(PLACE)
    names = [name.replace("/", "_") for name, _ in files]
    paths = []
    for number, (name, (_, data)) in enumerate(zip(names, files, strict=True), 1):
        folder = Path(str(number)) if names.count(name) > 1 else Path()
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)
        paths.append(str(folder / name))
    return paths


def run(*arguments: str) -> tuple[int, str, str]:
    """Run a command; return its exit status, what it printed, and its messages."""
    from rooflens.cli.group import main

    out, messages = _Bytes(), _Bytes()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(messages):
        try:
            status = main(["--isolated", *arguments], standalone_mode=False, prog_name="rooflens")
        except SystemExit as ended:
            status = ended.code
    return int(status or 0), out.text(), messages.text()


def page(paths: list[str]) -> tuple[int, str, str]:
    """Make the page of files: a comparison of two, else a report."""
    if _is_pair(paths):
        PAGE.unlink(missing_ok=True)
        status, _, messages = run("compare", *READ, "-o", str(PAGE), "--", *paths)
        made = PAGE.read_text("utf-8") if PAGE.exists() else ""
        return status, made, messages.removesuffix(f"wrote {PAGE}\n")
    return run("report", *READ, "--format", "html", "-o", "-", "--", *paths)


def text(paths: list[str]) -> tuple[int, str, str]:
    """Say the same in Markdown: of one report its kernel with most to win."""
    command = "compare" if _is_pair(paths) else "explain" if len(paths) == 1 and not _has_timeline(paths) else "analyze"
    return run(command, *READ, "--format", "md", "--", *paths)


def data(paths: list[str]) -> tuple[int, str, str]:
    """Write the same as JSON."""
    return run("compare" if _is_pair(paths) else "analyze", *READ, "--format", "json", "--", *paths)


def _is_pair(paths: list[str]) -> bool:
    return len(paths) == 2 and not _has_timeline(paths)


def _has_timeline(paths: list[str]) -> bool:
    from rooflens.ingest.reports.inputs import is_timeline

    return any(is_timeline(Path(path)) for path in paths)
