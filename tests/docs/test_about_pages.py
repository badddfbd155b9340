"""The pages about single words: one for each verdict, finding, flag and stall reason, short, complete, in step."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from support import reference
from support.reference.about import MOST_WORDS

from rooflens.cli.group import main
from rooflens.ingest.ncu.passes import base_names
from rooflens.model.about.pages import About, every_page
from rooflens.model.about.stalls import STALL_TEXTS
from rooflens.model.bounds import BOUNDS
from rooflens.model.counters.balance import SAMPLED_AS, SAMPLED_ONLY, STALLS
from rooflens.model.counters.chips import CHIPS
from rooflens.model.findings.nvidia import NVIDIA_RULE
from rooflens.model.findings.rule import SAID
from rooflens.model.findings.table import RULES
from rooflens.model.verdict.flags import FLAGS

if TYPE_CHECKING:
    from rooflens.model.findings.rule import FindingRule

PAGES = every_page()
WRITTEN = {address: (reference.FOLDER / f"{address}.md").read_text(encoding="utf-8") for address in PAGES}


def test_every_verdict_finding_flag_and_stall_has_a_page_and_nothing_else_has() -> None:
    """The files below docs/reference are those of the classes, the rules with NVIDIA's, the flags and the stalls."""
    findings = [*(rule.id for rule in RULES), NVIDIA_RULE]
    stalls = STALLS.keys() - SAMPLED_AS.values() | {"selected"}
    named = {"verdicts": BOUNDS, "findings": findings, "flags": FLAGS, "stalls": stalls}
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


@pytest.mark.parametrize("chip", CHIPS)
def test_a_page_says_which_chips_count_its_stall_reason(chip: str) -> None:
    """NVIDIA's library lists the same reasons for a chip as the pages do, and none that has no page."""
    found = (
        re.fullmatch(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active", name) for name in base_names(chip)
    )
    counted = {match[1] for match in found if match and "_pipe_" not in match[1].replace("math_pipe_throttle", "")}
    assert counted == {name for name, text in STALL_TEXTS.items() if chip in text.chips} - SAMPLED_ONLY


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
