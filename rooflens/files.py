"""Read texts, and write files whole or not at all: beside their place, then renamed. Standard library only.

Whoever is killed in the middle of it leaves what was there before, and at most a file that ends in `.partial`.
"""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rooflens.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PARTIAL = ".partial"
"""Ending of what is being written."""


def read_text(file: Path, hint: str = "") -> str:
    """Return the text of a file, UTF-8.

    Raises:
        InputError: It cannot be read or is no text; `hint` says what to do about it.
    """
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read `{file}`: {error.strerror}", hint) from error
    except UnicodeDecodeError as error:
        raise InputError(f"`{file}` is no text", hint) from error


@contextmanager
def replacing(file: Path, *, durable: bool = False) -> Iterator[Path]:
    """Give a place beside `file` to write to, which takes its place at the end and goes where something fails.

    Folders above are made; a file that is replaced leaves its permissions to the new one.

    Args:
        file: What is to be written.
        durable: Wait until the content and the new name are on the disk: what was committed survives a power cut.

    Raises:
        OSError: The place cannot be written to.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{secrets.token_hex(4)}{PARTIAL}")
    try:
        yield partial
        if file.exists():
            shutil.copymode(file, partial)
        if durable:
            _sync(partial, os.O_RDWR)
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
    if durable and hasattr(os, "O_DIRECTORY"):  # systems that cannot open folders make renames durable by themselves
        _sync(file.parent, os.O_DIRECTORY)


def write_whole(
    file: Path, content: str | bytes, *, hint: str = "give another place with -o", durable: bool = False
) -> None:
    """Write a file as `replacing` does; a text as UTF-8, with `?` for what is no Unicode in it.

    Raises:
        InputError: The place cannot be written to; `hint` says what to do about it.
    """
    try:
        with replacing(file, durable=durable) as partial:
            partial.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "replace"))
    except OSError as error:
        raise InputError(f"cannot write `{file}`: {error.strerror}", hint) from error


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
