"""The pages about single words: one for each verdict, finding and flag, short, complete and in step with the code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from support import reference
from support.reference.about import MOST_WORDS

from rooflens.cli.group import main
from rooflens.model.about.pages import About, every_page
from rooflens.model.bounds import BOUNDS
from rooflens.model.findings.nvidia import NVIDIA_RULE
from rooflens.model.findings.rule import SAID
from rooflens.model.findings.table import RULES
from rooflens.model.verdict.flags import FLAGS

if TYPE_CHECKING:
    from rooflens.model.findings.rule import FindingRule

PAGES = every_page()
WRITTEN = {address: (reference.FOLDER / f"{address}.md").read_text(encoding="utf-8") for address in PAGES}


def test_every_verdict_finding_and_flag_has_a_page_and_nothing_else_has() -> None:
    """The files below docs/reference are those of the classes, the rules with NVIDIA's, and the flags there are."""
    findings = [*(rule.id for rule in RULES), NVIDIA_RULE]
    named = {"verdicts": BOUNDS, "findings": findings, "flags": FLAGS}
    for kind, names in named.items():
        files = {file.stem for file in (reference.FOLDER / kind).glob("*.md")}
        assert files == {*names, "index"}
    assert len(PAGES) == sum(map(len, named.values()))


@pytest.mark.parametrize("address", PAGES)
def test_a_page_is_short_and_names_its_reader_first(address: str) -> None:
    """Under 300 words, with who it is for below its title."""
    text = re.sub(r"<!--.*?-->", "", WRITTEN[address])
    words = [word for word in text.split() if re.search(r"\w", word)]
    assert len(words) < MOST_WORDS
    assert text.split("\n\n")[1].startswith("For anyone who ")


@pytest.mark.parametrize("page", PAGES.values(), ids=lambda page: page.address)
def test_a_page_is_complete(page: About) -> None:
    """It has what tells it, how to confirm it, and what it does not show, in that order, and what to try."""
    counters, confirm, blind = page.parts
    assert re.match(r"(Counters?|Source)[:,] ", counters)
    assert confirm.startswith("Confirm ")
    assert blind.startswith("It does not ")
    assert 1 <= len(page.tries) <= 5
    assert all(part.endswith(".") for part in (page.meaning, *page.parts))
    assert not any(one.endswith(".") or one[0].isspace() for one in page.tries)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_docstring_begins_with_the_finding_and_ends_with_what_to_try(rule: FindingRule) -> None:
    """The docstring of a rule says the finding first, and two to four moves last."""
    assert SAID.match(rule.find.__doc__ or "")
    assert 2 <= len(rule.tries) <= 4


def test_pages_name_commands_and_options_that_exist() -> None:
    """Each `rooflens COMMAND --option` of a page is one."""
    texts = (" ".join(text.split()) for text in WRITTEN.values())
    calls = {call for text in texts for call in re.findall(r"`rooflens ([a-z]+)([^`]*)`", text)}
    assert len(calls) > 4
    for command, rest in calls:
        done = CliRunner().invoke(main, [command, "--help"])
        assert done.exit_code == 0, command
        for option in re.findall(r"--[a-z][a-z-]+", rest):
            assert option in done.output, f"{command} {option}"
