from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest
from support.loops import for_all
from support.snapshots import SWITCH

from rooflens.collect import passes
from rooflens.collect.passes import base_names, count_passes, list_chips
from rooflens.collect.tiers import hardware_names, metrics_for
from rooflens.errors import EnvironmentMissingError, UsageError
from rooflens.model.counters.chips import CHIPS, FAMILIES, TCGEN05, TU10X, TU11X, XAVIER
from rooflens.model.counters.metric import DETAILS
from rooflens.model.counters.tensor import tensor_counters

DOC = Path(__file__).parents[2] / "docs" / "explanation" / "passes.md"
each_chip = for_all("chip", CHIPS)

NCU_SETS = {
    "tu102": (9, 15),
    "ga100": (11, 16),
    "ad102": (9, 17),
    "gh100": (11, 20),
    "gb100": (11, 17),
    "gb202": (10, 18),
}
"""Chip -> passes of `--set roofline` and `--set full` from the same scheduler, with the sections of ncu 2024.1."""


@cache
def counted(chip: str, detail: str) -> passes.Passes:
    """Ask the scheduler once per chip and tier."""
    return count_passes(chip, hardware_names(chip, detail))


def goal(chip: str, detail: str) -> int:
    """Return the most passes that `quick` or `standard` may take; `deep` is unlimited."""
    if detail == "quick":
        return 3 if chip in TU10X | TU11X | XAVIER else 2
    return 6 if chip in TCGEN05 else 4 if chip in XAVIER else 3


def test_every_chip_of_the_library_is_known() -> None:
    """The family of every chip in NVIDIA's library is listed here."""
    assert set(list_chips()) <= set(CHIPS)


def test_every_name_of_a_tier_is_a_counter_of_its_chip() -> None:
    """The chip knows each hardware name of a tier: ncu refuses a list with a single wrong name."""
    unknown = {(chip, detail): counted(chip, detail).unknown for chip in CHIPS for detail in DETAILS}
    assert {tier: names for tier, names in unknown.items() if names} == {}


def test_tiers_keep_to_their_passes() -> None:
    """`quick` and `standard` need no more hardware passes than promised, on every chip."""
    tiers = [(chip, detail) for chip in CHIPS for detail in ("quick", "standard")]
    assert [tier for tier in tiers if counted(*tier).hardware_passes > goal(*tier)] == []


@for_all("chip", sorted({min(family) for _, family in FAMILIES}))
def test_the_order_of_names_costs_no_pass(chip: str) -> None:
    """A tier keeps to its passes in whatever order ncu takes its names."""
    names = list(hardware_names(chip, "standard"))
    limit = goal(chip, "standard")
    assert count_passes(chip, sorted(names)).hardware_passes <= limit
    assert count_passes(chip, reversed(names)).hardware_passes <= limit


@each_chip
def test_dense_peaks_of_all_tensor_counters_are_free(chip: str) -> None:
    """The peaks of all tensor counters are in `quick`, and alone take the single pass that any list takes."""
    peaks = [
        name for name in hardware_names(chip, "quick") if re.fullmatch(r"sm__ops_path_tensor_.*peak_sustained", name)
    ]
    assert len(peaks) >= len({name for row in tensor_counters(chip) for name in row.names()}) // 2
    assert count_passes(chip, peaks).hardware_passes == 1


@each_chip
def test_the_table_of_tensor_counters_is_complete(chip: str) -> None:
    """Our table has every tensor operation counter of the chip, except sums of others and real-time copies."""
    ours = {
        name
        for row in tensor_counters(chip)
        for suffix in (("", "_sparsity_off", "_sparsity_on") if row.split else ("",))
        for name in row.names(suffix)
    }
    theirs = {name for name in base_names(chip) if name.startswith("sm__ops_path_tensor_")}
    theirs = {name for name in theirs if not name.endswith("_realtime")}
    assert theirs - ours <= {"sm__ops_path_tensor_op_hmma_src_fp16"}
    assert ours <= theirs


@for_all("names", [family for _, family in FAMILIES])
def test_chips_of_a_family_have_the_same_metrics(names: frozenset[str]) -> None:
    """Chips of a family have the same metrics."""
    assert len({base_names(chip) for chip in names}) == 1


def test_what_is_no_counter_is_named() -> None:
    """Names that the chip cannot count are returned separately, and cost no pass."""
    asked = ["dram__bytes.sum", "no__such_thing.sum", "launch__grid_size"]
    assert count_passes("gh100", asked) == passes.Passes(("no__such_thing.sum", "launch__grid_size"), 1)


def test_a_wrong_chip_is_a_usage_error() -> None:
    """The error for an unknown chip lists the known chips."""
    with pytest.raises(UsageError, match="gh999") as error:
        count_passes("gh999", ["dram__bytes.sum"])
    assert "gh100" in error.value.hint


@pytest.fixture
def _no_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hide NVIDIA's library for one test."""
    monkeypatch.setattr(passes, "find_spec", lambda _name: None)
    passes._library.cache_clear()
    yield
    passes._library.cache_clear()


@pytest.mark.usefixtures("_no_library")
def test_a_missing_library_says_how_to_get_it() -> None:
    """Without the wheel an environment error names the command that installs it."""
    with pytest.raises(EnvironmentMissingError, match="libnvperf_host") as error:
        list_chips()
    assert error.value.hint == "pip install ncu-report"
    assert error.value.exit_code == 3


def test_a_library_that_cannot_be_loaded_is_an_environment_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken library file gives no traceback."""
    (tmp_path / "libnvperf_host.so").write_bytes(b"no library")
    monkeypatch.setattr(passes, "_candidates", lambda: iter([tmp_path / "libnvperf_host.so"]))
    passes._library.cache_clear()
    with pytest.raises(EnvironmentMissingError, match="cannot be loaded"):
        list_chips()
    passes._library.cache_clear()


def pass_table() -> str:
    """Write the table of `explanation/passes.md`: chip families, and each tier's cost beside ncu's own sets."""
    lines = [
        "| chips | CC | `quick` | `standard` | `deep` | `--set roofline` | `--set full` |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for family in dict.fromkeys(family for _, family in FAMILIES):
        chips, chip = ", ".join(sorted(family)), min(family)
        capability = ", ".join(known for known, chips_of in FAMILIES if chips_of == family)
        costs = [counted(chip, detail).hardware_passes for detail in DETAILS]
        own = NCU_SETS.get(chip, ("", ""))
        lines.append(f"| {chips} | {capability} | {' | '.join(str(cost) for cost in (*costs, *own))} |")
    return "\n".join(lines)


def later_table() -> str:
    """Write the table of counters that are in `standard` on some chips and in `deep` on others."""
    tiers = {
        chip: {m.name.partition(".")[0]: m.detail for m in metrics_for(chip, "deep")}
        for chip in map(min, dict.fromkeys(f for _, f in FAMILIES))
    }
    early = {base for bases in tiers.values() for base, detail in bases.items() if detail != "deep"}
    lines = ["| counter | waits for `deep` on |", "| --- | --- |"]
    for base in sorted(early):
        late = [chip for chip, bases in tiers.items() if bases.get(base) == "deep"]
        if late and not base.startswith("sm__ops_path_tensor_"):
            lines.append(f"| `{base}` | {', '.join(late)} |")
    return "\n".join(lines)


def test_the_documented_passes_are_the_counted_ones() -> None:
    """The documentation's tables agree with scheduler and tiers; ROOFLENS_REWRITE=1 rewrites them."""
    text = DOC.read_text(encoding="utf-8")
    installed = version("ncu-report")
    documented = re.search(r"`ncu-report` ([\d.]+)", text)
    assert documented is not None
    if documented[1] != installed:
        pytest.skip(f"the tables were written with ncu-report {documented[1]}, and {installed} is installed")
    tables = pass_table(), later_table()
    if os.environ.get(SWITCH) == "1":
        for table in tables:
            head = re.escape(table.partition("\n")[0])
            text = re.sub(rf"^{head}\n(?:\|.*\n)+", lambda _, table=table: f"{table}\n", text, flags=re.MULTILINE)
        DOC.write_text(text, encoding="utf-8")
    assert [table for table in tables if table not in text] == []
