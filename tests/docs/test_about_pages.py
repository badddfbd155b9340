"""Pages about single terms: one per verdict, finding, flag and stall reason, short, complete and up to date."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache

from click.testing import CliRunner
from generators.about import MOST_WORDS, page_of
from generators.about import pages as written_pages

from rooflens.cli.group import main
from rooflens.collect.passes import base_names
from rooflens.model.about import everything, named
from rooflens.model.counters.balance import SAMPLED_AS, SAMPLED_ONLY, STALLS
from rooflens.model.counters.chips import CHIPS
from rooflens.model.findings.find import RULES
from rooflens.model.findings.siblings import SIBLING
from rooflens.model.knowledge.items import KINDS, find_item, names_of
from rooflens.model.verdict.nvidia_rules import NVIDIA_RULE
from rooflens.model.verdict_classes import BOUNDS

PAGES = everything()


@cache
def written() -> dict[str, str]:
    """Write the pages, by name."""
    return {name.removesuffix(".md"): make() for name, make in written_pages().items()}


def test_every_verdict_finding_flag_and_stall_is_one_item_and_nothing_else_is() -> None:
    """Classes, rules of ours and NVIDIA's, flags and stall reasons each have a knowledge file, and nothing else has."""
    findings = [*(rule.id for rule in RULES), NVIDIA_RULE, SIBLING]
    stalls = STALLS.keys() - SAMPLED_AS.values() | {"selected"}
    for kind, names in {"verdicts": BOUNDS, "findings": findings, "stalls": stalls}.items():
        assert set(names_of(kind)) == set(names)
        assert set(named(kind)) == set(names)
    assert written().keys() == {*map(page_of, PAGES), *(f"{kind}/index" for kind in KINDS)}


def test_a_page_is_short_and_names_its_item_first() -> None:
    """Each page has fewer than 300 words, with kind and name below the title."""
    for address, page in PAGES.items():
        text = re.sub(r"<!--.*?-->\n*", "", written()[page_of(address)])
        for part in re.split(r"\n## As a \w+", text):
            assert sum(bool(re.search(r"\w", word)) for word in part.split()) < MOST_WORDS, address
        assert f"\n\n{KINDS[page.kind].capitalize()} `{page.name}`." in text, address


def test_an_item_is_complete() -> None:
    """A page says what tells it, how to confirm it, what it does not show, in this order, and what to try."""
    for page in PAGES.values():
        counters, confirm, blind = page.parts
        assert re.match(r"(Counters?|Source)[:,] ", counters), page.address
        assert confirm.startswith("Confirm "), page.address
        assert blind.startswith("It does not "), page.address
        assert 1 <= len(page.tries) <= 5, page.address
        assert all(part.endswith(".") for part in (page.meaning, *page.parts)), page.address
        assert not any(one.endswith(".") or one[0].isspace() for one in page.tries), page.address
        assert page.kind != "verdicts" or not re.search("[{}]", f"{page.meaning} {page.tries}"), page.address


def test_a_finding_gives_two_moves_or_more() -> None:
    """The page of a finding ends with two to four moves."""
    for rule in RULES:
        item = find_item("findings", rule.id)
        assert item is not None
        assert 2 <= len(item.tries) <= 4, rule.id


def test_an_item_says_which_chips_count_its_stall_reason() -> None:
    """Our stall reasons are those of NVIDIA's library for each chip."""
    for chip in CHIPS:
        found = (
            re.fullmatch(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active", name) for name in base_names(chip)
        )
        counted = {match[1] for match in found if match and "_pipe_" not in match[1].replace("math_pipe_throttle", "")}
        items = {name: find_item("stalls", name) for name in names_of("stalls")}
        known = {
            name
            for name, item in items.items()
            if item and chip not in item.absent_on and (not item.only_on or chip in item.only_on)
        }
        assert counted == known - SAMPLED_ONLY, chip


def test_everything_is_known_without_docstrings() -> None:
    """With `python -OO`, which drops docstrings, a stall reason's page is still complete."""
    usual = CliRunner().invoke(main, ["about", "stall_long_scoreboard"]).stdout
    stripped = subprocess.run(
        [sys.executable, "-OO", "-m", "rooflens", "about", "stall_long_scoreboard"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert stripped == usual
    item = find_item("findings", "stall_long_scoreboard")
    assert item is not None
    assert all(move.split()[0] in stripped.casefold() for move in item.tries)
    assert item.blind.split()[-1] in stripped


def test_pages_name_commands_and_options_that_exist() -> None:
    """Each `rooflens COMMAND --option` on a page exists."""
    texts = (" ".join(text.split()) for text in written().values())
    calls = {call for text in texts for call in re.findall(r"`rooflens ([a-z]+)([^`]*)`", text)}
    assert len(calls) > 4
    for command, rest in calls:
        done = CliRunner().invoke(main, [command, "--help"])
        assert done.exit_code == 0, command
        for option in re.findall(r"--[a-z][a-z-]+", rest):
            assert option in done.output, f"{command} {option}"
