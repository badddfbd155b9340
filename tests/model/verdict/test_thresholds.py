from __future__ import annotations

import pytest
from msgspec.structs import asdict, replace
from support.loops import for_all

from rooflens.errors import InputError
from rooflens.model.verdict.thresholds import default_thresholds, override_thresholds


@for_all(
    "name, value",
    [
        ("at_roof_share", 0.8),
        ("bound_share", 0.6),
        ("balanced_lead", 0.1),
        ("small_grid_waves", 1),
        ("overhead_duration_ns", 5000),
        ("dominant_stall", 0.3),
        ("full_occupancy_share", 0.8),
    ],
)
def test_defaults_are_nvidias(name: str, value: float) -> None:
    """80 % is high, 60 % on both sides is latency, 10 points decide, fewer blocks than one wave are a small grid."""
    assert asdict(default_thresholds())[name] == value


def test_an_empty_table_changes_nothing() -> None:
    """A table needs only the values it changes."""
    assert override_thresholds("[thresholds]\n# nothing\n", "t.toml") == default_thresholds()


@pytest.mark.parametrize(("value", "expected"), [("0.9", 0.9), ("1", 1.0), ("0", 0.0)])
def test_one_value_is_replaced(value: str, expected: float) -> None:
    """A value in the file replaces the default, and the others stay."""
    found = override_thresholds(f"[thresholds]\nat_roof_share = {value}\n", "t.toml")
    assert found == replace(default_thresholds(), at_roof_share=expected)
    assert isinstance(found.at_roof_share, float)


@for_all(
    "text, problem",
    [
        ("[thresholds", "`t.toml` is not valid TOML"),
        ("at_roof = ", "`t.toml` is not valid TOML"),
        ("[thresholds]\nroof = 0.9", "unknown threshold `roof`"),
        ("[thresholds]\nat_roof_share = '80 %'", "`at_roof_share` must be a number from 0 up"),
        ("[thresholds]\nat_roof_share = true", "`at_roof_share` must be a number from 0 up"),
        ("[thresholds]\nat_roof_share = -0.1", "`at_roof_share` must be a number from 0 up"),
        ("[thresholds]\nat_roof_share = [0.1]", "`at_roof_share` must be a number from 0 up"),
        ("[thresholds.at_roof_share]\nvalue = 1", "`at_roof_share` must be a number from 0 up"),
    ],
)
def test_bad_files_are_one_clear_error(text: str, problem: str) -> None:
    """A file that cannot be used is named in an error, rather than ignored."""
    with pytest.raises(InputError, match=problem) as caught:
        override_thresholds(text, "t.toml")
    assert "`t.toml`" in str(caught.value)


@for_all(
    "text",
    [
        "",
        "thresholds = 3",
        "[[thresholds]]\nat_roof_share = 0.9",
        "at_roof_share = 0.9",
        "[threshold]\nat_roof_share = 0.9",
        "[thresholds]\nat_roof_share = nan",
        "[thresholds]\nat_roof_share = inf",
    ],
)
def test_a_file_that_would_change_nothing_or_everything_is_an_error(text: str) -> None:
    """A table of the wrong kind, values outside the table, and values that are not numbers are errors."""
    with pytest.raises(InputError):
        override_thresholds(text, "t.toml")


def test_an_unknown_name_gets_the_known_ones() -> None:
    """The hint lists the names that could have been meant."""
    with pytest.raises(InputError) as caught:
        override_thresholds("[thresholds]\nroof = 0.9", "t.toml")
    assert "at_roof_share" in caught.value.hint


def test_the_digest_tells_thresholds_apart() -> None:
    """Results with other thresholds have another stamp, and with the same thresholds the same."""
    default = default_thresholds()
    assert override_thresholds("[thresholds]", "a.toml").digest == default.digest
    assert replace(default, bound_share=0.61).digest != default.digest
    assert len(default.digest) == 12


def test_a_share_above_one_is_refused() -> None:
    """`bound_share = 50`, meant as per cent, would call every kernel latency-bound."""
    with pytest.raises(InputError, match="a fraction"):
        override_thresholds("[thresholds]\nbound_share = 50", "t.toml")
