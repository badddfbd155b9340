"""Read texts, and write files whole or not at all: beside their place, then renamed. Standard library only.

Whoever is killed in the middle of it leaves what was there before, and at most a file that ends in `.partial`.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rooflens.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PARTIAL = ".partial"
"""Ending of what is being written."""


MAX_TEXT_BYTES = 64 << 20
"""No text that is read here comes near: a larger one is no such text."""


def read_text(file: Path, hint: str = "", *, is_named: bool = True) -> str:
    """Return the text of a file, UTF-8.

    Args:
        file: Where it is.
        hint: What to do where it cannot be read.
        is_named: Whether the user named it: of what merely lies there under some name, only ordinary files are read,
            since to open a pipe can take for ever.

    Raises:
        InputError: It cannot be read, or is no text, or one of over `MAX_TEXT_BYTES`.
    """
    try:
        if not is_named and not stat.S_ISREG(file.stat().st_mode):
            raise InputError(f"`{file}` is no ordinary file", hint)
        with file.open("rb") as stream:
            data = stream.read(MAX_TEXT_BYTES + 1)
        if len(data) > MAX_TEXT_BYTES:
            raise InputError(f"`{file}` is over {MAX_TEXT_BYTES >> 20} MiB, which no such text is", hint)
        return data.decode()
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
