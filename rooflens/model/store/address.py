"""Addresses of files and folders, such as `s3://bucket/folder?region=eu-west-1`: told from paths, joined, and shown."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_SECRET = re.compile(r"(://)[^/@]*@")


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
    """Return an address as messages show it: without its options, and without who it is opened as."""
    return _SECRET.sub(r"\1", address.partition("?")[0])
