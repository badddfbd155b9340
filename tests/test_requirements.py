"""What is installed together with rooflens."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from datetime import timedelta
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize(
    ("package", "mended"),
    [
        ("jinja2", (3, 1, 6)),  # CVE-2025-27516: a template leaves its sandbox
        ("protobuf", (5, 29, 5)),  # CVE-2025-4565: deep nesting exhausts the stack of the reader in Python
    ],
)
def test_no_release_with_a_known_hole_is_enough(package: str, mended: tuple[int, ...]) -> None:
    """The minimum version of each requirement has the vulnerability fixed."""
    (least,) = (found[1] for one in PROJECT["dependencies"] if (found := re.match(rf"{package}>=([\d.]+)", one)))
    assert tuple(map(int, least.split("."))) >= mended


@pytest.fixture
def audit() -> ModuleType:
    """Return the script that looks up known vulnerabilities."""
    spec = importlib.util.spec_from_file_location("audit", ROOT / ".ci" / "audit.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_an_audit_that_audited_nothing_is_no_pass(
    audit: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Packages unknown to the index, and an npm without an answer, are named, and the exit status is not 0."""
    known = [{"name": "click", "version": "8.2", "vulns": []}]
    monkeypatch.setattr(audit, "npm_audit", lambda _: [])
    monkeypatch.setattr(audit, "locked", lambda *_: ROOT)
    for found, status in ((known, 0), ([{"name": "click", "skip_reason": "not found"}], 75), ([], 75)):
        monkeypatch.setattr(audit, "audit", lambda *_, found=found: found)
        assert audit.main() == status
        assert ("NOT AUDITED" in capsys.readouterr().out) is (status == 75)
    holed = [{**known[0], "vulns": [{"id": "CVE-1", "fix_versions": ["8.3"]}]}]
    monkeypatch.setattr(audit, "audit", lambda *_: holed)
    assert audit.main() == 1


def test_the_audit_reads_what_the_action_pins(audit: ModuleType) -> None:
    """Every pin of the action is audited: these packages run on other people's machines."""
    pins = audit.pinned((ROOT / "action" / "requirements.txt").read_text(encoding="utf-8"))
    names = {re.split("[=>;]", one)[0] for one in PROJECT["dependencies"]}
    assert names <= {pin.partition("==")[0] for pin in pins}


def test_the_audit_reads_what_the_viewer_carries(audit: ModuleType) -> None:
    """Every wheel in the viewer's pins is audited, in the version that a browser gets."""
    text = (ROOT / "viewer" / "pins.toml").read_text(encoding="utf-8")
    wheels = tomllib.loads(text)["wheels"]
    assert len(wheels) > 10
    assert audit.carried(text) == [f"{name}=={pin['version']}" for name, pin in wheels.items()]


def test_vendored_scripts_that_nobody_looked_at_for_a_year_fail_the_audit(audit: ModuleType) -> None:
    """A year after the list's date the audit asks for a review."""
    looked_at = tomllib.loads(audit.VENDOR.read_text(encoding="utf-8"))["looked_at"]
    assert not audit.too_old(looked_at + timedelta(days=365))
    assert audit.too_old(looked_at + timedelta(days=366))
