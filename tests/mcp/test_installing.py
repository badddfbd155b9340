"""Files that installers of agents read in a clone: marketplace, the registry's server file, skills, the script."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from rooflens import __version__
from rooflens.cli import group

ROOT = Path(__file__).parents[2]
MARKET = json.loads((ROOT / ".claude-plugin/marketplace.json").read_text("utf-8"))
SERVER = json.loads((ROOT / "server.json").read_text("utf-8"))
SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]


def test_every_file_names_this_version() -> None:
    """The version is the same in every file."""
    (package,) = SERVER["packages"]
    told = (SERVER["version"], package["version"], MARKET["metadata"]["version"])
    assert {*told, package["runtimeArguments"][0]["value"].rpartition("==")[2]} == {__version__}


def test_the_plugin_names_a_skill_that_is_there_and_a_script_that_is_installed() -> None:
    """The plugin's skill is the package's own, and its server starts from the clone, without a package index."""
    (plugin,) = MARKET["plugins"]
    for skill in plugin["skills"]:
        assert (ROOT / skill / "SKILL.md").resolve() == ROOT / "rooflens/skills/rooflens/SKILL.md"
    arguments = plugin["mcpServers"]["rooflens"]["args"]
    assert arguments[1] == "${CLAUDE_PLUGIN_ROOT}[mcp]"
    assert arguments[2] in SCRIPTS


def test_the_registrys_file_is_what_the_registry_takes() -> None:
    """The registry's file has a two-part name, at most 100 characters of description, and existing arguments."""
    assert SERVER["name"].count("/") == 1
    assert len(SERVER["description"]) <= 100
    (package,) = SERVER["packages"]
    command, root = (one.get("value") for one in package["packageArguments"])
    assert package["identifier"] in SCRIPTS
    assert CliRunner().invoke(group.main, [command, "--root", root, "--help"]).exit_code == 0


def test_a_client_that_appends_the_version_starts_the_server() -> None:
    """Clients type runtime arguments, `identifier@version`, package arguments: the extra comes by `--with`."""
    (package,) = SERVER["packages"]
    (extra,) = package["runtimeArguments"]
    assert (package["runtimeHint"], extra["name"]) == ("uvx", "--with")
    assert extra["value"] == f"{package['identifier']}[mcp]=={package['version']}"
    assert f"{package['identifier']}@{package['version']}" == f"rooflens@{__version__}"
    assert package["packageArguments"][0] == {"type": "positional", "value": "mcp"}


def test_the_script_is_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`rooflens-mcp --root FOLDER` equals `rooflens mcp --root FOLDER`, errors and hints included."""
    assert SCRIPTS["rooflens-mcp"] == "rooflens.cli.group:mcp_main"
    monkeypatch.setattr(sys, "argv", ["rooflens-mcp", "--root", str(tmp_path / "none")])
    with pytest.raises(SystemExit) as ended:
        group.mcp_main()
    assert ended.value.code == 1
