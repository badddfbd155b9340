"""What package indexes are told agrees with the project."""

from __future__ import annotations

import re
import runpy
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.tracked import tracked

import rooflens

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
RECIPE = (ROOT / "packaging/conda/meta.yaml").read_text("utf-8")
WORKFLOW = (ROOT / ".github/workflows/ci.yml").read_text("utf-8")


def test_the_classifiers_name_the_pythons_and_systems_that_the_wheel_is_tried_on() -> None:
    """The Python versions in CI's matrix are those shown on the index."""
    (tried,) = re.findall(r"python: \[(.*)\]", WORKFLOW)
    named = {one.rpartition(" :: ")[2] for one in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", one)}
    assert named == {*re.findall(r"3\.\d+", tried)}
    (systems,) = re.findall(r"os: \[(.*)\]", WORKFLOW)
    places = {"ubuntu": "POSIX :: Linux", "macos": "MacOS", "windows": "Microsoft :: Windows"}
    told = {one.partition(" :: ")[2] for one in PROJECT["classifiers"] if one.startswith("Operating System")}
    assert told == {place for name, place in places.items() if name in systems}


def test_the_recipe_needs_what_the_package_needs() -> None:
    """Version, scripts and requirements equal pyproject.toml, except for what exists only on PyPI."""
    assert f'version = "{PROJECT["version"]}"' in RECIPE
    needed = {one.partition(";")[0].replace(">=", " >=", 1) for one in PROJECT["dependencies"]}
    run = RECIPE.partition("  run:\n")[2].partition("\n\n")[0]
    listed = {line.strip().removeprefix("- ") for line in run.splitlines()}
    assert listed == {one for one in needed if not one.startswith("ncu-report")} | {
        f"python {PROJECT['requires-python']}"
    }
    assert {f"{name} = {place}" for name, place in PROJECT["scripts"].items()} <= {
        line.strip().removeprefix("- ") for line in RECIPE.splitlines()
    }


def test_every_place_has_the_same_version() -> None:
    """Package, module, citation and changelog have the same version; other tests hold recipe and agents' files."""
    citation = re.findall(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    (newest, _), *_ = re.findall(
        r"^## ([^,\n]+), (unreleased|\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )
    assert {PROJECT["version"], *citation, newest} == {rooflens.__version__}


def test_the_container_installs_this_clone_and_runs_as_nobody_special() -> None:
    """The container starts the command, not as root, with an existing extra."""
    text = (ROOT / "packaging/Containerfile").read_text("utf-8")
    (extra,) = re.findall(r"/source\[(\w+)\]", text)
    assert extra in PROJECT["optional-dependencies"]
    assert text.index("USER reader") < text.index('ENTRYPOINT ["rooflens"]')


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Load hatchling's hook, without hatchling, which is missing where the package is only tested."""
    monkeypatch.setitem(
        sys.modules, "hatchling.metadata.plugin.interface", SimpleNamespace(MetadataHookInterface=object)
    )
    return runpy.run_path(str(ROOT / "packaging/metadata.py"))


def test_links_and_pictures_of_the_readme_lead_to_the_tag_on_an_index(hook: dict[str, Any]) -> None:
    """With an address, each relative link becomes a URL of a tracked file; nothing else changes."""
    address, readme = "https://example.org/somebody/rooflens", (ROOT / "README.md").read_text("utf-8")
    described = hook["led_from"](readme, address, "1.2.3")
    page = re.findall(r'\]\(([^)\s]+)\)|(?:src|srcset|href)="([^"]+)"', described)
    targets = {one or other for one, other in page if not (one or other).startswith("#")}
    pictures = {one for one in targets if one.endswith(".png")}
    bases = [(pictures, f"{address}/raw/v1.2.3/"), (targets - pictures, f"{address}/blob/v1.2.3/")]
    for group, base in bases:
        assert group
        assert {one for one in group if one.removeprefix(base).partition("#")[0] not in tracked()} == set()
    assert re.sub(rf"{address}/(blob|raw)/v1\.2\.3/", "", described) == readme


TOLD = 'address = "https://example.org/{}/rooflens"\nauthor = "Somebody"\nplaceholder = "nobody-yet"\n'


def test_nothing_leads_to_a_placeholder(hook: dict[str, Any], tmp_path: Path) -> None:
    """Until the address is known, the index gets the README unchanged, without links beside it."""
    (tmp_path / "README.md").write_text("[a](b.md)\n", "utf-8")
    (tmp_path / "server.json").write_text('{"name": "io.github.somebody/rooflens"}', "utf-8")
    (tmp_path / "packaging").mkdir()
    made = {}
    for owner in ("nobody-yet", "somebody"):
        told = {"version": "1.2.3"}
        (tmp_path / "packaging/project.toml").write_text(TOLD.format(owner), "utf-8")
        hook["CustomMetadataHook"].update(SimpleNamespace(root=tmp_path), told)
        made[owner] = told
    assert made["nobody-yet"] == {
        "version": "1.2.3",
        "authors": [{"name": "Somebody"}],
        "readme": {"content-type": "text/markdown", "text": "[a](b.md)\n"},
    }
    known = made["somebody"]
    assert known["urls"]["Changelog"] == "https://example.org/somebody/rooflens/blob/main/CHANGELOG.md"
    assert "](https://example.org/somebody/rooflens/blob/v1.2.3/b.md)" in known["readme"]["text"]
    assert "mcp-name: io.github.somebody/rooflens" in known["readme"]["text"]


def test_a_release_waits_for_what_is_left(tmp_path: Path) -> None:
    """Placeholders with their lines, a missing date and the README's sentence are listed; without them nothing is."""
    check = runpy.run_path(str(ROOT / "packaging/release_check.py"))
    (tmp_path / "packaging").mkdir()
    (tmp_path / "packaging/project.toml").write_text(TOLD.format("nobody-yet"), "utf-8")
    (tmp_path / "README.md").write_text("clone\ngit clone nobody-yet/rooflens\nno public address\n", "utf-8")
    (tmp_path / "CHANGELOG.md").write_text("## 1.2.3, unreleased\n", "utf-8")
    files = ["README.md", "packaging/project.toml"]
    assert check["left"]("1.2.3", files, tmp_path) == [
        "packaging/project.toml: the address is https://example.org/nobody-yet/rooflens",
        "README.md:2: git clone nobody-yet/rooflens",
        "README.md: says that the project has no public address",
        "CHANGELOG.md: has no `## 1.2.3, YEAR-MONTH-DAY`",
    ]
    (tmp_path / "packaging/project.toml").write_text(TOLD.format("somebody"), "utf-8")
    (tmp_path / "README.md").write_text("git clone somebody/rooflens\n", "utf-8")
    (tmp_path / "CHANGELOG.md").write_text("## 1.2.3, 2027-03-01\n", "utf-8")
    assert check["left"]("1.2.3", files, tmp_path) == []


def test_every_placeholder_that_a_release_waits_for_is_in_the_list() -> None:
    """The files in which the placeholder is used are those that the project's file names."""
    check = runpy.run_path(str(ROOT / "packaging/release_check.py"))
    lines = check["left"](PROJECT["version"], [name for name in tracked() if not name.startswith("tests/")])
    used = {line.partition(":")[0] for line in lines} - {"CHANGELOG.md", "packaging/project.toml"}
    assert used == {*check["project"]()["repeated"]}
