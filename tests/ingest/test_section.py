from __future__ import annotations

import re

import pytest

from rooflens.errors import UsageError
from rooflens.ingest.chips import CHIPS
from rooflens.ingest.section import section_file_name, section_name, section_text
from rooflens.ingest.tiers import DETAILS, metrics_for

WHOLE = """\
Identifier: "Rooflens_quick"
DisplayName: "rooflens quick"
Description: "What rooflens collects for the tier quick on tu116."
Order: 1000
Metrics {
  Metrics {
    Label: "GPU time of the launch"
    Name: "gpu__time_duration.sum"
  }
  Metrics {
    Label: "elapsed SM cycles"
    Name: "sm__cycles_elapsed.max"
  }
"""


def test_a_section_reads_as_a_person_would_write_it() -> None:
    """The file starts with its identifier, in the format of ncu's own sections, and ends with the list."""
    text = section_text("tu116", "quick")
    assert text.startswith(WHOLE)
    assert text.endswith('"\n  }\n}\n')


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("detail", DETAILS)
def test_a_section_holds_the_tier_and_no_filter(chip: str, detail: str) -> None:
    """Every name of the tier stands in its section once, and no architecture is named: ncu rejects those it lacks."""
    text = section_text(chip, detail)
    assert re.findall(r'^    Name: "(.+)"$', text, flags=re.MULTILINE) == [m.name for m in metrics_for(chip, detail)]
    assert "Filter" not in text
    assert "Arch" not in text


def test_braces_and_quotes_are_balanced() -> None:
    """The text is one well-formed message."""
    text = section_text("gh100", "deep")
    assert text.count("{") == text.count("}") == len(metrics_for("gh100", "deep")) + 1
    assert all(line.count('"') in {0, 2} for line in text.splitlines())


def test_the_file_is_named_after_its_identifier() -> None:
    """The file ends in `.section`, which ncu looks for, and its stem is what `--section` takes."""
    assert section_file_name("standard") == f"{section_name('standard')}.section" == "Rooflens_standard.section"


def test_unknown_chips_are_refused() -> None:
    """No section is written for a chip that nobody knows."""
    with pytest.raises(UsageError):
        section_text("gh999", "quick")
