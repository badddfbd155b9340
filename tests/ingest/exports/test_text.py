"""Pasted text of ncu, with anything around it, in any layout, cut anywhere."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.loops import for_all
from support.printing import printed
from texts import LONG, RULES, launch, metric, text

from rooflens.errors import InputError
from rooflens.ingest.exports.kernels import ExportedKernel
from rooflens.ingest.exports.read import Export, is_printed, read_export
from rooflens.ingest.reports.inputs import find_inputs
from rooflens.ingest.reports.read import read_bytes
from rooflens.model.analyze import analyze
from rooflens.model.counters.memory import SM_COUNTS

SPEED = "GPU Speed Of Light Throughput"
METRICS = (
    metric("DRAM Frequency", "cycle/nsecond", "6.79", SPEED),
    metric("SM Frequency", "cycle/nsecond", "1.40", SPEED),
    metric("Elapsed Cycles", "cycle", "102,095", SPEED),
    metric("Memory Throughput", "%", "92.20", SPEED),
    metric("DRAM Throughput", "%", "92.20", SPEED),
    metric("Duration", "usecond", "72.64", SPEED),
    metric("L1/TEX Cache Throughput", "%", "27.67", SPEED),
    metric("SM Active Cycles", "cycle", "99,739.63", SPEED),
    metric("Compute (SM) Throughput", "%", "28.24", SPEED),
)
BOTTLENECK = {
    "Section Name": "SpeedOfLight",
    "Rule Name": "SOLBottleneck",
    "Rule Type": "INF",
    "Rule Description": "This workload is utilizing greater than 80.0% of the available compute or memory performance "
    "of this device. To further improve performance, work will likely need to be shifted from the most utilized unit.",
}
ISSUE = {
    "Section Name": "SchedulerStats",
    "Rule Name": "IssueSlotUtilization",
    "Rule Type": "OPT",
    "Rule Description": "Every scheduler is capable of issuing one instruction per cycle, but for this workload each "
    "scheduler only issues an instruction every 6.9 cycles.",
    "Estimated Speedup Type": "local",
    "Estimated Speedup": "7.804",
}
LATER = (
    metric("One or More Eligible", "%", "14.46", "Scheduler Statistics"),
    ISSUE,
    metric("Block Size", "", "512", "Launch Statistics"),
    metric("Grid Size", "", "2,048", "Launch Statistics"),
    metric("Function Cache Configuration", "", "CachePreferNone", "Launch Statistics"),
    metric("Registers Per Thread", "register/thread", "26", "Launch Statistics"),
    metric("Driver Shared Memory Per Block", "Kbyte/block", "1.02", "Launch Statistics"),
    metric("# SMs", "SM", "38", "Launch Statistics"),
    metric("Waves Per SM", "", "17.96", "Launch Statistics"),
    metric("Achieved Occupancy", "%", "72.11", "Occupancy"),
)
NAMES = (
    "adamw(float *, const float *, long)",
    "void ns::f<ns::Op<(int)4, std::pair<int, T2>>, (bool)1>(T1 *, void (*)(int, float), Pair<a, b>)",
    "nvjet_sm90_hss_320x128_64x3_1x2_h_bz_coopB_NNT",
)


def export_of(*names: str, speed: tuple[dict[str, str], ...] = METRICS) -> str:
    """Write a details export of kernels with different times."""
    rows = []
    for number, name in enumerate(names):
        own = {**launch(number), "Kernel Name": name}
        timed = [
            {**one, "Metric Value": f"{72.64 + number:.2f}"} if one.get("Metric Name") == "Duration" else one
            for one in (*speed, BOTTLENECK, *LATER)
        ]
        rows += [{**own, **one} for one in timed]
    return text((*LONG, *RULES), rows)


EXPORT = export_of(*NAMES)
TEXT = printed(EXPORT)


def opened(written: str | bytes) -> tuple[list[ExportedKernel], Export]:
    """Read a text; return its launches and its notes."""
    export = read_export(written.encode() if isinstance(written, str) else written)
    return list(export), export


def bare(kernels: list[ExportedKernel]) -> list[ExportedKernel]:
    """Remove how a launch is identified, and the sections of rules, which texts name differently."""
    return [
        replace(kernel, launch=(), rules=[replace(rule, section="") for rule in kernel.rules]) for kernel in kernels
    ]


EXPECTED = bare(list(read_export(EXPORT.encode())))


def assert_whole(written: str | bytes) -> None:
    """Check that a text is read like the export that it was made from, completely."""
    found, export = opened(written)
    assert bare(found) == EXPECTED
    assert export.loss is None
    assert not [note for note in export.notes if "left out" in note or "twice" in note]


def between(line: str) -> Callable[[str], str]:
    """Insert a line after every line that is not part of a table or a rule."""

    def change(written: str) -> str:
        return "\n".join(f"{one}\n{line}" if not one or "Section:" in one else one for one in written.split("\n"))

    return change


def german(written: str) -> str:
    """Swap points and commas in the numbers of tables."""
    swapped = str.maketrans(".,", ",.")
    return re.sub(r"(?m)(?<=[ %])[\d.,]+$", lambda number: number[0].translate(swapped), written)


def shuffled(written: str) -> str:
    """Put the sections of each kernel into the reverse order."""
    parts = re.split(r"(?m)^(?=    Section: |  \S|\[)", written)
    starts = [place for place, part in enumerate(parts) if not part.startswith("    Section: ")] + [len(parts)]
    return "".join("".join([parts[one], *reversed(parts[one + 1 : other])]) for one, other in pairwise(starts))


@for_all(
    "change",
    [
        lambda written: written,
        lambda written: f"Step 1 of 3, Context 5\n==PROF== Connected to process 1\n{written}\ndone: 12.5 ms",
        between('==PROF== Profiling "adamw": 0%....50%....100% - 8 passes'),
        between("==WARNING== Backing up device memory"),
        between("row sums correct! loss = 0.25"),
        lambda written: re.sub(r"(?m)^( +)(\S.*)$", "\x1b[1m\\1\x1b[38;5;12m\\2\x1b[0m", written),
        lambda written: re.sub("(?m)^", "> ", written),
        lambda written: re.sub("(?m)^", "// ", written),
        lambda written: re.sub("(?m)^", "2026-05-01T12:00:00.1234567Z ", written),
        lambda written: f"# Results\n\nOn this GPU:\n\n```bash\n$ ncu ./a.out\n{written}\n```\n\nMore text.\n",
        lambda written: re.sub("(?m)^", " " * 8, written),
        lambda written: re.sub(r"(?m)[ \t]+$", "", written),
        lambda written: re.sub(r"(?m)^ +", "", written),
        lambda written: written.replace("\n", "\r\n"),
        lambda written: written.replace(" ", "\u00a0"),
        lambda written: written.replace("        ", "\t") if "\t" not in written else written,
        lambda written: re.sub(r"(?m)^ +-{3,}[ -]*\n", "", written),
        lambda written: re.sub(r"(?m)(?<=\S) {2,}(?=\S)", "  ", re.sub(r"(?m)^ +-{3,}[ -]*\n", "", written)),
        german,
        lambda written: german(written).replace("102.095", "102 095"),
        lambda written: written.replace("102,095", "102'095").replace("2,048", "2'048"),
        lambda written: written.replace("102,095", "102095 "),
    ],
)  # fmt: skip
def test_what_is_around_a_text_changes_nothing(change: Callable[[str], str]) -> None:
    """Logs, colours, quotes, fences, line ends, blanks and number styles do not change the result."""
    assert_whole(change(TEXT))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_a_text_of_powershell_opens(encoding: str) -> None:
    """UTF-16, which PowerShell writes for `ncu ... > file`, is read."""
    assert_whole(TEXT.encode(encoding))


def test_sections_may_stand_in_any_order() -> None:
    """Sections are independent of their order."""
    found, export = opened(shuffled(TEXT))
    assert [kernel.numbers for kernel in found] == [kernel.numbers for kernel in EXPECTED]
    assert [len(kernel.rules) for kernel in found] == [2, 2, 2]
    assert export.loss is None


@pytest.mark.parametrize("width", [60, 80, 100])
def test_names_that_a_terminal_broke_are_put_together(width: int) -> None:
    """A line that a terminal wrapped is read after copying."""
    lines = TEXT.split("\n")
    broken = [re.sub(f"(.{{{width}}})", "\\1\n", line) if ", Context" in line else line for line in lines]
    found, _ = opened("\n".join(broken))
    assert [kernel.signature for kernel in found] == list(NAMES)
    assert [kernel.numbers for kernel in found] == [kernel.numbers for kernel in EXPECTED]


def test_rules_count_as_those_of_a_table() -> None:
    """Rules are recognised by their words, and a unit's speed-up differs from the kernel's."""
    (kernel, *_), _ = opened(TEXT)
    assert [(rule.identifier, rule.speedup_pct, rule.unit_speedup_pct) for rule in kernel.rules] == [
        ("SOLBottleneck", None, None),
        ("IssueSlotUtilization", None, 7.804),
    ]
    assert [rule.section for rule in kernel.rules] == ["SpeedOfLight", "SchedulerStats"]
    assert kernel.rules[0].message == BOTTLENECK["Rule Description"]


RAW = (
    ("device__attribute_display_name", "", "NVIDIA A10"),
    ("gpu__time_duration.sum", "nsecond", "72,640"),
    ("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "%", "92.20"),
    ("smsp__inst_executed.sum", "inst", "(!) n/a"),
    ("launch__func_cache_config", "", "CachePreferNone"),
)


@pytest.mark.parametrize("heading", ["", "    Section: Command line profiler metrics\n"])
def test_tables_of_metrics_by_name_open(heading: str) -> None:
    """The raw page has no sections, output of `--metrics` has one, and a long name may be broken into two lines."""
    long = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld_with_a_very_long_name_x.ratio"
    rows = [f"    {name:<70} {unit:>15} {value:>30}" for name, unit, value in RAW]
    rows += [f"    {long[:70]:<70} {'':>15} {'4.25':>30}", f"    {long[70:]}"]
    dashes = f"    {'-' * 70} {'-' * 15} {'-' * 30}"
    head = "  f(int) (8, 1, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 8.6\n"
    (kernel,), export = opened("\n".join([f"{head}{heading}{dashes}", *rows, dashes]))
    assert kernel.texts["device__attribute_display_name"] == "NVIDIA A10"
    assert kernel.texts["launch__func_cache_config"] == "CachePreferNone"
    assert kernel.numbers["gpu__time_duration.sum"] == 72_640
    assert kernel.numbers[long] == 4.25
    assert "smsp__inst_executed.sum" not in kernel.numbers
    assert (export.notes, export.loss) == ((), None)


_DASHES = f"    {'-' * 70} {'-' * 15} {'-' * 30}"
_ROWS = (
    ("Memory Frequency", "cycle/usecond", "874,41"),
    ("SOL FB", "%", "36,25"),
    ("Elapsed Cycles", "cycle", "23 982 976"),
    ("Memory [%]", "%", "77,32"),
    ("Duration", "msecond", "3,32"),
    ("SOL TEX", "%", "97,30"),
    ("SM [%]", "%", "2,42"),
)
OLD = "\n".join(
    (
        '==PROF== Profiling "row_sums" - 1: 0%....50%....100% - 17 passes',
        "[73376] matrix_sums@127.0.0.1",
        "  row_sums(float const *,float*,unsigned long), 2020-Jul-28 06:48:36, Context 1, Stream 7",
        "    Section: GPU Speed Of Light",
        _DASHES,
        *(f"    {name:<70} {unit:>15} {value:>30}" for name, unit, value in _ROWS),
        _DASHES,
        "    WRN   Memory is more heavily utilized than Compute: Look at the Memory Workload Analysis section to see",
        "          where the memory system bottleneck is.",
        "",
    )
)


def test_the_layout_of_2020_opens() -> None:
    """Output of 2020 is read: no headings, fixed columns, a date, old names, and blanks between thousands."""
    (kernel,), export = opened(OLD)
    assert (kernel.function_name, kernel.process) == ("row_sums", "matrix_sums 73376")
    assert kernel.numbers["gpc__cycles_elapsed.max"] == 23_982_976
    assert kernel.numbers["gpu__time_duration.sum"] == 3_320_000
    assert kernel.numbers["gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"] == 36.25
    assert kernel.numbers["sm__throughput.avg.pct_of_peak_sustained_elapsed"] == 2.42
    assert [rule.identifier for rule in kernel.rules] == ["SOLBottleneck"]
    assert export.loss is None
    assert analyze(read_bytes(OLD.encode(), "x").kernels[0]).verdict.bound == "memory"


def test_a_section_without_its_kernel_opens() -> None:
    """A section alone, as in guides, is read; the same section again starts the next kernel."""
    body = TEXT[TEXT.index("    Section") : TEXT.index("    Section: Scheduler")]
    found, _ = opened(f"{body}\n{body.replace('72.64', '75.11')}")
    assert [kernel.numbers["gpu__time_duration.sum"] for kernel in found] == [72_640, 75_110]


def test_what_formatters_and_people_make_of_it_opens() -> None:
    """Lost columns (Markdown), notes beside a value, and a blank line below a speed-up are tolerated."""
    written = """adamw(float *) (8, 1, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 8.6
Warning: Data collection happened without fixed GPU frequencies. Profiling results may be inconsistent.
Section: Scheduler Statistics

---

Metric Name Metric Unit Metric Value

---

One or More Eligible % 33.61
Issued Warp Per Scheduler 0.34
Active Warps Per Scheduler warp 9.91

---

OPT Est. Local Speedup: 27.73%

 Every scheduler is capable of issuing one instruction per cycle, but for this workload each scheduler only
 issues an instruction every 3.0 cycles.

    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    SM Frequency                    Mhz       305.41  # low: 12.5 % of the boost clock
    ----------------------- ----------- ------------
"""
    (kernel,), export = opened(written)
    assert kernel.numbers["smsp__issue_active.avg.pct_of_peak_sustained_active"] == 33.61
    assert kernel.numbers["smsp__issue_active.avg.per_cycle_active"] == 0.34
    assert kernel.numbers["smsp__warps_active.avg.per_cycle_active"] == 9.91
    assert kernel.numbers["gpc__cycles_elapsed.avg.per_second"] == 305_410_000
    assert [(rule.identifier, rule.unit_speedup_pct) for rule in kernel.rules] == [("IssueSlotUtilization", 27.73)]
    assert kernel.rules[0].message.endswith("only issues an instruction every 3.0 cycles.")
    assert export.loss is None


LINE = "adamw(float *) (8, 1, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 8.6"
SOME_ROWS = "    Memory Throughput  %  81.50\n    Duration  us  12.30"
RULED = "    ----------------------- ----------- ------------"


def test_a_fence_ends_a_table_that_was_left_without_its_last_line() -> None:
    """Who shows the rows that matter, between fences or before a blank line, cut nothing off by accident."""
    rows = f"  {LINE}\n    Section: GPU Speed Of Light Throughput\n{RULED}\n{SOME_ROWS}\n"
    for end in ("```\n\nThe time is that of one launch.\n", "\nThe time is that of one launch.\n"):
        (kernel,), export = opened(f"```\n{rows}{end}")
        assert kernel.numbers["gpu__time_duration.sum"] == 12_300
        assert export.loss is None


def test_sentences_of_rules_are_read_without_their_mark() -> None:
    """The tool's window shows a rule's estimate in a paragraph of its own, and people quote its words in theirs."""
    said = "This kernel has uncoalesced global accesses resulting in a total of 30 excessive sectors (75% of the total "
    quoted = f"Est. Speedup: 66.5%\n\n{said}\n40 sectors).\n\nSo I changed the index. It has few accesses now.\n"
    (kernel,), _ = opened(f"{LINE}\n\n{quoted}")
    (rule,) = kernel.rules
    assert (rule.identifier, rule.speedup_pct) == ("UncoalescedGlobalAccess", 66.5)
    assert rule.message.endswith("40 sectors).")


def test_rows_open_without_the_tables_around_them() -> None:
    """Notes hold a row as ncu printed it, or as one of Markdown; the first label once more begins the next kernel."""
    lines = ("Duration us 12.30", "Memory Throughput % 81.5", "DRAM Throughput % 80.1", "Registers Per Thread 40")
    listed = "\n".join(f"- {line}" if "DRAM" in line else line for line in lines)
    found, _ = opened(f"{listed}\n\nwith shared memory\n\n{listed.replace('12.30', '9.10')}\n")
    assert [kernel.numbers["gpu__time_duration.sum"] for kernel in found] == [12_300, 9_100]
    rows = "| Metric | Value |\n|---|---|\n| **Duration** | 12.30 us |\n| Memory Throughput | 81.5 % |\n"
    (kernel,), _ = opened(f"{rows}| Compute (SM) Throughput | 20 % (low) |\n")
    assert kernel.numbers["gpu__time_duration.sum"] == 12_300
    assert kernel.numbers["sm__throughput.avg.pct_of_peak_sustained_elapsed"] == 20


def test_a_table_of_markdown_that_compares_is_no_kernel() -> None:
    """Two values in a row are of two kernels, and nothing says of which."""
    rows = "| Metric | naive | tiled |\n|---|---|---|\n| Duration | 12.30 us | 9.1 us |\n"
    assert not is_printed(f"{rows}| Memory Throughput | 81.5 % | 60 % |\n| DRAM Throughput | 8 % | 6 % |\n".encode())


@for_all(
    "other, kernels",
    [
        ("Registers Per Thread  register/thread  40", 1),
        ("Duration  us  9.10", 2),
    ],
)
def test_what_two_runs_print_of_a_kernel_is_put_together(other: str, kernels: int) -> None:
    """People paste one set of sections below another; what is there in both was printed of two launches."""
    first, second = (
        f"  {LINE}\n    Section: {section}\n{RULED}\n{rows}\n{RULED}\n"
        for section, rows in (("GPU Speed Of Light Throughput", SOME_ROWS), ("Launch Statistics", f"    {other}"))
    )
    found, _ = opened(f"{first}\n{second}")
    assert len(found) == kernels
    elsewhere, _ = opened(f"{first}\n{second.replace('(8, 1, 1)', '(9, 1, 1)')}")
    assert len(elsewhere) == 2


def test_a_kernel_with_nothing_below_its_name_is_named() -> None:
    """A text that ends early, or a kernel without metrics, is reported; a text without anything is refused."""
    line = "  last(int) (8, 1, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 8.6\n"
    found, export = opened(TEXT + line)
    assert len(found) == 3
    assert str(export.loss) == "1 kernel not complete: `last` (only its name is there)"
    with pytest.raises(InputError, match="with no metric in it"):
        opened(f"==WARNING== No metrics to collect found in sections.\n{line}\n")


def test_a_range_is_no_kernel() -> None:
    """Results of ranges and graphs, without a block size, are read."""
    start = TEXT.index("  void ns")
    line = f"  range, Context 1, Stream 7, Device 0, CC 8.6\n{TEXT[TEXT.index('    Section') : start]}"
    (found,), _ = opened(line)
    assert (found.workload, found.signature) == ("range", "range")


def test_a_summary_is_the_mean_launch() -> None:
    """A summary has no context, and the mean of minimum, maximum and mean counts."""
    header = "  void k<(bool)((4) > (2))>(int) (8, 1, 1)x(32, 1, 1), Device 0, CC 8.6, Invocations 12"
    table = (
        "    -------------- ------- ------- ------- -------",
        "    Metric Name    Metric Unit Minimum Maximum Average",
        "    -------------- ------- ------- ------- -------",
        "    Duration       usecond    1.00    3.00    2.00",
        "    Waves Per SM              0.10    0.10    0.10",
        "    -------------- ------- ------- ------- -------",
    )
    announced = '==PROF== Profiling "k" - 0: 0%....100% - 9 passes\n' * 12
    (kernel,), export = opened("\n".join((announced, header, "    Section: Launch Statistics", *table, "")))
    assert kernel.function_name == "k"
    assert (kernel.numbers["gpu__time_duration.sum"], kernel.numbers["launch__waves_per_multiprocessor"]) == (2e3, 0.1)
    assert export.loss is None
    assert any("12 launches of `k`" in note for note in export.notes)


def test_a_summary_of_an_old_form_is_refused() -> None:
    """Summaries before 2023 have no lines that mark their columns, and are refused."""
    with pytest.raises(InputError, match="a summary over launches"):
        opened(
            re.sub(
                "    -{5}.*\n    Metric Name.*Metric Value",
                "    Metric Name  Metric Unit Minimum Maximum Average",
                TEXT,
            )
        )


def test_every_cut_is_an_error_or_named() -> None:
    """A text cut anywhere is refused, or names the kernel that was cut; the others are complete."""
    data = TEXT.encode()
    ends = [place.end() for place in re.finditer(rb"\n\n\n|\n\n(?=  \S)", data)]
    for cut in range(0, len(data) - 40, 200):
        export = read_export(data[:cut])
        try:
            found = list(export)
        except InputError:
            continue
        whole = sum(kernel.lost is None for kernel in found)
        assert whole <= sum(end - 45 <= cut for end in ends) + (len(found) == 1), cut
        for kernel, expected in zip(bare(found)[: max(len(found) - 1, 0)], EXPECTED, strict=False):
            assert kernel == expected
        assert (export.loss is not None) == (whole < len(found) or bool(export._facts.empty)), cut


def test_a_cut_between_kernels_shows_by_the_launches_that_ncu_numbered() -> None:
    """If ncu announces which launches it profiled, missing ones are counted, in texts and tables."""
    said = "".join(
        f'==PROF== Profiling "{name}" - {number} (1/3): 0%....100% - 9 passes\n' for number, name in enumerate(NAMES)
    )
    last = TEXT.rindex("\n\n\n", 0, TEXT.rindex("Section: GPU Speed"))
    for whole, cut in ((TEXT, TEXT[:last]), (EXPORT, EXPORT[: EXPORT.index('\n"2"') + 1])):
        assert read_bytes(f"{said}{whole}".encode(), "x").loss is None
        report = read_bytes(f"{said}{cut}".encode(), "x")
        assert len(report.kernels) == 2
        assert "1 launch missing that ncu announced" in str(report.loss)


@for_all("mark", ["Section: Scheduler", "One or More", "Block Size    ", "# SMs", "Section: Occupancy", "Achieved Occ"])
def test_a_cut_last_kernel_is_partial(mark: str) -> None:
    """If a text is cut within a table or between sections, the last kernel is partial and says what it lacks."""
    report = read_bytes(TEXT[: TEXT.rindex(mark)].encode(), "x")
    assert [kernel.status for kernel in report.kernels] == ["ok", "ok", "partial"]
    assert report.loss is not None
    assert "1 kernel not complete: `nvjet_sm90" in str(report.loss)
    assert report.kernels[-1].status_reason


def test_a_kernel_in_the_middle_that_lacks_a_section_is_partial() -> None:
    """A section that all kernels but one have was lost from that kernel."""
    parts = TEXT.split("    Section: Occupancy")
    lacking = "    Section: Occupancy".join([parts[0], parts[1] + parts[2][parts[2].index("\n\n") :], parts[3]])
    report = read_bytes(lacking.encode(), "x")
    assert [kernel.status for kernel in report.kernels] == ["ok", "partial", "ok"]
    assert report.kernels[1].status_reason == "it lacks metrics that the other launches have: Achieved Occupancy"


def test_a_doubled_text_counts_once() -> None:
    """The same text twice has the same launches once; so has a table, with or without its header."""
    for doubled in (TEXT + TEXT, EXPORT + EXPORT, EXPORT + EXPORT[EXPORT.index("\n") + 1 :]):
        found, export = opened(doubled)
        assert bare(found) == EXPECTED
        assert [kernel.index for kernel in found] == [0, 1, 2]
        assert "3 launches twice in the file, counted once" in export.notes


def test_equal_launches_of_few_metrics_stay() -> None:
    """Launches of a kernel with equal occupancy are no duplicates."""
    rows = [{**launch(number), **one} for number in range(3) for one in LATER]
    found, export = opened(printed(text((*LONG, *RULES), rows)))
    assert len(found) == 3
    assert not [note for note in export.notes if "twice" in note]


@pytest.mark.parametrize("cut", range(3, 190, 9))
def test_a_cut_table_is_noticed(cut: int) -> None:
    """A table whose last line ends early names its kernel."""
    data = EXPORT[: EXPORT.rindex("\n", 0, -1) + 1 + cut]
    found, export = opened(data)
    assert [kernel.lost is None for kernel in found] == [True, True, False]
    assert export.loss is not None
    assert "1 kernel not complete" in str(export.loss)


def test_texts_in_a_folder_are_known_by_their_content(tmp_path: Path) -> None:
    """In a folder, files with endings of texts are inspected; logs of other programs are no reports."""
    for name in ("a.txt", "b.log", "c.out"):
        (tmp_path / name).write_text(TEXT.replace("[4711]", f"[{ord(name[0])}]"))
    (tmp_path / "notes.txt").write_text("Section: what I did today\n")
    (tmp_path / "readme.md").write_text(TEXT)
    found = find_inputs([str(tmp_path)])
    assert [job.path.name for job in found.jobs] == ["a.txt", "b.log", "c.out"]
    assert {path.name for path in found.ignored} == {"notes.txt", "readme.md"}


@for_all(
    "written, is_read",
    [
        (TEXT, True),
        (OLD, True),
        ("==4711== NVPROF is profiling process 4711, command: ./a\n==4711== Profiling result:\n", False),
        ("# Notes\n\nSection: introduction\n\n--- -- ---\n", False),
        ("| a | b | c |\n|---|---|---|\n", False),
    ],
)
def test_a_text_is_known_by_its_content(written: str, is_read: bool) -> None:  # noqa: FBT001 - a case
    """Lines naming kernels, or sections with tables, are ncu's output; other texts are not."""
    assert is_printed(written.encode()) is is_read


def test_the_gpu_is_guessed_where_one_fits() -> None:
    """38 SMs of compute capability 8.6 fit a single board: the guess has a note and a mark in the name."""
    found, export = opened(TEXT)
    assert {kernel.texts["device__attribute_display_name"] for kernel in found} == {
        "NVIDIA GeForce RTX 3060 Ti (guessed)"
    }
    assert export.notes == ("GPU guessed: NVIDIA GeForce RTX 3060 Ti, from CC 8.6 and 38 SMs; `--gpu NAME` to set it",)


def test_no_gpu_is_guessed_where_two_fit() -> None:
    """84 SMs fit three boards: they are named as likely, and none is chosen."""
    found, export = opened(TEXT.replace(" 38\n", " 84\n").replace("17.96", "8.13"))
    assert "device__attribute_display_name" not in found[0].texts
    (note,) = export.notes
    assert "likely NVIDIA A40, NVIDIA GeForce RTX 3090 Ti, NVIDIA RTX A6000" in note
    larger = TEXT.replace(" 38\n", " 84\n").replace("17.96", "8.13")
    nameless, _ = opened(re.sub(r"\n +# SMs .*", "", larger, count=1))
    counts = {kernel.numbers.get(name) for kernel in nameless for name in SM_COUNTS if name in kernel.numbers}
    assert counts == {84}
    assert all(any(name in kernel.numbers for name in SM_COUNTS) for kernel in nameless)


def test_a_long_name_is_cut_in_an_export_and_in_a_text() -> None:
    """A name is cut to its first 65,536 characters, with a note; the launch keeps everything after its name."""
    name = "k" * 65_536
    for export in (export_of(name, "b"), export_of("b", f"{name}k"), export_of("b", "k" * 100_000)):
        for written in (export, printed(export)):
            report = read_bytes(written.encode(), "export")
            assert sorted(len(kernel.name) for kernel in report.kernels) == [1, 65_536]
            assert len({kernel.duration_ns for kernel in report.kernels}) == 2
            cut = [note for note in report.notes if note.startswith("cut 1 name of more than 65,536 characters")]
            assert bool(cut) is (name not in export.split('"'))
            assert any(kernel.name.endswith("…") for kernel in report.kernels) is bool(cut)


def test_no_line_and_no_rule_takes_more_than_linear_time() -> None:
    """A hundred kilobytes of text that almost is a process, a kernel or a rule are read quickly."""
    started_s = time.process_time()
    for line in ("[1] " + "@" * 100_000 + " x", ", Context 1, Stream a" * 5000 + "!1", "k,  " * 25_000 + "Context 1"):
        opened(TEXT.replace("    Section: ", f"{line}\n    Section: ", 1))
    rule = f"INF   {'fused and ' * 11}\n          " * 1000
    opened(TEXT.replace("    Section: Launch", f"    {rule}\n\n    Section: Launch", 1))
    assert time.process_time() - started_s < 5


def test_a_report_is_no_text_though_it_holds_sentences_of_rules() -> None:
    """Rows that ncu prints make a text one of ncu's; in a binary file they are what a report stores."""
    rows = b"Memory Throughput % 45.60\nDRAM Throughput % 12.30\nL2 Cache Throughput % 7.80\nDuration us 9.10\n"
    assert is_printed(rows)
    assert not is_printed(b"NVR\0\x08\x01" + rows)
    for encoding in ("utf-16", "utf-16-le"):
        assert is_printed(rows.decode().encode(encoding))


def _in_box(lines: list[str]) -> list[str]:
    width = max(map(len, lines))
    return ["╭" + "─" * (width + 2) + "╮", *(f"│ {line:<{width}} │" for line in lines)]


_MARGINS: dict[str, Callable[[int, str], str]] = {
    "comment": lambda _, line: f"# {line}",
    "cat -n": lambda number, line: f"{number:6}\t{line}",
    "grep -n": lambda number, line: f"{number}:{line}",
    "editor": lambda number, line: f"{number:4} {line}",
    "mail": lambda _, line: f"> > {line}",
    "diff": lambda _, line: f"+{line}",
    "pytest": lambda _, line: f"E       {line}",
    "log": lambda number, line: f"2026-11-29 08:{number // 60:02}:{number % 60:02},{number * 7:03} INFO run: {line}",
    "brackets": lambda number, line: f"[08:00:{number % 60:02}] {line}",
    "syslog": lambda number, line: f"Nov 29 08:00:{number % 60:02} node17 ncu[4711]: {line}",
    "srun -l": lambda _, line: f"0: {line}",
    "compose": lambda _, line: f"bench-1  | {line}",
    "kubectl": lambda _, line: f"[pod/bench-7d9f/main] {line}",
    "entities": lambda _, line: line.replace("<", "&lt;").replace(">", "&gt;"),
}


@for_all("name", _MARGINS)
def test_what_another_program_wrote_before_each_line_is_left_out(name: str) -> None:
    """Numbers, comment marks, times and names of hosts before every line change nothing, whoever put them there."""
    assert_whole("\n".join(_MARGINS[name](number, line) for number, line in enumerate(TEXT.splitlines(), 1)))


def test_a_box_around_the_text_is_left_out() -> None:
    """Bars on both sides, as terminals draw panels, change nothing."""
    assert_whole("\n".join(_in_box(TEXT.splitlines())))


def test_tabs_between_the_cells_of_a_text_are_no_export() -> None:
    """A text whose runs of spaces became tabs gives every value of its tables; a rule ends with its first line."""
    tabbed = re.sub(r" {2,}", "\t", "\n".join(line.rstrip() for line in TEXT.splitlines()))
    found, _ = opened(tabbed)
    lost = [{*whole.numbers.items()} - {*one.numbers.items()} for one, whole in zip(found, EXPECTED, strict=True)]
    assert [{name for name, _ in values} for values in lost] == [{"smsp__issue_active.avg.per_cycle_active"}] * 3


def test_the_margin_of_some_lines_is_none() -> None:
    """Words before a section's title in a few lines of a text are not taken for what stands before all of them."""
    assert_whole(f"see Section: Occupancy\nsee Section: Occupancy\n\n{TEXT}")


@for_all(
    "copied",
    [
        "DRAM Throughput [%]\t92.20\nDuration [us]\t72.64\nRegisters Per Thread [register/thread]\t26",
        "DRAM Throughput [%]\t92.20\tDuration [us]\t72.64\nRegisters Per Thread [register/thread]\t26\tGrid Size\t8",
        "Speed\n# DRAM Throughput [%]  92.20\n# Duration [us]  72.64\n# Registers Per Thread [register/thread]  26",
        "│ DRAM Throughput │ % │ 92.20 │\n│ Duration │ us │ 72.64 │\n│ Registers Per Thread │  │ 26 │",
    ],
)
def test_tables_copied_from_the_tool_s_window_keep_their_units(copied: str) -> None:
    """Labels with their unit in brackets, one or two in a line, give the values that they state."""
    (found,), _ = opened(copied)
    assert found.numbers["gpu__time_duration.sum"] == pytest.approx(72_640)
    assert found.numbers["launch__registers_per_thread"] == 26
    assert 92.20 in found.numbers.values()


def test_a_metric_of_the_raw_page_is_in_the_unit_beside_it() -> None:
    """`gpu__time_duration.sum [us]` is microseconds, and bytes in megabytes are megabytes."""
    rows = (
        "gpu__time_duration.sum [us]\t212.48",
        "dram__bytes_read.sum [Mbyte]\t403.1",
        "sm__throughput.avg.pct_of_peak_sustained_elapsed [%]\t23.4",
    )
    (found,), _ = opened("\n".join(rows))
    assert found.numbers["gpu__time_duration.sum"] == pytest.approx(212_480)
    assert found.numbers["dram__bytes_read.sum"] == pytest.approx(403.1e6)


@for_all("facts", [", Device 0, CC 8.6", ", CC 8.6", ", Device 1", ""])
def test_a_kernel_of_a_summary_keeps_its_name_with_fewer_facts(facts: str) -> None:
    """A summary's kernel has its name, whichever of device and capability its line tells, with a grid or without."""
    for sizes in (" (8, 1, 1)x(32, 1, 1)", ""):
        table = "\n".join(
            (
                f"  void k<(int)4>(int){sizes}{facts}, Invocations 12",
                "    Section: Launch Statistics",
                "    -------------- ------- ------- ------- -------",
                "    Metric Name    Metric Unit Minimum Maximum Average",
                "    -------------- ------- ------- ------- -------",
                "    Duration       usecond    1.00    3.00    2.00",
                "    Waves Per SM              0.10    0.10    0.10",
                "    -------------- ------- ------- ------- -------",
                "",
            )
        )
        (kernel,), export = opened(table)
        assert (kernel.function_name, kernel.numbers["gpu__time_duration.sum"]) == ("k", 2e3)
        assert any("12 launches of `k`" in note for note in export.notes)


def test_a_log_without_permission_says_what_about_says() -> None:
    """A log of ncu that lacks the permission is answered with the cause and its way out, whatever stands before."""
    log = "==PROF== Connected to process 1\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n"
    for written in (
        log,
        log.replace("==", "2026-11-29 08:00:01 ==", 1),
        "cupti said ERR_NVGPUCTRPERM: no permission\n",
    ):
        with pytest.raises(InputError, match="may not read this GPU's counters") as raised:
            opened(written)
        assert "NVreg_RestrictProfilingToAdminUsers=0" in raised.value.hint
