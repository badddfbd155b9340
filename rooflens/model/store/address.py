"""Addresses of files and folders, such as `s3://bucket/folder?region=eu-west-1`: recognised, joined, and shown.

Stores, and single reports in them, are recognised here too, without the cost of pyarrow.
"""

from __future__ import annotations

import re
from pathlib import Path

from rooflens.errors import InputError
from rooflens.model.store import MARKER

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_SECRET = re.compile(r"(?<=://)(?:[^/@]*|[^/@:]*:(?!\d+/)[^@]*)@")
"""Who an address is opened as: a key may hold slashes, where it was not escaped; `host:9000/a@b` is no key."""

_DIGEST = re.compile(r"[0-9a-f]{6,64}")
"""The first digits of a report's SHA-256, or all of them."""

_FEW = 3
"""A text this short occurs in half of all messages, and is no key."""

_SECRET_OPTIONS = re.compile(r"key|secret|token|password|credential|sas|signature", re.IGNORECASE)


def is_address(given: str) -> bool:
    """Return whether this is an address and not a path."""
    return bool(_ADDRESS.match(given))


def is_remote(given: str) -> bool:
    """Return whether this is the address of anything but a local file."""
    return is_address(given) and not given.lower().startswith("file://")


def joined(address: str, name: str) -> str:
    """Return the address of a file below another; options of the address stay at its end."""
    place, mark, options = address.partition("?")
    return f"{place.rstrip('/')}/{name}{mark}{options}"


def shown(address: str) -> str:
    """Return an address as messages show it, without options and credentials; a path as it is."""
    return _SECRET.sub("", address).partition("?")[0] if is_address(address) else address


def store_at(given: str) -> tuple[str, str] | None:
    """Recognise a store, or a report in a store by the first digits of its digest.

    Args:
        given: A path or an address; `STORE/DIGEST` or, as in older stores, `STORE/runs/DIGEST.parquet` is one report.

    Returns:
        The store, and the digits, empty for the whole store; None where there is no store.
    """
    if is_address(given):
        from rooflens.model.store.place import Place  # noqa: PLC0415 - loads pyarrow

        return (given, "") if Place(given).exists(MARKER) else None
    place = Path(given)
    if _is_store(place):
        return given, ""
    folder = place.parent.parent if place.parent.name == "runs" else place.parent
    if not place.exists() and _DIGEST.fullmatch(place.stem) and _is_store(folder):
        return str(folder), place.stem
    return None


def where_digest(digits: str) -> str:
    """Write the condition on kernels that chooses the report of a store whose digest begins with some digits."""
    return f"digest like '{digits}%'"


def no_report(store: str, digits: str) -> InputError:
    """Return the error for digits that no report of a store begins with."""
    message = f"`{shown(store)}` holds no report whose digest begins with `{digits}`"
    return InputError(message, "the table `runs` lists them")


def _is_store(folder: Path) -> bool:
    """Return whether a folder is a store, including those from before the marker."""
    return (folder / MARKER).is_file() or any((folder / "runs").glob("*.parquet"))


def without_secrets(message: object, address: str) -> str:
    """Return a library's message about an address without the address's secrets, which it may repeat."""
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
