"""Templates: compiled code is cached, but never what our own code writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jinja2 import DictLoader, Environment

from rooflens.report import templates

CONSTANTS = "{{ 0.5|percent }} {{ 'a b'|upper }} {{ 3 }}"

DONE = "50\N{NO-BREAK SPACE}% A B 3"


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """List the templates that are compiled, in order."""
    names: list[str] = []
    compile_ = Environment.compile

    def listed(self: Environment, source: Any, name: str | None = None, *args: Any, **options: Any) -> Any:
        names.append(str(name))
        return compile_(self, source, name, *args, **options)

    monkeypatch.setattr(Environment, "compile", listed)
    return names


def fill(text: str) -> str:
    """Fill a template as a new process does."""
    environment = templates._environment.__wrapped__()
    environment.loader = DictLoader({"a.html": text})
    return str(environment.get_template("a.html").render())


def test_a_template_is_compiled_once(compiled: list[str]) -> None:
    """The next process takes it from the cache; a template whose text changed is compiled again."""
    assert fill(CONSTANTS) == fill(CONSTANTS) == DONE
    assert compiled == ["a.html"]
    assert fill("other") == "other"
    assert compiled == ["a.html"] * 2


def test_a_damaged_template_is_compiled_again(compiled: list[str], tmp_path: Path) -> None:
    """A damaged entry of the cache is not run."""
    fill(CONSTANTS)
    (file,) = (tmp_path / "rooflens" / "templates").iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    assert fill(CONSTANTS) == DONE
    assert len(compiled) == 2


@pytest.mark.parametrize(("owner", "name"), [(templates.jinja2, "__version__"), (templates, "__file__")])
def test_another_compiler_compiles_again(
    compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: object, name: str
) -> None:
    """A new Jinja, or a changed environment of ours, takes nothing from the cache."""
    fill(CONSTANTS)
    other = tmp_path / "other.py"
    other.touch()
    monkeypatch.setattr(owner, name, str(other))
    fill(CONSTANTS)
    assert len(compiled) == 2


def test_constants_are_written_by_the_code_of_today(monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed format is used at once, although the template comes from the cache."""
    fill(CONSTANTS)
    monkeypatch.setattr(templates.fmt, "percent", lambda _: "half")
    monkeypatch.setattr(templates.fmt, "unbroken", lambda text: text.replace("A", "O"))
    assert fill(CONSTANTS) == "half O B 3"
