"""Addresses of files and folders, such as `s3://bucket/folder?region=eu-west-1`: recognise, join, show and open them.

pyarrow is imported only when an address is opened.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from rooflens.errors import InputError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_URL_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_SECRET = re.compile(r"(?<=://)(?:[^/@]*|[^/@:]*:(?!\d+/)[^@]*)@")
"""The credentials in an address: an unescaped key may contain slashes; `host:9000/a@b` is no key."""

_NATIVE = ("s3", "gs", "gcs", "hdfs", "abfs", "file")
"""Schemes that pyarrow opens itself; others need fsspec."""

_FEW = 3
"""So short a text occurs in half of all messages, and is no key."""

_SECRET_OPTIONS = re.compile(r"key|secret|token|password|credential|sas|signature", re.IGNORECASE)


def is_address(given: str) -> bool:
    """Return whether this is an address and not a path."""
    return bool(_URL_SCHEME.match(given))


def is_remote(given: str) -> bool:
    """Return whether this is an address, not a local path."""
    return is_address(given) and not given.lower().startswith("file://")


def joined(address: str, name: str) -> str:
    """Return the address of a file below another address, whose options stay at the end."""
    place, mark, options = address.partition("?")
    return f"{place.rstrip('/')}/{name}{mark}{options}"


def shown(address: str) -> str:
    """Return an address as messages show it, without options and credentials; paths are unchanged."""
    return _SECRET.sub("", address).partition("?")[0] if is_address(address) else address


def without_secrets(message: object, address: str) -> str:
    """Return a library's message about an address without the secrets that the message may repeat."""
    from urllib.parse import parse_qsl, quote, unquote  # noqa: PLC0415 - 3 ms, for errors only

    text = str(message).replace(address, shown(address))
    if not is_address(address):
        return text
    opened_as = _SECRET.search(address)
    names = opened_as[0][:-1].split(":", 1) if opened_as else []
    options = parse_qsl(_SECRET.sub("", address).partition("?")[2], keep_blank_values=True)
    names += (value for name, value in options if _SECRET_OPTIONS.search(name))
    written = {*names, *map(unquote, names)}
    for name in sorted({*written, *(quote(name, safe="") for name in written)}, key=len, reverse=True):
        text = text.replace(name, "***") if len(name) > _FEW else text
    return text


def opened(given: str) -> tuple[FileSystem, str]:
    """Open a path or an address; return its file system, and the path within it.

    Raises:
        InputError: The name is empty or not UTF-8, or no installed package opens such an address.
    """
    import pyarrow as pa  # noqa: PLC0415 - only where there is an address or a store
    import pyarrow.fs as pafs  # noqa: PLC0415 - as above

    if not given:
        raise InputError("the store has an empty name", "name a folder or an address")
    if given != given.encode("utf-8", "replace").decode():
        raise InputError(f"cannot open `{shown(given)}`: its name is not UTF-8", "give it another name")
    if not is_address(given):
        return pafs.LocalFileSystem(), os.path.abspath(given)  # noqa: PTH100 - links stay as they are
    try:
        is_native = given.partition("://")[0].lower() in _NATIVE
        system, path = pafs.FileSystem.from_uri(given) if is_native else _by_fsspec(given)
    except (pa.ArrowException, OSError, ValueError, ImportError) as error:
        why = without_secrets(error, given)
        lacks = isinstance(error, ImportError)
        hint = "install what it names, or fetch the file first and give that" if lacks else "check the address"
        raise InputError(f"cannot open `{shown(given)}`: {why}", hint) from None  # it may name the keys
    return system, path.rstrip("/")


def _by_fsspec(address: str) -> tuple[Any, str]:
    import fsspec  # noqa: PLC0415 - for addresses that pyarrow does not know, where it is installed
    import pyarrow.fs as pafs  # noqa: PLC0415 - as above

    system, path = fsspec.core.url_to_fs(address)
    return pafs.PyFileSystem(pafs.FSSpecHandler(system)), path
