"""What is told to indexes of packages agrees with the project."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
RECIPE = (ROOT / "packaging/conda/meta.yaml").read_text("utf-8")
WORKFLOW = (ROOT / ".github/workflows/ci.yml").read_text("utf-8")


def test_the_classifiers_name_the_pythons_and_systems_that_the_wheel_is_tried_on() -> None:
    """The matrix of CI is what the index shows."""
    (tried,) = re.findall(r"python: \[(.*)\]", WORKFLOW)
    named = {one.rpartition(" :: ")[2] for one in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", one)}
    assert named == {*re.findall(r"3\.\d+", tried)}
    (systems,) = re.findall(r"os: \[(.*)\]", WORKFLOW)
    places = {"ubuntu": "POSIX :: Linux", "macos": "MacOS", "windows": "Microsoft :: Windows"}
    told = {one.partition(" :: ")[2] for one in PROJECT["classifiers"] if one.startswith("Operating System")}
    assert told == {place for name, place in places.items() if name in systems}


def test_the_recipe_needs_what_the_package_needs() -> None:
    """Version, scripts and requirements are those of pyproject.toml, but for what is on PyPI alone."""
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


def test_the_container_installs_this_clone_and_runs_as_nobody_special() -> None:
    """It starts the command, not as root, with an extra that there is."""
    text = (ROOT / "packaging/Containerfile").read_text("utf-8")
    (extra,) = re.findall(r"/source\[(\w+)\]", text)
    assert extra in PROJECT["optional-dependencies"]
    assert text.index("USER reader") < text.index('ENTRYPOINT ["rooflens"]')
