"""Explanations of the cards' terms: on the page itself, once, and linked from each card."""

from __future__ import annotations

import re
from functools import cache

from msgspec.structs import replace
from support import samples
from support.rendered import rendered

from rooflens.model.about import everything
from rooflens.model.records import Analysis


def _written(*analyses: Analysis) -> str:
    return rendered(samples.reports([samples.run()], analyses), "attention")


@cache
def _page() -> str:
    """Render kernels of every verdict, all with one flag, two with the same findings."""
    flagged = [replace(one, flags=("clocks_moved", "no_flop")) for one in samples.every_verdict()]
    explained = [samples.explained(20), samples.explained(21)]
    return _written(*flagged, *explained)


def _told(html: str) -> list[str]:
    return re.findall(r'<div id="about-(\w+-\w+)"', html)


def test_every_card_leads_to_explanations_that_stand_on_the_page_once() -> None:
    """Links of verdicts, findings and flags have a target; nothing is explained twice or without need."""
    html = _page()
    linked = set(re.findall(r'href="#about-(\w+-\w+)"', html))
    assert {"verdicts-memory", "verdicts-latency", "flags-clocks_moved", "flags-no_flop"} < linked
    assert any(one.startswith("findings-") for one in linked)
    told = _told(html)
    assert len(told) == len(set(told))
    assert linked <= set(told)
    assert {one.replace("-", "/", 1) for one in told} < everything().keys()


def test_an_explanation_is_that_of_the_documentation() -> None:
    """The words of the page are those printed by `rooflens about`."""
    html = " ".join(_page().split())
    page = everything()["flags/clocks_moved"]
    assert page.meaning in html
    assert page.parts[1] in html


def test_what_is_on_no_card_is_not_explained() -> None:
    """A page of one kernel explains only its verdict, findings and flags."""
    one = replace(samples.every_verdict()[0], findings=(), flags=("no_flop",))
    assert _told(_written(one)) == [f"verdicts-{one.verdict.bound}", "flags-no_flop"]


def test_a_flag_or_finding_that_nobody_knows_has_no_link() -> None:
    """Unknown names, from another version's store, are shown without a link."""
    found = samples.explained(0)
    odd = replace(found.findings[0], id="of_tomorrow", title="something new")
    html = _written(replace(found, findings=(odd,), flags=("of_tomorrow",)))
    assert "something new" in html
    assert "of_tomorrow" not in "".join(_told(html))
    assert "#about-findings-of_tomorrow" not in html
    assert "#about-flags-of_tomorrow" not in html
