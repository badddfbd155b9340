"""Where a store is: a folder, or an address such as `s3://bucket/store`; its paths are joined nowhere else.

A local file is written under another name, synced and renamed; an object store puts an object whole by itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
import pyarrow.fs as pafs
from msgspec import Struct

from rooflens.errors import InputError
from rooflens.model.store.address import is_address, is_remote, shown, without_secrets

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator
    from pathlib import Path

_NATIVE = ("s3", "gs", "gcs", "hdfs", "abfs", "file")
"""Schemes that pyarrow opens itself; others go through fsspec, where it is installed."""

_PARTIAL = ".partial"
_CHUNK_BYTES = 1 << 20


class Entry(Struct, frozen=True):
    """One file of a folder of the store.

    Attributes:
        changed_unix_s: When it was last written; None where the file system does not say, and for local files.
    """

    name: str
    changed_unix_s: float | None


class Hashing:
    """A binary file that is written and hashed at once; Parquet's writer takes it for a file."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self.byte_count = 0

    @property
    def closed(self) -> bool:
        """Whether it takes no more bytes."""
        return bool(self._file.closed)

    @property
    def sha256(self) -> str:
        """Digest of what was written so far, in hex."""
        return self._digest.hexdigest()

    def write(self, data: Any) -> int:
        """Write bytes."""
        self._digest.update(data)
        self._file.write(data)
        self.byte_count += len(data)
        return len(data)

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self.byte_count

    def flush(self) -> None:
        """Flush the file."""
        self._file.flush()

    def readable(self) -> bool:
        """Return False: it is for writing."""
        return False

    def writable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return False: hashed bytes are not overwritten."""
        return False

    def close(self) -> None:
        """Leave the file open: whoever opened it syncs and closes it."""


class Place:
    """The folder or address of a store. It can be pickled, and opened on another machine that sees the same storage."""

    def __init__(self, given: str | Path | Place) -> None:
        self.text: str = given.text if isinstance(given, Place) else str(given)
        self.is_remote = is_remote(self.text)
        root = self.text if is_address(self.text) else os.path.abspath(self.text)  # noqa: PTH100 - a worker may stand elsewhere
        self._root: str = given._root if isinstance(given, Place) else root  # noqa: SLF001 - its own

    def __str__(self) -> str:
        return shown(self.text)

    def __reduce__(self) -> Any:
        return _at, (self.text, self._root)

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        """The file system and the path in it.

        Raises:
            InputError: Its name is empty or not UTF-8, or nothing installed opens its address.
        """
        if not self.text:
            raise InputError("the store has an empty name", "name a folder or an address")
        if not self._root.isascii() and self._root != self._root.encode("utf-8", "replace").decode():
            raise InputError(f"cannot open the store `{self}`: its name is not UTF-8", "give it another name")
        scheme, separator, _ = self._root.partition("://")
        if not separator:
            return pafs.LocalFileSystem(), self._root
        try:
            if scheme.lower() in _NATIVE:
                system, path = pafs.FileSystem.from_uri(self._root)
            else:
                system, path = _by_fsspec(self._root)
        except (pa.ArrowException, OSError, ValueError) as error:
            why = without_secrets(error, self.text)
            raise InputError(f"cannot open `{self}`: {why}", "check the address") from None  # it may name the keys
        return system, path.rstrip("/")

    def path_of(self, *names: str) -> str:
        """Return the path of a file in its file system."""
        return "/".join((self._opened[1], *names))

    def text_of(self, *names: str) -> str:
        """Return the path of a file as messages show it."""
        return "/".join((str(self).rstrip("/"), *names))

    def exists(self, *names: str) -> bool:
        """Return whether it has such a file."""
        return bool(self._opened[0].get_file_info(self.path_of(*names)).type == pafs.FileType.File)

    def size_of(self, *names: str) -> int | None:
        """Return the bytes of a file; None where it is not there."""
        size: int | None = self._opened[0].get_file_info(self.path_of(*names)).size
        return size

    def make(self, *names: str) -> None:
        """Make a folder, those above it too."""
        self._opened[0].create_dir(self.path_of(*names) if names else self._opened[1], recursive=True)

    def list(self, *names: str) -> list[Entry]:
        """Return files and folders of a folder by name; none where there is no such folder."""
        if not self.is_remote:
            return _listed(self.path_of(*names) if names else self._opened[1])
        selector = pafs.FileSelector(self.path_of(*names) if names else self._opened[1], allow_not_found=True)
        found = self._opened[0].get_file_info(selector)
        entries = (Entry(info.base_name, info.mtime_ns / 1e9 if info.mtime_ns else None) for info in found)
        return sorted(entries, key=lambda entry: entry.name)

    def files(self) -> Iterator[tuple[str, int]]:
        """Yield path and bytes of each file below this place, sorted; of one that is a file, an empty path.

        Raises:
            OSError: It cannot be listed.
        """
        system, root = self._opened
        info = system.get_file_info(root)
        if info.type == pafs.FileType.File:
            yield "", info.size or 0
            return
        found = system.get_file_info(pafs.FileSelector(root, allow_not_found=True, recursive=True))
        for entry in sorted(found, key=lambda entry: entry.path):
            if entry.type == pafs.FileType.File:
                yield entry.path[len(root) :].lstrip("/"), entry.size or 0

    def stream(self) -> Any:
        """Open the file that this place is, to be read once from its beginning.

        Raises:
            OSError: It is not there or cannot be read.
        """
        return self._opened[0].open_input_stream(self._opened[1], compression=None)

    def open(self, *names: str) -> Any:
        """Open a file for reading, as one that Arrow reads from and `hash_of` can go through before.

        An object is fetched whole: hashing and reading it in pieces would fetch it twice.

        Raises:
            OSError: It is not there or cannot be read.
        """
        file = self._opened[0].open_input_file(self.path_of(*names))
        if not self.is_remote:
            return file
        with file:
            return pa.BufferReader(file.read_buffer())

    @contextlib.contextmanager
    def writing(self, *names: str) -> Iterator[Hashing]:
        """Open a file that appears under its name once it is whole; a failure leaves nothing.

        Raises:
            OSError: The place cannot be written to.
        """
        if self.is_remote:
            with self._opened[0].open_output_stream(self.path_of(*names)) as stream:
                yield Hashing(stream)
            return
        path = self.path_of(*names)
        folder, _, name = path.rpartition("/")
        partial = f"{folder}/.{name}{_PARTIAL}"
        try:
            with open(partial, "wb") as file:  # noqa: PTH123 - paths of this class are texts
                yield Hashing(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, path)  # noqa: PTH105
        finally:
            with contextlib.suppress(OSError):
                os.unlink(partial)  # noqa: PTH108
        _sync_folder(folder)

    def remove(self, *names: str) -> None:
        """Remove a file, where it is there."""
        with contextlib.suppress(FileNotFoundError):
            self._opened[0].delete_file(self.path_of(*names))

    def read_bytes(self, *names: str) -> bytes:
        """Return a small file.

        Raises:
            OSError: It is not there or cannot be read.
        """
        with self.open(*names) as file:
            return bytes(file.read())

    def write_bytes(self, content: bytes, *names: str) -> None:
        """Write a small file.

        Raises:
            OSError: The place cannot be written to.
        """
        with self.writing(*names) as file:
            file.write(content)

    def lock_file(self) -> BinaryIO | None:
        """Open the file that writers lock; None where no lock can be had: on object storage.

        Raises:
            OSError: The place cannot be written to.
        """
        return None if self.is_remote else open(self.path_of(".lock"), "a+b")  # noqa: PTH123 - closed by who locks


def is_partial(name: str, of: re.Pattern[str]) -> bool:
    """Return whether a name is that of a half-written file whose final name the pattern matches."""
    return name.startswith(".") and name.endswith(_PARTIAL) and bool(of.fullmatch(name[1 : -len(_PARTIAL)]))


def hash_of(file: Any) -> str:
    """Return the SHA-256 of an open file, in hex, and rewind the file."""
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK_BYTES):
        digest.update(chunk)
    file.seek(0)
    return digest.hexdigest()


def _at(text: str, root: str) -> Place:
    """Rebuild a pickled place."""
    place = Place(text)
    place._root = root  # noqa: SLF001 - its own
    return place


def _listed(folder: str) -> list[Entry]:
    """List a local folder: Arrow fails on names that are not UTF-8, which other people's files may have."""
    try:
        with os.scandir(folder) as entries:
            return [Entry(name, None) for name in sorted(entry.name for entry in entries)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _by_fsspec(address: str) -> tuple[Any, str]:
    scheme = address.partition("://")[0]
    try:
        import fsspec  # noqa: PLC0415 - for addresses that pyarrow does not know, where it is installed
    except ImportError as error:
        message = f"cannot open `{shown(address)}`: pyarrow knows no `{scheme}`"
        raise InputError(message, "install fsspec for it") from error
    try:
        system, path = fsspec.core.url_to_fs(address)
    except (ValueError, ImportError) as error:
        why = without_secrets(error, address)
        raise InputError(f"cannot open `{shown(address)}`: {why}", "check the address") from None  # as above
    return pafs.PyFileSystem(pafs.FSSpecHandler(system)), path


def _sync_folder(folder: str) -> None:
    """Wait until the names in a folder are on the disk; systems that cannot open folders do so by themselves."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
