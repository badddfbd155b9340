"""Files of a folder or at an address: listed, and put in place so that each appears complete or not at all."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import pyarrow.fs as pafs

from rooflens.addresses import opened, shown, without_secrets
from rooflens.errors import InputError

_WRITING = ".writing-"
_WRITER = re.compile(r"\.writing-([0-9a-f]{16})[0-9a-f]{8}")
_LEFT_AFTER_NS = 24 * 3600 * 1_000_000_000
"""A folder still being written after a day belongs to a dead writer."""

_AT_ONCE = 8
"""Files that are read or sent at a time: each waits for the network, or for the disk to have it."""

_Done = TypeVar("_Done")


class Files:
    """The files of a store, which need not exist."""

    def __init__(self, given: str) -> None:
        """Open a folder or an address.

        Raises:
            InputError: The address cannot be opened.
        """
        self._given = given
        self.system, self._root = opened(given)
        self.is_local = isinstance(self.system, pafs.LocalFileSystem)

    def __str__(self) -> str:
        return shown(self._given)

    def path(self, *names: str) -> str:
        """Return a file's path in the file system."""
        return "/".join((self._root, *names))

    def text_of(self, *names: str) -> str:
        """Return a file's path as messages show it."""
        return "/".join((str(self).rstrip("/"), *names))

    def said(self, error: Exception) -> str:
        """Return a library's message without the keys of the address."""
        return without_secrets(error, self._given)

    def names(self, *folder: str) -> list[str]:
        """List the names in a folder, without those of what is being written; empty if the folder does not exist.

        Raises:
            InputError: The folder cannot be listed.
        """
        return sorted(name for name in self.sizes_of(*folder) if not name.startswith(_WRITING))

    def sizes_of(self, *folder: str) -> dict[str, int | None]:
        """Return the names in a folder, with their sizes in bytes.

        Raises:
            InputError: The folder cannot be listed.
        """
        path = self.path(*folder)
        try:
            if self.is_local:  # Arrow fails on names that are not UTF-8, which foreign files may have
                with os.scandir(path) as entries:
                    return {entry.name: _size_of(entry) for entry in entries}
            selector = pafs.FileSelector(path, allow_not_found=True)
            return {info.base_name: info.size for info in self.system.get_file_info(selector)}
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            message = f"cannot read the store `{self}`: {self.said(error)}"
            raise InputError(message, "give a store that can be read") from error

    def content(self, *names: str) -> bytes:
        """Read a file; if an S3 response breaks off within its header, Arrow returns an empty file.

        Raises:
            OSError: The file cannot be read to its end.
        """
        with self.system.open_input_file(self.path(*names)) as file:
            content: bytes = file.read()
            # An object store may end a transfer early without an error; a short read must not pass for a short file.
            if len(content) != file.size() or not (content or self.is_local):
                raise OSError(f"only {len(content)} bytes of it came")
            return content

    def make(self) -> None:
        """Make the folder if it does not exist, and remove what was left in it by writers killed more than a day ago.

        Raises:
            InputError: The folder that it would be in does not exist.
            OSError: The folder cannot be made.
        """
        if not self.is_local:
            return
        if not (parent := Path(self._root).parent).exists():
            raise InputError(f"there is no folder `{parent}` for the store", "make it first, or give another place")
        Path(self._root).mkdir(exist_ok=True)
        for name in self.sizes_of():
            # The name tells the age, not the disk: clocks of file servers differ, and copies get new times.
            writer = _WRITER.fullmatch(name)
            if writer and time.time_ns() - int(writer[1], 16) > _LEFT_AFTER_NS:
                shutil.rmtree(self.path(name), ignore_errors=True)

    def put(self, contents: Mapping[str, bytes]) -> None:
        """Put files in place, by their path in the store; when this returns, all of them are there in full size.

        Raises:
            InputError: What was sent is not there, or that cannot be checked.
            OSError: A file could not be put in place.
        """
        if self.is_local:
            with self._scratch() as folder:
                _together(lambda name, content: self._move(folder, name, content), contents, contents.values())
            for place in {os.path.dirname(self.path(name)) for name in contents}:  # noqa: PTH120 - paths are texts
                # A rename is itself a change of the folder, and would be lost without this.
                _sync(place)
        else:
            _together(self._send, contents, contents.values())
            self._check_sent({self.path(name): len(content) for name, content in contents.items()})

    def read(self, read: Callable[[str], _Done], names: Iterable[str]) -> list[_Done]:
        """Read many files, some at a time where each waits for the network; return what comes of each."""
        return [*map(read, names)] if self.is_local else _together(read, names)

    @contextmanager
    def _scratch(self) -> Iterator[str]:
        """Make a temporary folder beside the store's files, removed at the end of the block."""
        folder = self.path(f"{_WRITING}{time.time_ns():016x}{secrets.token_hex(4)}")
        os.mkdir(folder)  # noqa: PTH102 - paths are texts
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _move(self, folder: str, name: str, content: bytes) -> None:
        """Write a file under a temporary name and rename it into place."""
        beside, place = Path(folder, name.replace("/", "-")), self.path(name)
        Path(place).parent.mkdir(exist_ok=True)
        with beside.open("wb") as file:
            file.write(content)
            # Content before name: after a power cut, a file in its place must not be empty.
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, place)  # noqa: PTH105 - paths are texts

    def _send(self, name: str, content: bytes) -> None:
        """Send a file to an object store, in one piece: what a closed stream has of a text in pieces would appear.

        `pyarrow.fs.copy_files` reports success even if S3 refuses the file, whereas a stream raises.
        """
        with self.system.open_output_stream(self.path(name)) as target:
            target.write(content)

    def _check_sent(self, sent: Mapping[str, int]) -> None:
        """Check that the sent files have the same size at the address as here."""
        try:
            there = {info.path: info.size for info in self.system.get_file_info([*sent])}
        except OSError as error:
            message = f"cannot check what was written to `{self}`: {self.said(error)}"
            raise InputError(message, self.write_hint) from error
        for path, byte_count in sent.items():
            if there.get(path) != byte_count:
                name = self.text_of(path[len(self._root) + 1 :])
                message = f"`{name}` was sent with {byte_count} bytes, and has {there.get(path) or 0} there"
                raise InputError(message, self.write_hint)

    @property
    def write_hint(self) -> str:
        """What to do where nothing can be written."""
        if self.is_local:
            return "give a folder that can be written with --store"
        return "check its address, keys and room, and run this again: what is stored already is skipped"


def _together(do: Callable[..., _Done], *of_each: Iterable[Any]) -> list[_Done]:
    """Do it for each, some at a time; one after the other where memory is too short for a thread."""
    every, results = [*zip(*of_each, strict=True)], None
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        try:
            with suppress(RuntimeError):  # no thread can be started
                results = pool.map(lambda one: do(*one), every)
            if results is not None:
                return [*results]
        finally:
            pool.shutdown(cancel_futures=True)
    return [do(*one) for one in every]  # what a thread has done already is done again, to the same end


def _size_of(entry: os.DirEntry[str]) -> int | None:
    """Return a file's size in bytes; None for a broken link."""
    try:
        return entry.stat().st_size
    except OSError:
        return None


def _sync(folder: str) -> None:
    """Wait until the names in a folder are on disk; Windows cannot open folders."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
