"""Third-party code in the package: as published, with its licence, and shipped whole."""

from __future__ import annotations

import hashlib
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

import pytest
import vl_convert
from support.vega_bundle import VEGA, bundle

from rooflens.report.html.embed import VEGA_LITE, table_library, vega_bundle

VENDOR = files("rooflens.report").joinpath("assets", "vendor")
LIBRARIES: list[dict[str, Any]] = tomllib.loads(VENDOR.joinpath("vendor.toml").read_text(encoding="utf-8"))["library"]

MENDED = {
    "vega-expression": (6, 1, 0),  # CVE-2025-59840: an expression calls toString of its input
    "vega-interpreter": (2, 2, 1),  # the same, where expressions are interpreted, as pages do
    "vega-functions": (6, 1, 1),  # CVE-2025-66648: setdata runs what it is given
    "vega-selections": (6, 1, 2),  # CVE-2025-65110: the same as the first, by selections
}


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library["file"])
def test_vendored_code_is_what_was_published(library: dict[str, Any]) -> None:
    """The digest of each file is the listed one, it contains the listed version, and its licence is beside it."""
    code = VENDOR.joinpath(library["file"]).read_bytes()
    assert hashlib.sha256(code).hexdigest() == library["sha256"]
    assert library["version"] in code.decode()
    assert library["licence"] in VENDOR.joinpath(library["licence_file"]).read_text(encoding="utf-8")


def test_every_vendored_file_is_listed() -> None:
    """The folder has no file that is missing from the list."""
    listed = {library[key] for library in LIBRARIES for key in ("file", "licence_file")}
    assert {entry.name for entry in VENDOR.iterdir()} == listed | {"vendor.toml"}


@pytest.mark.parametrize(
    ("code", "licence"),
    [(table_library, "Permission is hereby granted, free of charge"), (vega_bundle, "University of")],
)
def test_embedded_code_carries_its_licence(code: Callable[[], str], licence: str) -> None:
    """A page that contains a library has its licence in a comment before it."""
    comment, _, _ = code().partition("*/\n")
    assert comment.startswith("/*!\n")
    assert licence in comment


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library["file"])
def test_no_licence_ends_its_comment(library: dict[str, Any]) -> None:
    """A licence text cannot end the comment around it."""
    assert "*/" not in VENDOR.joinpath(library["licence_file"]).read_text(encoding="utf-8")


def test_vega_is_what_npm_and_esbuild_make() -> None:
    """The vendored file equals the bundle of the locked packages byte for byte, and the list names each of them."""
    (entry,) = (library for library in LIBRARIES if library["file"] == VEGA)
    try:
        made = bundle()
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"npm cannot get the packages here: {error}")
    assert made.code == VENDOR.joinpath(VEGA).read_bytes()
    assert made.packages == entry["packages"]


def test_no_package_in_the_bundle_has_a_known_hole() -> None:
    """For packages named in an advisory, the bundle has the fixed version or a later one."""
    (entry,) = (library for library in LIBRARIES if library["file"] == VEGA)
    held = [package.split() for packages in entry["packages"].values() for package in packages]
    for name, mended in MENDED.items():
        versions = [version for package, version in held if package == name]
        assert versions, name
        for version in versions:
            assert tuple(map(int, version.split("."))) >= mended, (name, version)


def test_every_package_in_the_bundle_has_its_notice() -> None:
    """Each listed package has its licence and copyright holder in the notices, and no other package is there."""
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
    """The installed vl-convert has the version of Vega-Lite for which charts are written."""
    assert VEGA_LITE.rpartition(".")[0] in vl_convert.get_vegalite_versions()
    assert f'"{VEGA_LITE}"' in VENDOR.joinpath(VEGA).read_text(encoding="utf-8")
