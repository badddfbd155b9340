"""Find the files that a test file depends on, by following imports."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path, PurePosixPath

PACKAGE = "rooflens"
GROUP, COMMANDS = f"{PACKAGE}/cli/group.py", f"{PACKAGE}/cli/commands/"
"""Imports commands by name when used: who reaches it depends on all commands, or on those that it names."""
PLACES = ("tests/", "fixtures/", "benchmarks/", "docs/", "docs/generators/")
"""Where the tests find modules that are not of the package, next to their own folder."""

_FROM = re.compile(r"^([ \t]*)from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n;\"'#]*)", re.MULTILINE)
_IMPORT = re.compile(r"^([ \t]*)import[ \t]+([\w.]+(?:, *[\w.]+)*)", re.MULTILINE)
_QUOTED = re.compile(rf"[\"'](?:from |import )?({PACKAGE}(?:\.\w+)+)")
"""Modules that are named: of programs that a test starts, of what it replaces, and where a package imports late."""
_STARTED = re.compile(rf"[\"']{PACKAGE}[\"']")
"""The package as a program: `python -m rooflens`."""


def reached(root: Path, tests: str, named: Iterable[str], without: Iterable[str] = ()) -> set[str]:
    """Return a test file, the named files, and what these import at any depth, with the data beside them.

    The places `without` are left out, together with what only they import. All paths are from the root, behind `/`.

    Imports count wherever they are, and so do module names in quotes: rather once too often than once too few.
    If only a module of a package is imported, what the package imports at once counts.
    """
    there, left_out = listing(root), tuple(without)
    folders = tests.split("/")[:-1]
    conftests = ["/".join([*folders[:depth], "conftest.py"]) for depth in range(1, len(folders) + 1)]
    named = set(named)
    commands = () if any(file.startswith(COMMANDS) for file in named) else (f for f in there if f.startswith(COMMANDS))
    found: set[tuple[str, bool]] = set()
    todo = [(file, True) for file in (tests, *conftests, *named)]
    while todo:
        file, is_whole = todo.pop()
        if (file, is_whole) in found or file not in there or file.startswith(left_out):
            continue
        found.add((file, is_whole))
        if file.endswith(".py"):
            todo += _imported(root, file, is_whole=is_whole)
        if file == GROUP:
            todo += ((command, True) for command in commands)
    files = {file for file, _ in found}
    rooms = {"/".join(file.split("/")[:2]) for file in files if file.startswith(f"{PACKAGE}/")} | {f"{PACKAGE}/gpus"}
    return files | {file for room in rooms for file in _data(root, room) if not file.startswith(left_out)}


@cache
def listing(root: Path) -> frozenset[str]:
    """Return the files of the package and of other tested code, from the root."""
    walked = (one for place in (f"{PACKAGE}/", *PLACES) for one in os.walk(root / place))
    return frozenset(
        Path(folder, file).relative_to(root).as_posix()
        for folder, _, files in walked
        if not folder.endswith("__pycache__")
        for file in files
    )


@cache
def _folders(root: Path) -> frozenset[str]:
    """Return the folders of the listing, as a package need not have an `__init__` file."""
    return frozenset(folder.as_posix() for file in listing(root) for folder in PurePosixPath(file).parents)


@cache
def _data(root: Path, room: str) -> tuple[str, ...]:
    """Return the files of a room that nobody imports: tables, templates, and the programs of workloads."""
    files = (file for file in listing(root) if file.startswith(f"{room}/"))
    return tuple(file for file in files if room == f"{PACKAGE}/workloads" or not file.endswith(".py"))


@cache
def _imported(root: Path, file: str, *, is_whole: bool) -> tuple[tuple[str, bool], ...]:
    """Return the modules that a file may import, and for each whether all of it is used."""
    text = (root / file).read_text(encoding="utf-8")
    names = {name for indent, line in _IMPORT.findall(text) if is_whole or not indent for name in re.split(", *", line)}
    names |= {
        f"{module}.{part}"
        for indent, module, line in _FROM.findall(text)
        if is_whole or not indent
        for part in re.findall(r"\b[a-zA-Z]\w*", line)
    }
    if is_whole:
        names |= {name for name in _QUOTED.findall(text) if _is_module(root, name)}
    if _STARTED.search(text) and not file.startswith(f"{PACKAGE}/"):
        names.add(f"{PACKAGE}.__main__")
    places = (*PLACES, f"{file.rpartition('/')[0]}/")
    return tuple({module for name in names for module in _modules(root, places, name)})


def _is_module(root: Path, name: str) -> bool:
    """Return whether a name in quotes is in a module of the package, as formats of messages look alike."""
    place = "/".join(name.split(".")[:2])
    return f"{place}.py" in listing(root) or f"{place}/__init__.py" in listing(root)


def _modules(root: Path, places: Iterable[str], name: str) -> Iterator[tuple[str, bool]]:
    """Yield the files that run on importing a name, of a module or in one."""
    there, folders = listing(root), _folders(root)
    parts = name.split(".")
    for place in [""] if parts[0] == PACKAGE else places:
        packages = []
        for count in range(1, len(parts) + 1):
            module = place + "/".join(parts[:count])
            if f"{module}.py" in there:
                yield f"{module}.py", True
                break
            if f"{module}/__init__.py" in there:
                packages.append(f"{module}/__init__.py")
            elif module not in folders:
                yield from ((package, True) for package in packages[-1:])  # the name is the package's own
                break
        else:
            yield from ((package, True) for package in packages[-1:])
        yield from ((package, False) for package in packages)
