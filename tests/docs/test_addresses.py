"""The project's address is stored once, and everything that repeats it agrees."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from support.tracked import tracked

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "packaging/project.toml").read_text("utf-8"))


def test_every_place_that_repeats_the_address_repeats_the_stored_one() -> None:
    """The owner is the same in clone commands, the action's name in docs and examples, and the registry's name."""
    owner, name = PROJECT["address"].removeprefix("https://").split("/")[-2:]
    texts = {path: text for path in tracked() if (text := _text(ROOT / path)) is not None}
    told = rf"(?:git clone \S+/|uses: |`|io\.github\.)([\w-]+)/{name}(?:@v\d|\b(?= &&|\"))"
    found = {(path, owner) for path, text in texts.items() for owner in re.findall(told, text)}
    assert {path for path, _ in found} == {*PROJECT["repeated"]}
    assert {one for one in found if one[1] != owner} == set()


def test_citation_and_marketplace_name_the_stored_author() -> None:
    """The author is the same in the citation and in the agents' marketplace."""
    cited = re.search(r"^authors:\n  - name: (.*)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    market = json.loads((ROOT / ".claude-plugin/marketplace.json").read_text("utf-8"))
    assert cited
    assert {cited[1], market["owner"]["name"]} == {PROJECT["author"]}


def test_what_waits_for_an_address_is_there() -> None:
    """Each file in the list of those that cannot be used before is tracked, and says what it needs."""
    assert [name for name, needs in PROJECT["waiting"].items() if name not in tracked() or not needs] == []


def _text(path: Path) -> str | None:
    return path.read_text("utf-8") if path.suffix in {".md", ".yml", ".json", ".toml", ".cff"} else None


def test_nobody_is_told_to_install_from_an_index_that_lacks_it() -> None:
    """No page says `pip install rooflens`, which would install nothing, or somebody else's package."""
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "rooflens").rglob("*.py")]
    told = r"pip install (?!--no-index)\'?rooflens\b(?!-)"
    assert [str(file) for file in files if re.search(told, file.read_text(encoding="utf-8"))] == []


def test_the_program_sends_nobody_to_a_file_that_the_wheel_lacks() -> None:
    """Texts of the package refer to its files, to commands, or to pages of the documentation by title."""
    texts = {
        f"{path.relative_to(ROOT)}:{node.lineno}": node.value
        for path in (ROOT / "rooflens").rglob("*.py")
        for node in _said(ast.parse(path.read_text(encoding="utf-8")))
    }
    texts |= {
        str(path): path.read_text(encoding="utf-8") for path in (ROOT / "rooflens/model/knowledge").rglob("*.toml")
    }
    lacking = r"(?<![\w/.])(?:docs|fixtures|examples|benchmarks|tests)/\w"
    assert [where for where, text in texts.items() if re.search(lacking, text)] == []


def _said(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the texts of a module that are no docstrings."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node


def test_words_name_pages_by_their_titles() -> None:
    """Each documentation page named by `rooflens about` exists under that title."""
    titles = {
        path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for path in ROOT.glob("docs/**/*.md")
    }
    text = " ".join((ROOT / "rooflens/model/knowledge/words.toml").read_text(encoding="utf-8").split())
    named = re.findall(r'[Ii]n the documentation: "([^"]+)"', text)
    assert len(named) > 4
    assert [title for title in named if title not in titles] == []
