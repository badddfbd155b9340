"""What makes a folder a store: `rooflens-store.json`, a marker of our own. Nothing is written or removed without it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from rooflens.errors import InputError
from rooflens.model.store import MARKER
from rooflens.model.store.parts import FILE_NAME
from rooflens.model.store.schema import SCHEMA_VERSION, TABLES

if TYPE_CHECKING:
    from rooflens.model.store.place import Place

_FORMAT = "rooflens-store"
_CONTENT = json.dumps({"format": _FORMAT, "schema_version": SCHEMA_VERSION}) + "\n"
_OURS = {MARKER, f".{MARKER}.partial", ".lock", *TABLES}
_MAKE = "make one with `rooflens ingest REPORT --store FOLDER`"


def check_marker(place: Place) -> None:
    """Check that a place is a store of this version.

    Raises:
        InputError: It is not a store, is one of another version, or its marker is damaged.
    """
    version = _marked_version(place)
    if version is None:
        version = old_version(place)
        if version is None:
            raise InputError(f"`{place}` is not a store", _MAKE)
    if version != SCHEMA_VERSION:
        raise _other_version(place, version)


def check_free(place: Place) -> None:
    """Check that a place is a store of this version, or may become one.

    Raises:
        InputError: It is neither empty nor a store, or a store of another version.
    """
    if _marked_version(place) is not None or old_version(place) is not None:
        check_marker(place)
    elif not is_blank(place):
        message = f"`{place}` is neither empty nor a store: nothing was written"
        raise InputError(message, "give an empty folder, or a new name, with --store")


def mark(place: Place) -> None:
    """Make an empty folder a store, which the caller has locked; leave one of this version as it is.

    Raises:
        InputError: As `check_free`.
        OSError: It cannot be written to.
    """
    check_free(place)
    if _marked_version(place) is None:
        place.write_bytes(_CONTENT.encode(), MARKER)


def is_blank(place: Place) -> bool:
    """Return whether a folder holds nothing but what an interrupted start of a store leaves: empty folders, a lock."""
    names = {entry.name for entry in place.list()}
    return names <= _OURS and not any(place.list(name) for name in names & TABLES.keys())


def old_version(place: Place) -> int | None:
    """Return the schema version of a store from before the marker; None where there is none."""
    for entry in place.list("runs"):
        if FILE_NAME.fullmatch(entry.name):
            try:
                with place.open("runs", entry.name) as file:
                    versions = pq.ParquetFile(file).read(["schema_version"])["schema_version"].to_pylist()
            except (OSError, ValueError, KeyError):  # Arrow's errors are ValueErrors
                continue
            if versions and isinstance(versions[0], int) and versions[0] < SCHEMA_VERSION:
                return versions[0]
    return None


def _marked_version(place: Place) -> int | None:
    """Return the version the marker states; None where there is no marker."""
    try:
        if not place.exists(MARKER):
            return None
        values = json.loads(place.read_bytes(MARKER))
        version = values["schema_version"]
        if values["format"] == _FORMAT and type(version) is int:
            return version
    except (ValueError, KeyError, TypeError):
        pass
    except OSError as error:
        raise InputError(f"cannot read `{place.text_of(MARKER)}`: {error}", "give a store that can be read") from error
    raise InputError(
        f"damaged store: `{place.text_of(MARKER)}` is not the marker of a store",
        f"write {_CONTENT.strip()} into it, if the store was written by this version",
    )


def _other_version(place: Place, version: int) -> InputError:
    message = f"`{place}` holds schema version {version}, this is {SCHEMA_VERSION}"
    if version > SCHEMA_VERSION:
        return InputError(f"{message}: a newer rooflens wrote it", "install that version: `pip install -U rooflens`")
    return InputError(message, f"`rooflens store migrate {place}` brings it to this version")
