"""Where a source file of a report is in the checkout: reports hold the paths of the machine that compiled."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath

from rooflens.format import count, cut_middle

NAME_WIDTH = 120
"""Characters of a file's name in a message."""

_LONGEST = 4096
"""No system takes a longer path."""


def checkout(environment: Mapping[str, str] | None = None, folder: Path | None = None) -> Path:
    """Return the root of the checkout: GitHub's workspace, else the folder with `.git` above us, else the folder."""
    environment = os.environ if environment is None else environment
    folder = (folder or Path.cwd()).resolve()
    workspace = environment.get("GITHUB_WORKSPACE")
    if workspace and Path(workspace).is_dir():
        return Path(workspace).resolve()
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), folder)


def in_checkout(file: str, root: Path) -> str | None:
    """Return the path of a source file from the root of the checkout, with slashes; None where it is none of its files.

    A file below the root is taken at its word. Of another one as many folders at its end count as lead to a file in the
    checkout: it was compiled in a container, or on another machine.
    """
    return _in_checkout(_plain(file), root) if len(file) <= _LONGEST else None


def outside_words(files: Iterable[str], root: Path, noun: str, left: str) -> str:
    """Say what has no place in the checkout: `1 line not annotated: a.cu is not in this checkout`; empty without any.

    Args:
        files: The file of each line or finding.
        root: The checkout.
        noun: What each of them is.
        left: What became of it.
    """
    outside = [file for file in files if in_checkout(file, root) is None]
    if not outside:
        return ""
    first, *others = (cut_middle(file, NAME_WIDTH) for file in dict.fromkeys(outside))
    named = f"{first} and {count(len(others), 'other file')} are" if others else f"{first} is"
    return f"{count(len(outside), noun)} {left}: {named} not in this checkout"


def _plain(file: str) -> str:
    return posixpath.normpath(file.replace("\\", "/"))


@lru_cache(maxsize=4096)
def _in_checkout(plain: str, root: Path) -> str | None:
    path = PurePosixPath(plain)
    if path.is_relative_to(root):
        return path.relative_to(root).as_posix()
    parts = [part for part in path.parts if part != "/"]
    if ".." in parts or "\0" in plain:
        return None
    ends = ("/".join(parts[i:]) for i in range(len(parts)))
    return next((end for end in ends if _is_file(root / end)), None)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
