"""Run the code in the documentation, each page's blocks in order and in a folder of its own.

The word after the three backticks of a fence decides:

- `console`: lines after `$ ` are commands; the rest is their output, with `...` for omitted parts.
- `sh`: each line is a command. `python` runs, `pycon` too, with its output; `sql` returns rows; `toml`, `json` parse.
- without a word, or with `text`, it is no code: rooflens calls in it must exist.
- a second word says why a block is not run: `gpu` (needs a GPU) or `elsewhere` (needs a machine, a service or a file
  that is not here). What rooflens is called with is checked all the same.

The reader's files (`report.ncu-rep`, `base/`, ...) are in the folder: published reports under these names.
"""

from __future__ import annotations

import doctest
import json
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner
from support import shell
from support.markdown import Block, blocks

from rooflens.cli.group import main

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "AGENTS.md", "CONTRIBUTING.md", "fixtures/README.md")),
    ROOT / "rooflens" / "skills" / "rooflens" / "SKILL.md",
    *sorted(ROOT.glob("docs/**/*.md")),
]
REASONS = {
    "gpu": "needs a GPU",
    "elsewhere": "needs a machine, a service or a file that is not here",
}
NOT_CODE = {"", "text", "markdown", "yaml", "ipython", "diff", "c", "cuda", "cpp", "html"}
BASELINE, BETTER = (f"fixtures/published/GPU_workshop__MW_{side}.ncu-rep" for side in ("Baseline", "DivToMult"))
SINGLE = {
    "report.ncu-rep": BASELINE,
    "last-week.ncu-rep": BASELINE,
    "model.ncu-rep": BASELINE,
    "base.ncu-rep": BASELINE,
    "head.ncu-rep": BETTER,
    "versions/app_v1.ncu-rep": BASELINE,
    "versions/app_v2.ncu-rep": BETTER,
    "gemm.ncu-rep": "fixtures/synthetic/sweep_gemm_bf16_4096.synthetic.ncu-rep",
}
FOLDERS = {
    **dict.fromkeys(("base", "before", "out/base", "v1", "v3"), BASELINE),
    **dict.fromkeys(("head", "after", "out/head", "v2", "nightly", "reports", "sample"), BETTER),
}


def _named(block: Block) -> str:
    return f"{block.page.relative_to(ROOT)}:{block.line}"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store of the stored reports, with its analysis."""
    folder = tmp_path_factory.mktemp("stored") / "store"
    for arguments in (["ingest", str(ROOT / "fixtures")], ["analyze"]):
        assert CliRunner().invoke(main, [*arguments, "--store", str(folder)]).exit_code == 0
    return folder


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_code_runs_and_prints_what_is_shown(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each unmarked block of a page runs, in page order, and prints what the page shows."""
    run = [block for block in blocks(page) if not block.mark]
    if not run:
        return
    here, names = shell.Shell(tmp_path, monkeypatch), {"__name__": "docs"}
    _furnish(tmp_path, page)
    if any(re.search(r"store\b|\bruns\b", block.code) for block in run):
        for name in ("store", "runs"):
            shutil.copytree(request.getfixturevalue("store"), tmp_path / name)
    failed = []
    for block in run:
        monkeypatch.chdir(here.folder)
        try:
            _run(block, here, names)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - all blocks of a page are tried, and all offenders named
            failed.append(f"{_named(block)}: {type(error).__name__}: {error}")
    assert not failed, "\n".join(failed)


def _run(block: Block, here: shell.Shell, names: dict[str, Any]) -> None:
    if block.language in {"sh", "console"}:
        _run_shell(block, here)
    elif block.language == "python":
        exec(compile(block.code, _named(block), "exec"), names)  # noqa: S102 - the documentation's own code
    elif block.language == "pycon":
        _run_pycon(block, names)
    elif block.language == "sql":
        assert duckdb.sql(block.code).fetchall()
    elif block.language == "toml":
        tomllib.loads(block.code)
    elif block.language == "json":
        json.loads(block.code)
    else:
        assert block.language in NOT_CODE, f"nothing is known of `{block.language}`"
        _check_calls(block)


def test_code_that_is_not_run_calls_what_there_is() -> None:
    """A marked block says why it does not run, and its rooflens calls have existing commands and options."""
    marked = [block for page in PAGES for block in blocks(page) if block.mark]
    assert {block.mark for block in marked} <= REASONS.keys()
    for block in marked:
        if block.language in {"sh", "console"}:
            _check_calls(block)
        elif block.language == "python":
            compile(block.code, _named(block), "exec")


def test_most_code_is_run() -> None:
    """Two of three code blocks run; the rest are marked."""
    code = [block for page in PAGES for block in blocks(page) if block.language not in NOT_CODE]
    assert sum(not block.mark for block in code) > 2 / 3 * len(code)


def _furnish(folder: Path, page: Path) -> None:
    """Put the files named on pages into a folder: reports as links, and the page's own rules for predictions."""
    for name in ("fixtures", "examples"):
        (folder / name).symlink_to(ROOT / name)
    reports = {**SINGLE, **{f"{name}/report.ncu-rep": report for name, report in FOLDERS.items()}}
    for name, report in reports.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(ROOT / report)
    rules = [block.code for block in blocks(page) if "[[kernel]]" in block.code]
    if rules:
        (folder / "rules.toml").write_text(rules[0], encoding="utf-8")


def _check_calls(block: Block) -> None:
    """Check a block's rooflens calls against the existing commands and options."""
    code = re.sub(r"\\\n\s*", " ", block.code)
    for line in code.splitlines() if re.search(r"^(\$ )?rooflens ", code, flags=re.MULTILINE) else ():
        for words in shell.calls(line.removeprefix("$ ")) if "rooflens" in line else ():
            if "rooflens" in words[:3] and words[0] in {"rooflens", "python"}:
                assert shell.unknown_option(words[words.index("rooflens") + 1 :]) is None, line


def _run_shell(block: Block, here: shell.Shell) -> None:
    typed = shell.commands(block.code, prompted=block.language == "console")
    for command, following in zip(typed, [*typed[1:], None], strict=True):
        printed = here.run(command.typed)
        if command.shown.strip() and not shell.as_shown(command.shown, printed):
            here.is_wide = not here.is_wide  # as on a terminal, and so most likely what follows on this page
            printed = here.run(command.typed)
            assert shell.as_shown(command.shown, printed), f"$ {command.typed}\n{printed}"
        asked = following is not None and following.typed == "echo $?"
        assert asked or not here.exit_code, f"{command.typed} ends with {here.exit_code}:\n{printed}"


def _run_pycon(block: Block, names: dict[str, Any]) -> None:
    found = doctest.DocTestParser().get_doctest(f"{block.code}\n", names, _named(block), str(block.page), block.line)
    lines: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    assert not runner.run(found, out=lines.append, clear_globs=False).failed, "".join(lines)
    names.update(found.globs)
