from __future__ import annotations

import re
import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.loops import for_all
from texts import BOTH, IDENTITY, LONG, RULES, SAXPY, SHARE, TIME, WIDE, launch, long_text, metric, text, wide_text

from rooflens.errors import InputError
from rooflens.ingest.exports.kernels import ExportedKernel
from rooflens.ingest.exports.read import read_export
from rooflens.ingest.exports.tables import is_export

GPU_NAME = "device__attribute_display_name"


def kernels(written: str | bytes, gpu: str | None = None) -> list[ExportedKernel]:
    """Read the launches of a text."""
    return list(read_export(written.encode() if isinstance(written, str) else written, gpu))


def notes(written: str, gpu: str | None = None) -> tuple[str, ...]:
    """Read a text, and return its notes."""
    export = read_export(written.encode(), gpu)
    list(export)
    return export.notes


def refusal(written: str | bytes) -> InputError:
    """Return the error of a text that cannot be read."""
    with pytest.raises(InputError) as error:
        kernels(written)
    assert error.value.hint
    return error.value


def test_a_row_says_which_launch_it_is_of() -> None:
    """Name, process, sizes, GPU index and compute capability come from the columns before the metrics."""
    (found,) = kernels(long_text(*BOTH))
    assert (found.index, found.signature, found.function_name, found.process) == (0, SAXPY, "saxpy", "a.out 4711")
    sizes = [found.numbers[f"launch__{what}_dim_{axis}"] for what in ("block", "grid") for axis in "xyz"]
    assert sizes == [256, 1, 1, 1024, 2, 1]
    assert found.numbers["launch__device_id"] == 0
    capability = [found.numbers[f"device__attribute_compute_capability_{part}"] for part in ("major", "minor")]
    assert capability == [8, 6]


@pytest.mark.parametrize("written", [long_text(*BOTH, launches=3), wide_text(WIDE, launches=3)])
def test_both_shapes_give_base_units(written: str) -> None:
    """Times are in nanoseconds whatever unit was printed, in long and wide tables."""
    found = kernels(written)
    assert [one.index for one in found] == [0, 1, 2]
    for one in found:
        assert one.numbers[TIME] == pytest.approx(28_130, abs=5)
        assert one.numbers[SHARE] == pytest.approx(61.84, abs=0.005)


PREAMBLES = (
    "==PROF== Connected to process 4711 (/home/me/a.out)\n",
    "==WARNING== Found outstanding GPU clock reset, trying to revert...Success.\n",
    'loading "model.bin" ...\n"an unclosed quote\n',
    'epoch 1, loss 0.5, "acc", 12\n\n\r\n',
    "a,b,c\n1,2,3\n",
    "sep=,\n",
    "".join(f"{10 * step}%\r" for step in range(10)),
    '"quoted", "but no table", "Kernel"\n',
    "no line end at the end: ",
)


@pytest.mark.parametrize("preamble", PREAMBLES)
@pytest.mark.parametrize("table", [long_text(*BOTH), wide_text(WIDE)], ids=["long", "wide"])
def test_what_was_printed_before_the_table_is_no_part_of_it(preamble: str, table: str) -> None:
    """Messages of ncu and the program's output before the header are skipped."""
    written = f"{preamble}{table}==PROF== Disconnected\nbye, bye\n"
    assert is_export(written.encode())
    (found,) = kernels(written)
    assert found.signature == SAXPY
    assert found.numbers.keys() == kernels(table)[0].numbers.keys()


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200), st.text(max_size=60), st.sampled_from([long_text(*BOTH, launches=2), wide_text(WIDE, 2)]))
def test_output_around_the_table_costs_no_launch(before: str, between: str, table: str) -> None:
    """Whatever a program prints on separate lines, both launches are read with their times."""
    lines = table.splitlines(keepends=True)
    noise = "".join(f"# {line}\n" for line in re.split(r"[\r\n]", between))
    written = f"# {before}\n{lines[0]}{''.join(lines[1:-1])}{noise}{lines[-1]}"
    found = kernels(written.encode("utf-8", "replace"))
    assert [(one.signature, TIME in one.numbers) for one in found] == [(SAXPY, True)] * 2


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damage_ends_in_an_error_that_says_so(data: st.DataObject) -> None:
    """Text cut, doubled or overwritten anywhere is read or refused, without another exception."""
    table = data.draw(st.sampled_from([long_text(*BOTH, launches=3), wide_text(WIDE, 3)])).encode()
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(table))] * 2)))
    written = table[:start] + data.draw(st.binary(max_size=20)) + table[end:]
    is_export(written)
    with suppress(InputError):
        assert all(one.signature for one in kernels(written))


ENCODINGS = (
    ("\ufeff{}", "utf-8"),
    ("{}", "utf-16"),
    ("\ufeff{}", "utf-16-le"),
    ("{}", "utf-16-le"),
    ("{}", "utf-16-be"),
    ("{}", "cp1252"),
)


@for_all("form, encoding", ENCODINGS)
def test_powershells_files_are_read(form: str, encoding: str) -> None:
    """A byte order mark, UTF-16, a Windows code page and Windows line ends change nothing."""
    table = text(LONG, [{**launch(**{"Process Name": "größe.exe"}), **one} for one in BOTH]).replace("\n", "\r\n")
    written = form.format(table).encode(encoding)
    assert is_export(written)
    (found,) = kernels(written)
    assert found.process == "größe.exe 4711"
    assert found.numbers[TIME] == 28_130


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_separators_are_read(delimiter: str) -> None:
    """Semicolons and tabs, which spreadsheets write if the comma is the decimal mark, are accepted."""
    long = long_text(metric(TIME, "us", "28,13"), metric(SHARE, "%", "61,84"), delimiter=delimiter)
    wide = wide_text({TIME: ("us", "28,130000"), SHARE: ("%", "61,84")}, delimiter=delimiter)
    for written in (long, wide):
        assert kernels(written)[0].numbers[TIME] == 28_130


def test_unquoted_tables_are_read() -> None:
    """A table that a program rewrote, with fewer quotes and perhaps an additional first column, is read."""
    rows = "".join(f"{number or ''},{row}" for number, row in enumerate((
        "ID,Kernel Name,Metric Name,Metric Unit,Metric Value\n",
        f'0,"{SAXPY}",{TIME},ns,28128\n',
        f'0,"{SAXPY}",{SHARE},%,61.84\n',
    )))  # fmt: skip
    (found,) = kernels(rows)
    assert (found.signature, found.numbers[TIME]) == (SAXPY, 28_128)


def test_rows_of_the_details_page_end_early() -> None:
    """Rows of metrics lack the columns of rules, and rows of rules have no metric."""
    shown = (metric("Duration", "usecond", "28.13", "GPU Speed Of Light Throughput"), BOTH[1])
    header, *rows = text((*LONG, *RULES), [{**launch(), **one} for one in shown]).splitlines()
    ragged = [row[: -len(',""' * len(RULES))] + "," for row in rows]
    said = dict(zip(RULES, ("SOLBottleneck", "OPT", "Low, with a\nline end", "global", "14.54"), strict=True))
    rule = text((*LONG, *RULES), [{**launch(), "Section Name": "SpeedOfLight", **said}]).partition("\n")[2]
    (found,) = kernels("\n".join((header, ragged[0], rule.rstrip("\n"), ragged[1])))
    assert (found.numbers[TIME], found.numbers[SHARE]) == (28_130, 61.84)
    (read,) = found.rules
    assert (read.identifier, read.section, read.speedup_pct) == ("SOLBottleneck", "SpeedOfLight", 14.54)
    assert (read.message, read.unit_speedup_pct) == ("Low, with a\nline end", None)


def test_a_label_in_two_sections_counts_once() -> None:
    """The first value of a metric is kept, and a repeated section adds no launch."""
    one = metric("SM Frequency", "Ghz", "1.41", "GPU Speed Of Light Throughput")
    other = metric("SM Frequency", "Ghz", "1.42", "GPU Speed Of Light Roofline Chart")
    (found,) = kernels(long_text(one, other, *BOTH))
    assert found.numbers["gpc__cycles_elapsed.avg.per_second"] == 1.41e9


@pytest.mark.parametrize("marker", ["Local Memory Spilling Requests", None])
def test_busy_cycles_are_counted_as_the_version_did(marker: str | None) -> None:
    """`SM Busy` is of active cycles, but of elapsed cycles in versions that print spilling."""
    shown = [metric("SM Busy", "%", "12.5", "Compute Workload Analysis")]
    shown += [metric(marker, "", "0", "Instruction Statistics")] if marker else []
    (found,) = kernels(long_text(*shown, *BOTH))
    busy = {name: value for name, value in found.numbers.items() if name.startswith("sm__instruction_throughput")}
    assert busy == {f"sm__instruction_throughput.avg.pct_of_peak_sustained_{'elapsed' if marker else 'active'}": 12.5}


def test_missing_values_are_absent() -> None:
    """`n/a`, a dash and an empty cell are no value; `nan` is a failed measurement."""
    shown = {"lts__t_bytes.sum": "n/a", "l1tex__t_bytes.sum": "", "dram__bytes.sum": "(!) n/a", "sm__x.sum": "(!) nan"}
    for written in (
        long_text(*BOTH, *(metric(name, "byte", value) for name, value in shown.items())),
        wide_text({**WIDE, **{name: ("byte", value) for name, value in shown.items()}}),
    ):
        (found,) = kernels(written)
        assert not found.numbers.keys() & shown.keys()
        assert not found.texts.keys() & shown.keys()
        assert found.not_numbers == ["sm__x.sum"]


def test_tables_of_opcodes_come_from_instances() -> None:
    """`--print-metric-instances details` prints each opcode with its count after the sum."""
    name = "sass__inst_executed_per_opcode_with_modifier_all"
    (found,) = kernels(wide_text({**WIDE, name: ("inst", "4,096 (HFMA2.MMA: 96; IMMA.16832.S8.S8: 4,000)")}))
    assert found.numbers[name] == 4096
    assert found.tables == {name: {"HFMA2.MMA": 96, "IMMA.16832.S8.S8": 4000}}


def test_launches_without_numbers_part_where_a_metric_comes_again() -> None:
    """Without a column `ID`, the next launch begins with a metric that the current launch already has."""
    columns = ("Kernel Name", "Metric Name", "Metric Unit", "Metric Value")
    times = ("10", "20", "30")
    rows = [{"Kernel Name": "f(int)", **one} for time in times for one in (metric(TIME, "ns", time), BOTH[1])]
    assert [one.numbers[TIME] for one in kernels(text(columns, rows))] == [10, 20, 30]


def test_several_exports_in_one_file_follow_each_other() -> None:
    """Each table has its own columns, launches are numbered across tables, and processes stay separate."""
    other = text(LONG, [{**launch(**{"Process ID": "4712"}), **one} for one in BOTH])
    found = kernels(f"{long_text(*BOTH)}==PROF== Connected to process 4712\n{other}{wide_text(WIDE, launches=2)}")
    assert [one.index for one in found] == [0, 1, 2, 3]
    assert [one.process for one in found][:2] == ["a.out 4711", "a.out 4712"]


def test_a_launch_in_two_tables_is_one_launch() -> None:
    """Details and raw page of one run complement each other; the first value of a metric stays."""
    other = wide_text({TIME: ("us", "28.128"), "lts__t_bytes.sum": ("byte", "4096")}, launches=2)
    first, second = kernels(f"{long_text(*BOTH, launches=2)}{other}")
    for one in (first, second):
        assert (one.numbers[TIME], one.numbers["lts__t_bytes.sum"]) == (28_130, 4096)
    assert [one.index for one in (first, second)] == [0, 1]


@pytest.mark.parametrize(
    "other",
    [
        wide_text(WIDE),
        wide_text({TIME: ("us", "35.128"), "lts__t_bytes.sum": ("byte", "4096")}),
        text(LONG, [{**launch(**{"Grid Size": "(1, 1, 1)"}), **metric("lts__t_bytes.sum", "byte", "1")}]),
    ],
    ids=["same metrics", "another time", "another size"],
)
def test_launches_of_two_runs_stay_two(other: str) -> None:
    """Launches with equal process IDs stay separate: runs in containers all have the same."""
    assert len(kernels(f"{long_text(*BOTH)}{other}")) == 2


def test_coarse_times_are_said() -> None:
    """If one launch takes a second, ncu prints all times in seconds, and short ones lose digits, with a note."""
    assert notes(wide_text({**WIDE, TIME: ("second", "0.000058")}, launches=2))[0].startswith("times of 2 launches")
    assert notes(wide_text({**WIDE, TIME: ("ns", "58")}))[0].startswith("the export does not name its GPU")


def test_a_scaled_time_is_no_count() -> None:
    """Without other clues `28.128` is grouped digits for nanoseconds, and a fraction for microseconds."""
    gpu = {GPU_NAME: ("", "NVIDIA A10")}
    assert kernels(wide_text({**gpu, TIME: ("us", "28.128")}))[0].numbers[TIME] == 28_128
    assert kernels(wide_text({**gpu, TIME: ("ns", "28.128")}))[0].numbers[TIME] == 28_128


def test_ranges_are_named_from_the_outermost_in() -> None:
    """Start/stop ranges, which hold for every thread, precede this thread's push/pop ranges."""
    pushed = "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
    started = "Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
    names = (
        "<default domain>:step:none:none:RGB:0xff00ff00:ASCII:step",
        "nccl:all reduce:none:none:none:none:none:none",
    )
    stack = "4711  " + "  ".join(f'"{name}"' for name in names)
    columns = (*LONG[:4], pushed, started, *LONG[4:])
    whole = {pushed: stack, started: '1 "<default domain>:train:none:none:none:none:none:none"'}
    (found,) = kernels(text(columns, [{**launch(), **whole, **one} for one in BOTH]))
    assert found.nvtx_range == "train/step/nccl:all reduce"


@for_all(
    "cell",
    ["(" * 100_000 + ")", "1" + " " * 100_000 + ")", "a_" * 50_000 + " ", '":' * 50_000, "_" * 200_000, "9" * 200_000],
)
def test_long_cells_take_no_time(cell: str) -> None:
    """No cell costs more than its length: as value, label, name, range or foreign line."""
    pushed = "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
    rows = [{**launch(**{"Kernel Name": cell}), pushed: cell, **one} for one in (*BOTH, metric(cell, cell, cell))]
    started = time.process_time()
    with suppress(InputError):
        kernels(text((*LONG[:4], pushed, *LONG[4:]), rows))
    with suppress(InputError):
        kernels(wide_text({**WIDE, "sm__x.sum": ("", cell)}))
    with suppress(InputError):
        kernels(f"{cell}\n" * 20)
    assert time.process_time() - started < 5


def test_the_first_versions_had_other_columns() -> None:
    """Output of 2019 has the time of the launch, but no sizes, device or capability."""
    columns = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream")
    rows = [
        {**launch(), "Kernel Time": "2020-Apr-07 17:01:05", **one}
        for one in (
            metric("Memory Frequency", "cycle/second", "772656250", "GPU Speed Of Light"),
            metric("SOL FB", "%", "39.60", "GPU Speed Of Light"),
            metric("Duration", "nsecond", "8992", "GPU Speed Of Light"),
        )
    ]
    (found,) = kernels(text((*columns, *LONG[11:]), rows))
    assert found.numbers == {"dram__cycles_elapsed.avg.per_second": 772_656_250, SHARE: 39.6, TIME: 8992}


@for_all(
    "signature, function",
    [
        (SAXPY, "saxpy"),
        ("a::b::f<c::d<int>>(float (*)(int), int)", "f"),
        ("unnamed>::gemm_naive_kernel(const float *, int)", "gemm_naive_kernel"),
        ("(anonymous namespace)::f(int)", "f"),
        ("enable_if<!T7, void>::type kernel<int, 0>(T13)", "kernel"),
        ("nvjet_sm100_tst_64x8_64x16_4x1_v_bz_TNT", "nvjet_sm100_tst_64x8_64x16_4x1_v_bz_TNT"),
        ("_ZN2at6native18elementwise_kernelILi128EEEvi", "elementwise_kernel"),
        ("_Z10naive_gemmPKfS0_Pfiiiff", "naive_gemm"),
        ("_Z" + "9" * 5000, "_Z" + "9" * 5000),
        (")", ")"),
        (">", ">"),
    ],
)
def test_the_function_name_is_that_of_ncu(signature: str, function: str) -> None:
    """The function's name has no return type, namespaces, template arguments or parameters, mangled or not."""
    rows = [{**launch(**{"Kernel Name": signature}), **one} for one in BOTH]
    assert kernels(text(LONG, rows))[0].function_name == function


def test_the_lost_bracket_of_an_unnamed_namespace_is_set() -> None:
    """Exports of Windows lose the first one; a whole one, and one that is a template's argument, stay as they are."""
    for written, signature in (
        ("void unnamed>::tiled<32>(int)", "void <unnamed>::tiled<32>(int)"),
        ("<unnamed>::tiled<32>(int)", "<unnamed>::tiled<32>(int)"),
        ("run<<unnamed>::op>(int)", "run<<unnamed>::op>(int)"),
    ):
        rows = [{**launch(**{"Kernel Name": written}), **one} for one in BOTH]
        assert kernels(text(LONG, rows))[0].signature == signature


def test_the_gpu_is_never_guessed() -> None:
    """A launch without a GPU gets the user's, by any of its names, if the capabilities agree."""
    written = long_text(*BOTH)
    assert GPU_NAME not in kernels(written)[0].texts
    assert notes(written) == (
        "the export does not name its GPU (compute capability 8.6): `--gpu NAME` adds its published roofs",
    )
    assert kernels(written, "NVIDIA A10")[0].texts[GPU_NAME] == "NVIDIA A10"
    assert kernels(written, "a10")[0].texts[GPU_NAME] == "NVIDIA A10"
    assert kernels(written, "My GPU")[0].texts[GPU_NAME] == "My GPU"
    with pytest.raises(InputError, match=r"capability 8\.6; NVIDIA A30 has 8\.0"):
        kernels(written, "NVIDIA A30")


def test_a_part_of_a_name_is_enough_where_one_gpu_has_it() -> None:
    """`a100` matches four GPUs, which are listed; `h100-pcie` is unique, and its SM count fills a gap."""
    with pytest.raises(InputError, match="`a100` matches 4 GPUs") as error:
        kernels(long_text(BOTH[0]), "a100")
    assert "a100-sxm4-80gb" in error.value.hint
    (found,) = kernels(long_text(BOTH[0]).replace('"8.6"', '"9.0"'), "100 pcie")
    assert found.texts["device__attribute_display_name"] == "NVIDIA H100 PCIe"


def test_a_gpu_that_nothing_is_known_of_is_named() -> None:
    """A misspelled GPU gives no roofs, with a note; it is ignored if the export names its own."""
    (said,) = notes(long_text(*BOTH), "NVIDA A10")
    assert said.startswith("no roofs are published for `NVIDA A10`")
    assert notes(long_text(*BOTH), "NVIDIA A10") == ()
    assert notes(wide_text({GPU_NAME: ("", "NVIDIA A10"), **WIDE}), "NVIDA A10") == ()


def test_a_named_gpu_stays() -> None:
    """The export's own facts take precedence over the user's."""
    written = wide_text({**WIDE, GPU_NAME: ("", "NVIDIA A10")})
    assert kernels(written, "NVIDIA A30")[0].texts[GPU_NAME] == "NVIDIA A10"
    assert notes(written) == ()


def test_without_gpu_and_shares_nothing_can_be_judged() -> None:
    """An export of amounts only needs the GPU's name, and the error says how to give it."""
    written = long_text(metric(TIME, "ns", "1000"), metric("dram__bytes.sum", "byte", "4096"))
    error = refusal(written)
    assert "does not name its GPU (compute capability 8.6)" in str(error)
    assert "--gpu" in error.hint
    assert "those of compute capability 8.6 are NVIDIA A10" in error.hint
    assert len(kernels(written, "NVIDIA A10")) == 1


@pytest.mark.parametrize(
    ("name", "unit", "value"),
    [
        ("sm__warps_active.avg.pct_of_peak_sustained_active", "%", "96.19"),
        ("sm__maximum_warps_per_active_cycle_pct", "%", "100"),
        ("launch__occupancy_limit_registers", "block", "4"),
    ],
)
def test_occupancy_alone_opens(name: str, unit: str, value: str) -> None:
    """Occupancy needs no peak of the GPU, so such an export opens without a GPU."""
    (found,) = kernels(long_text(metric(name, unit, value)))
    assert name in found.numbers
    assert found.lost is None


@pytest.mark.parametrize(
    "name",
    [
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio",
        "smsp__thread_inst_executed_per_inst_executed.ratio",
    ],
)
def test_what_accesses_do_in_vain_opens_alone(name: str) -> None:
    """Who asks for the sectors of an access, its conflicts or its idle lanes alone knows what he looks for."""
    (found,) = kernels(long_text(metric(name, "", "12.5")))
    assert found.numbers[name] == 12.5


def test_what_is_left_out_is_said() -> None:
    """Unknown labels, unknown units and cut rows are counted, a sentence each."""
    strange = (metric("My label", "", "1"), metric("Another", "%", "2"), metric("dram__bytes.sum", "KiB", "3"))
    cut = long_text(*BOTH).splitlines()[-1][:-3]
    said = notes(f"{long_text(*BOTH, *strange)}{cut}\n")
    assert said[0] == "left out 1 row, cut or broken"
    assert said[1] == "left out 2 labels of unknown metrics: `My label`, `Another`"
    assert said[2] == "left out values in 1 unknown unit: `KiB`"


def test_a_cut_value_is_not_read() -> None:
    """The last cell of a row that ends early is dropped: 28 instead of 28128 would be a wrong time."""
    columns = ",".join((*IDENTITY, TIME, SHARE, "sm__x.sum"))
    units = f"{',' * len(IDENTITY)}ns,%,inst"
    row = '0,4711,a.out,h,f,1,7,"(1, 1, 1)","(1, 1, 1)",0,8.6,28128,5'
    (found,) = kernels(f"{columns}\n{units}\n{row}", "NVIDIA A10")
    assert found.numbers[TIME] == 28_128
    assert SHARE not in found.numbers


def test_values_without_units_must_be_whole() -> None:
    """A raw page without its second row is read in base units, and refused if its times are scaled."""
    whole, scaled = ({TIME: ("", time), SHARE: ("%", "61.84")} for time in ("28128", "28.128000"))
    unitless = ["\n".join(line for place, line in enumerate(wide_text(one).splitlines()) if place != 1)
                for one in (whole, scaled)]  # fmt: skip
    assert kernels(unitless[0])[0].numbers[TIME] == 28_128
    assert "no units" in notes(unitless[0])[0]
    assert "no row of units" in str(refusal(unitless[1]))


@for_all(
    "written, said",
    [
        ("", "empty"),
        ("   \n", "empty"),
        (text(LONG, []), "no launches"),
        ("==ERROR== ERR_NVGPUCTRPERM - no permission\n", "ERR_NVGPUCTRPERM"),
        ("==PROF== Connected to process 1\n==WARNING== No kernels were profiled.\n", "no kernel was profiled"),
        ("==PROF== Connected to process 1\n==PROF== Disconnected from process 1\n", "only ncu's messages"),
        ("  f (1, 1, 1)x(1, 1, 1), Context 1\n    Section: GPU Speed Of Light Throughput\n", "no metric"),
        ("Total (MB),Count,Avg (MB),Operation\n99.0,1,2,[CUDA memset]\n", "Nsight Systems"),
        ('"Type","Time(%)","Time","Calls"\n"GPU activities",1,2,3\n', "nvprof"),
        ('"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"\n', "nvprof"),
        ('"#","Address","Source","Warp Stall Sampling (All Samples)"\n1,2,3,4\n', "source page"),
        (f"{TIME},launch__block_dim_x\nmsecond,block\n17.61,1024\n", "another program"),
        ("kernel_id,section,metric_name,value\nk1,SpeedOfLight,Duration,6.75\n", "another program"),
        ("a,b\n1,2\n", "not an Nsight Compute export"),
        (b"\x00\xff\xfe\x80" * 100, "not an Nsight Compute export"),
    ],
)
def test_foreign_texts_are_refused_with_what_they_are(written: str | bytes, said: str) -> None:
    """The error says what the text is, and the hint what to do."""
    assert said in str(refusal(written))
    data = written if isinstance(written, bytes) else written.encode()
    assert is_export(data) == (said == "no launches")


def test_a_summary_is_the_mean_launch() -> None:
    """With `--print-summary` each kernel is a mean over launches, and the note gives their number."""
    columns = (*LONG[1:11], "Invocations", *LONG[11:14], "Minimum", "Maximum", "Average")
    rows = [
        {**launch(), "Invocations": "14", **metric(TIME, "nsecond", ""), "Minimum": "1", "Maximum": "3", "Average": "2"}
    ]
    export = read_export(text(columns, rows).encode(), "rtx-3090")
    (kernel,) = export
    assert (kernel.numbers[TIME], kernel.launches, export.loss) == (2.0, 14, None)
    assert "the mean of its launches, 14 launches of `saxpy`" in export.notes[0]
