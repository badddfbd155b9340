"""Addresses of files and folders, such as `s3://bucket/folder?region=eu-west-1`: told from paths, joined, and shown."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_SECRET = re.compile(r"(?<=://)(?:[^/@]*|[^/@:]*:(?!\d+/)[^@]*)@")
"""Who an address is opened as: a key may hold slashes, where it was not escaped; `host:9000/a@b` is no key."""

_FEW = 3
"""A text of so few letters is in half of all messages, and no key."""

_SECRET_OPTIONS = re.compile(r"key|secret|token|password|credential|sas|signature", re.IGNORECASE)


def is_address(given: str) -> bool:
    """Return whether this is an address, and no path."""
    return bool(_ADDRESS.match(given))


def is_remote(given: str) -> bool:
    """Return whether this is an address of other than a local file."""
    return is_address(given) and not given.lower().startswith("file://")


def joined(address: str, name: str) -> str:
    """Return the address of a file below another; options of the address stay at its end."""
    place, mark, options = address.partition("?")
    return f"{place.rstrip('/')}/{name}{mark}{options}"


def shown(address: str) -> str:
    """Return an address as messages show it, without its options and without who it is opened as; a path as it is."""
    return _SECRET.sub("", address).partition("?")[0] if is_address(address) else address


def without_secrets(message: object, address: str) -> str:
    """Return what a library says of an address, without the address's secrets, which it may repeat."""
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
