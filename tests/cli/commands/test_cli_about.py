"""`rooflens about`: the pages of verdicts, findings, flags, stall reasons and counters on a terminal."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner
from support import markdown
from support.loops import for_all

import rooflens
from rooflens.cli.commands.about import about as command
from rooflens.cli.group import main
from rooflens.errors import UnknownNameError
from rooflens.model.about import FAMILIES, PAGE_OF_PART, about_counter, everything, find_about
from rooflens.model.counters.table import COUNTERS
from rooflens.model.knowledge.items import column_heads, words
from rooflens.model.summary import summarize
from rooflens.report.document import Table, spans
from rooflens.report.overview.kernels import kernels_document
from rooflens.writing.about import explained


def _shown(*arguments: str) -> str:
    done = CliRunner().invoke(main, ["about", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_page_of_a_name_is_printed() -> None:
    """A finding's page says what it means, its counter, and what to try."""
    text = _shown("small_grid")
    assert text.startswith("Too few blocks\n")
    assert "`launch__waves_per_multiprocessor`" in text
    assert "1. Use smaller tiles" in text


@pytest.mark.parametrize("name", ["too few blocks", "Small-Grid", "findings/small_grid", "SMALL_GRID"])
def test_a_name_may_be_written_as_a_card_does(name: str) -> None:
    """Title, any case, hyphens and the kind's prefix all lead to the page."""
    assert _shown(name) == _shown("small_grid")


def test_a_name_of_two_things_shows_both_and_its_kind_one() -> None:
    """`bank_conflicts` names a finding and a flag; `flags/bank_conflicts` only the flag."""
    both, one = _shown("bank_conflicts"), _shown("flags/bank_conflicts")
    assert "Finding `bank_conflicts`." in both
    assert one in both
    assert "Flag `bank_conflicts`." in one


@pytest.mark.parametrize("name", ["Long Scoreboard", "stalls/long_scoreboard"])
def test_a_stall_reason_is_found_as_ncu_writes_it(name: str) -> None:
    """A row of ncu's tables leads to the page, which shows its counter; a finding keeps its own name."""
    text = _shown("long_scoreboard")
    assert _shown(name) == text
    assert "`smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active`" in text
    assert "Finding `stall_long_scoreboard`." in _shown("stall_long_scoreboard")


def test_a_stall_reason_is_found_as_samples_spell_it() -> None:
    """Counters call it `no_instruction`, samples `no_instructions`; both lead to one page with both names."""
    text = _shown("no_instructions")
    assert text == _shown("no_instruction")
    assert "_stalled_no_instruction_per" in text
    assert "_stalled_no_instructions`" in text


def test_a_counter_says_what_it_counts_and_what_is_read_from_it() -> None:
    """A counter's page has its unit, roll-up, quantity, the findings that need it, and its family."""
    text = _shown("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum")
    assert "Counts: wavefronts added by bank conflicts (loads, shared memory)." in text
    assert "Unit: the L1/TEX cache of an SM." in text
    assert "`.sum`: added up over all instances" in text
    assert "Read for `smem_load_conflict_wavefronts`:" in text
    assert "Findings that need `smem_load_conflict_wavefronts`: `bank_conflicts`." in text
    assert text.endswith('More about its family in the documentation: "Shared memory"\n')


def test_a_counter_that_is_not_read_is_told_of_by_its_name() -> None:
    """A counter in no tier also has a unit, a meaning and a family, and similar counters of its unit."""
    text = _shown("lts__t_requests_op_read.sum")
    assert "Counts: requests (reads)." in text
    assert "Unit: an L2 slice." in text
    assert "`lts__t_sectors_op_read`" in text
    assert "Collected: in no tier" in text
    assert text.endswith('in the documentation: "DRAM, L2, atomics, the host\'s memory", l2\n')


@for_all(
    "name, said",
    [
        ("dram_bytes", "Read from, the first that is there: `dram__bytes`, `dram__bytes_read`"),
        ("launch__waves_per_multiprocessor", "Collected: for every kernel"),
        ("sm__pipe_tensor_op_hmma_cycles_active.avg", '"Arithmetic: FLOPs, tensor work, pipes", tensor instructions'),
        ("smsp__pcsamp_warps_issue_stalled_no_instructions", "`rooflens about stalls/no_instruction`"),
        ("gpu__time_duration.sum", "Read for `duration_ns`: GPU time of the launch."),
        ("dram__bytes.sum.per_second", "`.per_second`: divided by the time"),
    ],
)
def test_counters_of_each_kind_are_explained(name: str, said: str) -> None:
    """Quantities, launch figures, pipes, samples, times and rates have a line each."""
    assert said in " ".join(_shown(name).split())


def test_every_family_has_a_page() -> None:
    """Every counter that a page refers to has a page: each quantity's sources, and names known only by their parts."""
    pages = {about.page for row in COUNTERS if (about := about_counter(row.name)) is not None}
    folder = Path(__file__).parents[3] / "docs/reference/counters"
    assert pages == set(FAMILIES)
    for page, _, section in (name.partition("#") for name in {*pages, *(page for _, page in PAGE_OF_PART), "index.md"}):
        assert not section or section in markdown.anchors(folder / page), f"{page}#{section}"
        assert (folder / page).is_file()


def test_all_names_are_listed_without_one() -> None:
    """Every page is in the list, under its kind."""
    lines = _shown().splitlines()
    assert {page.name for page in everything().values()} <= {line.split(" ")[0] for line in lines}
    kinds = [line for before, line in pairwise(["", *lines]) if not before and line]
    assert kinds == ["Verdicts", "Findings", "Flags", "Stall reasons", "Sections of ncu, each with its labels", "Words"]


def test_an_unknown_name_gets_the_nearest() -> None:
    """A typo is answered with a suggestion and exit code 2."""
    with pytest.raises(UnknownNameError) as error:
        find_about("smal_grid")
    assert "`small_grid`" in str(error.value.hint)
    assert CliRunner().invoke(main, ["about", "smal_grid"]).exit_code == UnknownNameError.exit_code


def test_names_are_completed() -> None:
    """Shell completion offers the names that start with the typed text."""
    (argument,) = command.params
    offered = [item.value for item in argument.shell_complete(command.make_context("about", []), "stall_m")]
    assert offered == ["stall_mio_throttle", "stall_math_pipe_throttle", "stall_membar", "stall_misc"]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("headroom", "It replaces headroom"),
        ("potential", "How much faster the kernel can be at most"),
        ("gain", "About how much faster the first move alone makes the kernel"),
        ("roofline", "FLOP/s, upwards"),
        ("ridge", "peak FLOP/s over bandwidth"),
        ("Coalescing", "scattered addresses up to 32 sectors"),
        ("bank conflict", "32 banks of 4 bytes"),
        ("occupancy", "Resident warps as a share of an SM"),
        ("sectors", "32 bytes: the unit in which caches and memory move data"),
        ("fp16", "rooflens predict --from REPORT --kernel NAME --dtype fp16"),
        ("AI", "Operations for each byte"),
        ("nsight", "NVIDIA's profiler of single kernels"),
        ("gui", "the largest of many per cents"),
        ("SOL", "without naming the unit"),
        ("DRAM full", "80 % of its peak or more"),
        ("memory: HBM2e full ?", "80 % of its peak or more"),
        ("at the roof", "80 % of its peak or more"),
        ("latency: 0.21 warps ready (low)", "Warps that could issue"),
        ("nothing above", "The share of the busiest measured unit"),
        ("compute: FP64 70 %", "The part of its peak that a unit reaches"),
        ("latency: cause not measured ?", "writes the command of ncu"),
        ("latency: too few blocks (low)", "Finding `small_grid`"),
    ],
)
def test_words_of_the_subject_are_explained(asked: str, told: str) -> None:
    """Terms that readers look up have an answer, under other spellings too."""
    assert told.casefold() in _shown(asked).casefold()


def test_a_name_of_several_words_needs_no_quotes() -> None:
    """`about` accepts names as printed by `More: ...`; `ridge` says where to read a GPU's ridge."""
    assert _shown("arithmetic", "intensity") == _shown("arithmetic intensity") == _shown("AI")
    assert "`rooflens gpus h100-sxm`" in _shown("ridge")


def test_what_the_table_says_of_a_kernel_is_explained(fixtures: Path) -> None:
    """Every printed cell of the column `verdict` of the stored reports leads to a page."""
    tables = kernels_document(summarize(rooflens.open(fixtures / "published").analyzed.analyses))
    cells = {
        "".join(span.text for span in spans(row[place]))
        for table in tables
        if isinstance(table, Table)
        for place in [[column.heading for column in table.columns].index("verdict")]
        for row in table.rows
    }
    assert len(cells) > 10
    for cell in cells:
        assert _shown(cell)


@pytest.mark.parametrize("name", ["queue of memory", "who measured it", "throttled cause not counted"])
def test_what_is_like_no_name_gets_no_suggestion(name: str) -> None:
    """A name that shares less than two thirds of the letters is not suggested."""
    with pytest.raises(UnknownNameError) as error:
        find_about(name)
    assert error.value.hint == "`rooflens about` lists them"


def test_every_word_and_what_it_refers_to_is_found() -> None:
    """No spelling belongs to two terms, and every name under `see` has a page."""
    spelt = [spelling.casefold() for name, word in words().items() for spelling in (name, *word.also)]
    assert [one for one in spelt if spelt.count(one) > 1] == []
    for word in words().values():
        for name in word.see:
            assert explained(name), name


@for_all("head", {head for of in column_heads().values() for head in of})
def test_every_head_of_a_column_is_explained(head: str) -> None:
    """Every head of a column is explained, in any case, alone and not only in the list of all."""
    assert _shown(head.upper())
