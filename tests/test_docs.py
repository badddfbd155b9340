"""The documentation agrees with the code."""

from __future__ import annotations

import ast
import functools
import json
import os
import re
import sys
from pathlib import Path
from types import FrameType

import pytest
from click.testing import CliRunner
from generators import FOLDER as REFERENCE
from generators import PAGES as MADE
from generators import TABLES, WRITTEN_WHOLE
from generators.texts import filled
from support import markdown
from support.tracked import tracked

import rooflens
from rooflens.cli.group import main

ROOT = Path(__file__).parent.parent
WRITTEN_BY_BUILD = {REFERENCE / name for name in MADE}
_EVERY = {*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("fixtures/*.md")} - WRITTEN_BY_BUILD
PAGES = sorted(page for page in _EVERY if page.parent not in WRITTEN_WHOLE)
"""Pages in the repository; the site's test covers those that `make docs` writes."""
DOCUMENTATION = [page for page in PAGES if ROOT / "docs" in page.parents]


def test_links_lead_somewhere() -> None:
    """Every relative link in a tracked file leads to a tracked file or folder, and its anchor to a heading."""
    wrong = []
    known = {ROOT / name for name in tracked()}
    known |= {folder for file in known for folder in file.parents}
    pages = {*PAGES, *(file for file in known if file.suffix in {".md", ".txt"} and ROOT / "tests" not in file.parents)}
    for page in pages:
        for target in markdown.links(page):
            name, _, anchor = target.partition("#")
            file = Path(os.path.normpath(page.parent / name)) if name else page
            if file not in known or (anchor and anchor not in markdown.anchors(file)):
                wrong.append(f"{page.relative_to(ROOT)}: {target}")
    assert wrong == []


def test_no_line_of_a_paragraph_becomes_a_list() -> None:
    """No sentence wraps so that a line starts like a list item, with `6.` or `+`."""
    assert {str(page): lines for page in PAGES if (lines := markdown.lists_in_paragraphs(page))} == {}


def test_nothing_is_left_of_a_cut() -> None:
    """Every code block ends, and no line stands there twice in a row."""
    assert {str(page): lines for page in PAGES if (lines := markdown.open_blocks(page))} == {}
    assert {str(page): lines for page in PAGES if (lines := markdown.doubled_lines(page))} == {}


def test_sentences_are_short() -> None:
    """No sentence outside tables has more than 45 words."""
    assert {str(page): long for page in PAGES if (long := markdown.long_sentences(page, 45))} == {}


def test_every_page_is_in_a_table_of_contents() -> None:
    """Every page is in a list that starts from docs/index.md, or from a folder's index.md, which make the contents."""
    listed = {ROOT / "docs" / "index.md"}
    waiting = list(listed)
    while waiting:
        index = waiting.pop()
        found = {(index.parent / name).resolve() for name in markdown.contents(index)} - listed
        listed |= found
        waiting += [page for page in found - WRITTEN_BY_BUILD if page.name == "index.md"]
    tops = {page for page in WRITTEN_BY_BUILD if page.parent == REFERENCE or page.name == "index.md"}
    assert sorted(page for page in {*DOCUMENTATION, *tops} - listed) == [], "list it in docs/index.md"


def test_every_page_opens_with_its_subject() -> None:
    """Each title is followed by a paragraph about the subject, not about the reader."""
    texts = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in DOCUMENTATION}
    texts |= {name: make() for name, make in MADE.items()}
    assert [name for name, text in texts.items() if not re.match(r"# .+\n\n(?!For )[\w\"`\[]", text)] == []


def test_the_documentation_stays_small() -> None:
    """At most 110 pages are stored, including the agents' skill and a transcript: merge before adding one."""
    assert len(PAGES) + 2 <= 110


def test_files_of_the_package_are_where_a_page_says() -> None:
    """Every package file named on a page exists."""
    rooms = "cli|collect|ingest|model|report|workloads|writing"
    loose = "analyzing|cache|checking|errors|files|format|local_gpu|processes"
    file = re.compile(rf"`(?:rooflens/)?((?:(?:{rooms})/[\w/.]+|{loose})\.(?:py|toml|json|html))`")
    named = [(page.name, name) for page in PAGES for name in file.findall(page.read_text("utf-8")) if "ID" not in name]
    assert len(named) > 50
    assert [pair for pair in named if not (ROOT / "rooflens" / pair[1]).exists()] == []


@functools.cache
def _said_by_the_code() -> str:
    """Return all texts of the package, one per line, without the values filled in."""
    texts: list[str] = []
    for path in (ROOT / "rooflens").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
            elif isinstance(node, ast.JoinedStr):
                texts.append("".join(str(part.value) for part in node.values if isinstance(part, ast.Constant)))
    return "\n".join(text.replace("\n", " ") for text in texts)


def test_messages_that_are_explained_are_said() -> None:
    """Each message quoted on a page of messages is a text of the package, with `...` for values."""
    unsaid = []
    for page in ROOT.glob("docs/reference/messages/*.md"):
        quoted = re.findall(r"^> (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert quoted, page
        for message in quoted:
            parts = [re.escape(part.strip(" `")) for part in message.split("...") if part.strip(" `:.,;()")]
            if not re.search("[^\n]*".join(parts), _said_by_the_code()):
                unsaid.append(f"{page.name}: {message}")
    assert unsaid == []


def test_pages_that_the_code_names_are_there() -> None:
    """Every documentation page named by a hint, a docstring or a file exists, or is made by `make docs`."""
    files = [
        path
        for folder in ("rooflens", "tests", "fixtures", "benchmarks", "examples", "docs")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".toml", ".jinja", ".html", ".md", ".json", ".yml", ".ipynb"}
    ]
    named = {
        (name, str(path.relative_to(ROOT)))
        for path in [*ROOT.glob("[!.]*.*"), *ROOT.glob("Makefile"), *files]
        for name in re.findall(r"(?<![\w/.])docs/[\w/-]+\.md", path.read_text(encoding="utf-8"))
    }
    assert len(named) > 20
    there = {str(page.relative_to(ROOT)) for page in WRITTEN_BY_BUILD}
    assert [pair for pair in named if pair[0] not in there and not (ROOT / pair[0]).is_file()] == []


def test_reports_that_the_readme_opens_are_in_the_clone() -> None:
    """Every stored report in a command of the README exists, including the first command's."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"fixtures/\S+\.ncu-rep", text)
    assert f"rooflens report {named[0]}" in text
    assert all((ROOT / name).exists() for name in named)


def test_every_file_that_llms_txt_lists_exists() -> None:
    """The documentation list for models names existing files, and every page for users."""
    listed = re.findall(r"\]\(([^)]+)\)", (ROOT / "llms.txt").read_text(encoding="utf-8"))
    assert len(listed) > 10
    assert all((ROOT / name).is_file() for name in listed)


@pytest.mark.parametrize("page", ["AGENTS.md", "rooflens/skills/rooflens/SKILL.md", "docs/how-to/agents.md"])
def test_pages_for_agents_name_commands_and_options_that_exist(page: str) -> None:
    """Every `rooflens COMMAND` on the pages for agents exists, with the options after it."""
    text = (ROOT / page).read_text(encoding="utf-8")
    calls = re.findall(r"(?:^ +|`)rooflens ([a-z]+)([^`\n#]*)", text, flags=re.MULTILINE)
    assert calls
    for command, rest in calls:
        arguments = [command, *(["gemm"] if command == "predict" else [])]
        done = CliRunner().invoke(main, [*arguments, "--help"])
        assert done.exit_code == 0, command
        for option in re.findall(r"(?<= )--[a-z][a-z-]+", rest):
            assert f"{option} " in done.output or f"{option}\n" in done.output, f"{command} {option}"


def test_the_skill_is_printed_as_it_stands_and_short() -> None:
    """`rooflens skill` prints the package's file, which an agent can load whole."""
    text = (ROOT / "rooflens" / "skills" / "rooflens" / "SKILL.md").read_text(encoding="utf-8")
    assert CliRunner().invoke(main, ["skill"]).stdout == text
    assert text.startswith("---\nname: rooflens\n")
    assert len(text.encode()) < 6000


def _holds(value: object, wanted: float, depth: int = 5) -> bool:
    """Return whether a value is in a record, in nested records, or in their mappings and lists."""
    if isinstance(value, (int, float)):
        return value == wanted
    if depth == 0 or isinstance(value, (str, bytes, type(None))):
        return False
    if isinstance(value, dict):
        return any(_holds(one, wanted, depth - 1) for one in value.values())
    if isinstance(value, (list, tuple)):
        return any(_holds(one, wanted, depth - 1) for one in value[:50])
    fields = getattr(type(value), "__struct_fields__", ())
    return any(_holds(getattr(value, name), wanted, depth - 1) for name in fields)


def test_one_byte_goes_the_way_that_is_described(fixtures: Path) -> None:
    """Each file that carries a kernel's DRAM bytes to the JSON is in the architecture's walk."""
    text = (ROOT / "docs" / "project" / "architecture.md").read_text(encoding="utf-8")
    walk = text.partition("## The way of one byte")[2].partition("\nTo the terminal")[0]
    named = tuple(re.findall(r"`([\w/]+(?:\.py|/))`", walk))
    report = str(fixtures / "synthetic" / "verdict_memory_dram.synthetic.ncu-rep")
    (kernel,) = json.loads(CliRunner().invoke(main, ["analyze", report, "--format", "json"]).stdout)["kernels"]
    package, held, looking = str(Path(rooflens.__file__).parent), set(), [False]

    def look(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        file = code.co_filename[len(package) + 1 :]
        if event != "call" or looking[0] or not code.co_filename.startswith(package) or file in held:
            return
        looking[0] = True  # accesses of this search itself are not followed
        given = [frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount]]
        if any(_holds(one, kernel["bytes"]["dram"]) for one in given):
            held.add(file)
        looking[0] = False

    sys.setprofile(look)
    try:
        CliRunner().invoke(main, ["analyze", report, "--format", "json"])
    finally:
        sys.setprofile(None)
    assert len(held) > 10
    assert sorted(file for file in held if not file.startswith(named)) == []


def test_the_readme_names_commands_that_exist() -> None:
    """Every `rooflens COMMAND` of the README is a command, and every `make TARGET` a target."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = set(re.findall(r"rooflens ([a-z]+) ", text))
    targets = set(re.findall(r"make ([a-z]+)", text)) - {"itself"}
    known = CliRunner().invoke(main, ["--help"]).output
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(f"\n  {command} " in known for command in commands)
    assert all(re.search(rf"^{target}:", makefile, flags=re.MULTILINE) for target in targets)


def test_pages_made_of_the_code_have_no_hole() -> None:
    """Commands, fields, columns, metrics and thresholds are in the reference, each with its meaning."""
    assert [name for name, make in MADE.items() if re.search(r"\| +\|$", make(), flags=re.MULTILINE)] == []


def test_every_table_made_of_the_code_has_its_place_on_a_page() -> None:
    """Each page with generated tables says where they go, and names no others."""
    for name, make in TABLES.items():
        text, tables = (REFERENCE / name).read_text(encoding="utf-8"), make()
        assert set(re.findall(r"<!-- table (\S+) -->", text)) == set(tables), name
        assert "<!-- table" not in filled(text, tables)
        assert not re.search(r"\| +\|$", "\n".join(filled(text, tables).splitlines()), flags=re.MULTILINE), name
