"""Code of others in the package: as published, with its licence, and shipped whole."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Iterator
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import pytest
import vl_convert
from support.vega_bundle import VEGA, bundle, packages_of

from rooflens.report.html.embed import VEGA_LITE, table_library, vega_bundle

VENDOR = files("rooflens.report").joinpath("assets", "vendor")
LIBRARIES: list[dict[str, Any]] = tomllib.loads(VENDOR.joinpath("vendor.toml").read_text(encoding="utf-8"))["library"]


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library["file"])
def test_vendored_code_is_what_was_published(library: dict[str, Any]) -> None:
    """The digest of each file is the listed one, it names the listed version, and its licence stands beside."""
    code = VENDOR.joinpath(library["file"]).read_bytes()
    assert hashlib.sha256(code).hexdigest() == library["sha256"]
    assert library["version"] in code.decode()
    assert library["licence"] in VENDOR.joinpath(library["licence_file"]).read_text(encoding="utf-8")


def test_every_vendored_file_is_listed() -> None:
    """Nothing lies in the folder that the list does not name."""
    listed = {library[key] for library in LIBRARIES for key in ("file", "licence_file")}
    assert {entry.name for entry in VENDOR.iterdir()} == listed | {"vendor.toml"}


@pytest.mark.parametrize(
    ("code", "licence"),
    [(table_library, "Permission is hereby granted, free of charge"), (vega_bundle, "University of")],
)
def test_embedded_code_carries_its_licence(code: Callable[[], str], licence: str) -> None:
    """A page that holds a library holds its licence too, in a comment before it."""
    comment, _, _ = code().partition("*/\n")
    assert comment.startswith("/*!\n")
    assert licence in comment


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library["file"])
def test_no_licence_ends_its_comment(library: dict[str, Any]) -> None:
    """A licence stays one comment."""
    assert "*/" not in VENDOR.joinpath(library["licence_file"]).read_text(encoding="utf-8")


@pytest.fixture
def vega() -> dict[str, Any]:
    """Return the entry of the Vega bundle; skip the test where another vl-convert than its own is installed."""
    (entry,) = (library for library in LIBRARIES if library["file"] == VEGA)
    if entry["source"].split(",")[0] != f"vl-convert-python {version('vl-convert-python')}":
        pytest.skip(f"bundled by {entry['source']}, and another one is installed")
    return entry


def test_vega_is_what_vl_convert_bundles(vega: dict[str, Any]) -> None:
    """The vendored file is that of the vl-convert it names, byte for byte; `make vendor` writes the one of another."""
    assert hashlib.sha256(bundle().encode()).hexdigest() == vega["sha256"]


def test_every_package_in_the_bundle_is_listed(vega: dict[str, Any]) -> None:
    """The list names what Vega, Vega-Lite and vega-embed import, and what that imports, each in its version."""
    assert sorted(package for listed in vega["packages"].values() for package in listed) == packages_of(vega["name"])


def test_every_package_in_the_bundle_has_its_notice() -> None:
    """Beside the name of each listed package stand its licence and who holds its copyright, and beside none else's."""
    (entry,) = (library for library in LIBRARIES if library["file"] == VEGA)
    listed = {(package.split()[0], spdx) for spdx, packages in entry["packages"].items() for package in packages}
    listed |= {(name, spdx.strip("()")) for name, spdx in map(str.split, entry["without_version"])}
    assert set(_noticed(VENDOR.joinpath(entry["licence_file"]).read_text(encoding="utf-8"))) == listed


def _noticed(licences: str) -> Iterator[tuple[str, str]]:
    """Yield package and licence of each notice: `package, licence` and a text, or a licence, packages and its text."""
    for part in licences.split("-" * 72)[1:]:
        title, subjects = part.strip().split("\n\n")[:2]
        name, _, spdx = title.partition(", ")
        if spdx:
            yield name, spdx
            continue
        for names, copyright_ in (line.split(": ", 1) for line in subjects.replace("\n  ", " ").splitlines()):
            assert copyright_.startswith("Copyright")
            yield from ((name, title) for name in names.split(", "))


def test_pictures_are_drawn_by_the_vega_lite_of_pages() -> None:
    """The vl-convert that is installed has the version of Vega-Lite that charts are written for."""
    assert VEGA_LITE.rpartition(".")[0] in vl_convert.get_vegalite_versions()
    assert f'"{VEGA_LITE}"' in VENDOR.joinpath(VEGA).read_text(encoding="utf-8")
