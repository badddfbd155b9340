"""Code of others in the package: as published, with its licence, and shipped whole."""

from __future__ import annotations

import hashlib
import tomllib
from importlib.resources import files
from typing import Any

import pytest

from rooflens.report.html.embed import table_library

VENDOR = files("rooflens.report").joinpath("assets", "vendor")
LIBRARIES: list[dict[str, Any]] = tomllib.loads(VENDOR.joinpath("vendor.toml").read_text(encoding="utf-8"))["library"]


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library["file"])
def test_vendored_code_is_what_was_published(library: dict[str, Any]) -> None:
    """The digest of each file is the listed one, its banner names the listed version, and its licence stands beside."""
    code = VENDOR.joinpath(library["file"]).read_bytes()
    assert hashlib.sha256(code).hexdigest() == library["sha256"]
    assert library["version"] in code[:200].decode()
    assert library["licence"] in VENDOR.joinpath(library["licence_file"]).read_text(encoding="utf-8")


def test_every_vendored_file_is_listed() -> None:
    """Nothing lies in the folder that the list does not name."""
    listed = {library[key] for library in LIBRARIES for key in ("file", "licence_file")}
    assert {entry.name for entry in VENDOR.iterdir()} == listed | {"vendor.toml"}


def test_embedded_code_carries_its_licence() -> None:
    """A page that holds the library holds its licence too."""
    assert "Permission is hereby granted, free of charge" in table_library()
    assert "*/" not in VENDOR.joinpath("dataTables.LICENSE.txt").read_text(encoding="utf-8")
