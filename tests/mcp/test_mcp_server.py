"""The Model Context Protocol server, driven by the SDK's own client over stdin and stdout."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec import Struct
from msgspec.structs import replace
from support.chips import H200
from support.fixture_kernels import triad
from support.ncu_rep_writer import ReportSpec, write_report
from support.synthetic_kernels import kernel_spec

from rooflens.cli.group import main
from rooflens.errors import InputError, UsageError
from rooflens.mcp.answers import MOST_TOKENS, PAGE_TOKENS, Answers
from rooflens.mcp.root import Root
from rooflens.model.predict.operations import OPERATIONS
from rooflens.model.predict.options import OPTIONS
from rooflens.report.text.digest import tokens_of

READER = "For anyone who wonders what a model sees of a report when it asks."
TRANSCRIPT = Path(__file__).parent / "transcript.md"
MW = "GPU_workshop__MW_Baseline.ncu-rep"
TOO_LONG = "a" * 300
"""Longest file name, since names have at most 255 bytes."""
SLOW_GLOB = "*a*a*a*a*a*a*a*a*a*ab"
"""A name of many `a`, over which backtracking takes years."""
ASKED: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("list_reports", {}),
    ("list_reports", {"offset": 3}),
    ("open_report", {"path": "before.ncu-rep"}),
    ("open_report", {"path": "before.ncu-rep", "kernel": "copy"}),
    ("list_kernels", {"path": "."}),
    ("list_kernels", {"path": "store"}),
    ("explain_kernel", {"path": "before.ncu-rep", "kernel": "gemm"}),
    ("explain_kernel", {"path": "before.ncu-rep", "kernel": "gemm", "offset": 1}),
    ("explain_kernel", {"path": "before.ncu-rep", "kernel": "gemm", "max_tokens": 300}),
    ("predict", {"operation": "gemm", "sizes": {}}),
    ("compare", {"base": "before.ncu-rep", "head": "after.ncu-rep"}),
    ("predict", {"operation": "gemm", "sizes": {"m": 4096, "n": 4096, "k": 4096}}),
    ("predict", {"operation": "gemm", "sizes": {"m": 4096, "n": 4096, "k": 4096}, "measured_ms": 0.3}),
    ("hotspots", {"path": "before.ncu-rep", "kernel": "gemm"}),
    ("open_report", {"path": "../outside/secret.ncu-rep"}),
    ("open_report", {"path": "/etc/passwd"}),
    ("open_report", {"path": "link.ncu-rep"}),
    ("open_report", {"path": "linked"}),
    ("open_report", {"path": "a\0b"}),
    ("open_report", {"path": TOO_LONG}),
    ("open_report", {"path": "before.ncu-rep", "kernel": "re:(a+)+$"}),
    ("open_report", {"path": "odd/long.ncu-rep", "kernel": SLOW_GLOB}),
    ("explain_kernel", {"path": "odd/long.ncu-rep", "kernel": SLOW_GLOB}),
    ("open_report", {"path": "before.ncu-rep", "kernel": "gemn"}),
    ("open_report", {"path": "cut.ncu-rep"}),
    ("predict", {"operation": "gem", "sizes": {}}),
    ("predict", {"operation": "gemm", "sizes": {"q": 1}}),
    ("list_reports", {"folder": "versions"}),
    ("list_reports", {"offset": 9999}),
    ("list_kernels", {"path": "versions"}),
    ("list_kernels", {"path": "versions", "offset": 9999}),
    ("open_report", {"path": "versions"}),
    ("open_report", {"path": "before.ncu-rep", "max_tokens": 200}),
    ("explain_kernel", {"path": "versions", "kernel": "cop"}),
    ("explain_kernel", {"path": "versions/app_v2.ncu-rep", "kernel": "copy"}),
    ("explain_kernel", {"path": "before.ncu-rep", "kernel": "gemm", "max_tokens": 200}),
    ("explain_kernel", {"path": "before.ncu-rep", "kernel": "gemm", "offset": 9999}),
    ("compare", {"base": "versions/app_v2.ncu-rep", "head": "versions"}),
    ("compare", {"base": "versions", "max_tokens": 200}),
    ("compare", {"base": "versions", "haed": "after.ncu-rep"}),
    ("open_report", {"path": "app_v2.ncu-rep"}),
    ("open_report", {"path": "version"}),
    ("open_report", {"path": "nothing-like-it"}),
    ("predict", {"operation": "gemm", "sizes": {"m": 64, "n": 64, "k": 64}, "gpu": "zzz"}),
    ("about", {}),
    ("about", {"name": "small_grid"}),
    ("about", {"name": "ERR_NVGPUCTRPERM"}),
    ("about", {"name": "smal_grid"}),
    ("open_report", {}),
    ("open_report", {"path": "before.ncu-rep", "max_tokens": "many"}),
    ("predict", {"operation": "gemm", "sizes": "4096"}),
    ("open_rapport", {}),
)
TRANSCRIBED: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("list_reports", {"folder": "published"}),
    ("open_report", {"path": f"published/{MW}"}),
    ("explain_kernel", {"path": f"published/{MW}", "kernel": "compute_tendencies_x_279"}),
)


class Said(Struct):
    """What the server answered.

    Attributes:
        answers: Text, and whether it is an error, by call.
        data: Data beside the text by call, or None.
        tools: The tools as listed.
    """

    tools: list[Any]
    answers: dict[str, tuple[str, bool]]
    data: dict[str, Any]

    def numbers(self, name: str, /, **arguments: object) -> Any:
        """Return the data beside an answer's text."""
        return self.data[repr((name, arguments))]

    def of(self, name: str, /, **arguments: object) -> str:
        """Return the answer to a call that must succeed."""
        text, is_error = self.answers[repr((name, arguments))]
        assert not is_error, text
        return text

    def refused(self, name: str, /, **arguments: object) -> str:
        """Return the answer to a call that must be refused."""
        text, is_error = self.answers[repr((name, arguments))]
        assert is_error, text
        return text


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder of reports with a store and links that leave it; with a published report, if there is one."""
    base = tmp_path_factory.mktemp("mcp")
    folder, outside = base / "root", base / "outside"
    for place in (folder, outside):
        place.mkdir()
    for name, more_ns in (("before", 0), ("after", 200_000)):
        times_ns = (("gemm", 900_000), ("copy", 400_000))
        specs = [replace(kernel_spec(replace(triad(H200), duration_ns=ns + more_ns)), name=n) for n, ns in times_ns]
        write_report(folder / f"{name}.ncu-rep", ReportSpec(kernels=tuple(specs)))
    (folder / "versions").mkdir()
    for number, name in enumerate(("copy", "copy", "copied"), start=1):
        spec = replace(kernel_spec(replace(triad(H200), duration_ns=100_000 * number)), name=name)
        write_report(folder / "versions" / f"app_v{number}.ncu-rep", ReportSpec(kernels=(spec, spec)))
    (folder / "odd").mkdir()
    long_name = replace(kernel_spec(triad(H200)), name="a" * 50_000)
    write_report(folder / "odd" / "long.ncu-rep", ReportSpec(kernels=(long_name,)))
    (folder / "cut.ncu-rep").write_bytes(b"cut off")
    shutil.copy(folder / "before.ncu-rep", outside / "secret.ncu-rep")
    for path in (*(folder / "versions").iterdir(), *(folder / "odd").iterdir()):
        os.utime(path, (0, 0))
    for month, name in enumerate(("cut", "before", "after"), start=1):
        written = datetime(2024, month, 1, 12, tzinfo=UTC).timestamp()
        os.utime(folder / f"{name}.ncu-rep", (written, written))
    (folder / "link.ncu-rep").symlink_to(outside / "secret.ncu-rep")
    (folder / "linked").symlink_to(outside)
    done = CliRunner().invoke(main, ["ingest", str(folder / "before.ncu-rep"), "--store", str(folder / "store")])
    assert done.exit_code == 0
    corpus = Path(os.environ.get("ROOFLENS_CORPUS") or Path(__file__).parents[3] / "shared" / "corpus")
    if (corpus / MW).is_file():
        (folder / "published").mkdir()
        shutil.copy(corpus / MW, folder / "published" / MW)
        recorded = datetime(2022, 6, 16, 12, tzinfo=UTC).timestamp()
        os.utime(folder / "published" / MW, (recorded, recorded))
    return folder


@pytest.fixture(scope="module")
def said(root: Path) -> Said:
    """Ask one server everything, in its own thread: the main thread's event loop belongs to other tests' browser."""
    anyio = pytest.importorskip("anyio")
    asked = (*ASKED, *(TRANSCRIBED if (root / "published").is_dir() else ()))
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(anyio.run, _talk, root, asked).result()


async def _talk(root: Path, asked: tuple[tuple[str, Mapping[str, Any]], ...]) -> Said:
    mcp = pytest.importorskip("mcp")
    arguments = ["-m", "rooflens", "mcp", "--root", str(root)]
    environment = {"PYTHONPATH": str(Path(__file__).parents[2]), "ROOFLENS_HOME": str(root.parent / "home")}
    server = mcp.StdioServerParameters(command=sys.executable, args=arguments, env=environment)
    answers, data = {}, {}
    async with mcp.Client(server) as client:
        tools = (await client.list_tools()).tools
        for name, given in asked:
            result = await client.call_tool(name, dict(given))
            answers[repr((name, dict(given)))] = "".join(part.text for part in result.content), bool(result.is_error)
            data[repr((name, dict(given)))] = result.structured_content
    return Said(tools, answers, data)


def test_the_tools_are_few_described_and_read_only(said: Said) -> None:
    """There are eight read-only tools, each with a sentence and a schema, under 8.1 kB, and 7.6 kB for their data."""
    names = [tool.name for tool in said.tools]
    reading = ["list_reports", "open_report", "list_kernels", "explain_kernel", "hotspots", "compare"]
    assert names == [*reading, "predict", "about"]
    assert all(tool.annotations.read_only_hint and tool.description for tool in said.tools)
    assert sum(len(tool.model_dump_json(exclude_none=True, exclude={"output_schema"})) for tool in said.tools) < 8100
    assert [tool.name for tool in said.tools if tool.output_schema is None] == ["about"]
    assert sum(len(json.dumps(tool.output_schema)) for tool in said.tools) < 7600


def test_numbers_come_beside_the_text(said: Said) -> None:
    """The data beside the text has the same kernels with times, classes and factors, and where to continue.

    The SDK's client refuses data that its tool's schema does not describe.
    """
    listed = said.numbers("list_kernels", path="store")
    assert [(one["name"], one["time_ns"]) for one in listed["kernels"]] == [("gemm", 900_000), ("copy", 400_000)]
    assert (listed["total"], listed["next_offset"]) == (2, None)
    one = said.numbers("explain_kernel", path="before.ncu-rep", kernel="gemm")
    assert one["key"] in said.of("explain_kernel", path="before.ncu-rep", kernel="gemm")
    assert one["bound"] == "memory"
    assert one["moves"][0]["text"]
    assert said.numbers("list_reports")["paths"][:2] == ["after.ncu-rep", "before.ncu-rep"]
    product = {"operation": "gemm", "sizes": {"m": 4096, "n": 4096, "k": 4096}}
    assert said.numbers("predict", **product)["flop"] == 2 * 4096**3
    assert said.numbers("predict", **product, measured_ms=0.3)["time_verdict"] == "slower than half"
    compared = said.numbers("compare", base="before.ncu-rep", head="after.ncu-rep")
    assert compared["programs"][0]["factor"] == pytest.approx(1.3 / 1.7)
    assert max(len(json.dumps(one)) for one in said.data.values()) < 4 * PAGE_TOKENS


def test_a_word_is_explained_and_an_unknown_one_is_answered_with_the_nearest(said: Said) -> None:
    """`about` answers like the command, and refers to itself instead of the command."""
    assert said.of("about", name="small_grid").startswith("# Too few blocks")
    assert "NVreg_RestrictProfilingToAdminUsers" in said.of("about", name="ERR_NVGPUCTRPERM")
    assert "did you mean `small_grid`" in said.refused("about", name="smal_grid")
    assert "offset=" in said.of("about")


def test_what_does_not_fit_a_schema_is_said_in_a_line(said: Said) -> None:
    """A missing or wrong argument, and an unknown tool, give a sentence with a hint, without a traceback."""
    told = (
        (said.refused("open_report"), "`open_report` needs `path` (hint: report, trace, folder of them or store"),
        (said.refused("open_report", path="before.ncu-rep", max_tokens="many"), "`max_tokens` of `open_report` cannot"),
        (said.refused("predict", operation="gemm", sizes="4096"), "(hint: by name, such as m, n, k of gemm"),
        (said.refused("open_rapport"), "there is no tool `open_rapport` (hint: there are list_reports, "),
    )
    for text, expected in told:
        assert expected in text
        assert "\n" not in text
        assert "pydantic" not in text


def test_reports_are_listed_from_the_root_without_links_that_lead_out(said: Said) -> None:
    """Reports are listed newest first with date, GPU and kernels, in pages, without links to reports outside."""
    text = said.of("list_reports")
    lines = text.splitlines()
    assert lines[0] == "- `after.ncu-rep`: 2024-03-01 12:00, `NVIDIA H200`, 2 kernels"
    assert lines[1] == "- `before.ncu-rep`: 2024-02-01 12:00, `NVIDIA H200`, 2 kernels"
    assert lines[2].startswith("- `cut.ncu-rep`: 2024-01-01 12:00, cannot be read: ")
    assert lines[-1] == "- `store`: store"
    assert "link" not in text
    assert "after" not in said.of("list_reports", offset=3)


def test_a_report_is_digested_and_its_kernels_are_listed(said: Said) -> None:
    """A digest, a selection by name, and the table are answered for a folder and for a store."""
    assert said.of("open_report", path="before.ncu-rep").startswith("# `before.ncu-rep`\n")
    assert "gemm" not in said.of("open_report", path="before.ncu-rep", kernel="copy")
    assert said.of("list_kernels", path=".").count("| `gemm` | `") == 2
    assert said.of("list_kernels", path="store").count("| `gemm` |") == 1


def test_a_kernel_is_explained_in_pages(said: Said) -> None:
    """A page continues where the previous one says."""
    first = said.of("explain_kernel", path="before.ncu-rep", kernel="gemm")
    assert first.startswith("# `gemm`\n\nResult 0 of `before.ncu-rep`")
    assert said.of("explain_kernel", path="before.ncu-rep", kernel="gemm", offset=1).startswith("Result 0")
    assert tokens_of(said.of("explain_kernel", path="before.ncu-rep", kernel="gemm", max_tokens=300)) < 330


def test_rows_say_which_of_several_reports_they_are_of(said: Said) -> None:
    """Kernels with the same key in several reports are told apart by paths that open; marks of doubt are kept."""
    table, digest = (said.of(tool, path="versions") for tool in ("list_kernels", "open_report"))
    for number in (1, 2, 3):
        assert f"| `versions/app_v{number}.ncu-rep` |" in table
        assert f" in `versions/app_v{number}.ncu-rep`: " in digest
    own = said.of("explain_kernel", path="versions/app_v2.ncu-rep", kernel="copy")
    assert "\nResult 0 of `versions/app_v2.ncu-rep`, key " in own
    assert "report" not in said.of("list_kernels", path="store").splitlines()[0]


def test_an_ambiguous_pattern_names_the_kernels_that_it_does_not_explain(said: Said) -> None:
    """`cop` matches three kernels: the longest is explained, the others are named with key and report."""
    text = said.of("explain_kernel", path="versions", kernel="cop")
    assert text.startswith(
        "# `copied`\n\n3 kernels match, and this one has most to win. The others: `copy` (key `copy-"
    )
    for number in (1, 2):
        assert re.search(rf"`copy` \(key `copy-\w+` in `versions/app_v{number}.ncu-rep`\)", text)
    assert "match" not in said.of("explain_kernel", path="before.ncu-rep", kernel="gemm")


def test_reports_are_counted_in_the_words_of_the_digest(said: Said) -> None:
    """Two launches of a kernel are one row, in the list and in the digest."""
    assert "`versions/app_v1.ncu-rep`: 1970-01-01 00:00, `NVIDIA H200`, 1 kernel, 2 launches\n" in said.of(
        "list_reports", folder="versions"
    )


def test_the_smallest_answer_has_the_verdict_and_past_the_end_is_nothing(said: Said) -> None:
    """200 tokens hold a row or the verdict; an offset past the end says how many lines or rows there are."""
    assert "\n1. `gemm`: " in said.of("open_report", path="before.ncu-rep", max_tokens=200)
    small = said.of("explain_kernel", path="before.ncu-rep", kernel="gemm", max_tokens=200)
    assert "** Class confidence" in small
    assert "## " not in small
    past = said.of("explain_kernel", path="before.ncu-rep", kernel="gemm", offset=9999)
    assert re.fullmatch(r"nothing after line \d+", past)
    assert said.of("list_kernels", path="versions", offset=9999) == "nothing after row 3"
    assert said.of("list_reports", offset=9999).startswith("nothing after row ")


def test_a_report_is_compared_with_the_other_versions_in_a_folder(said: Said) -> None:
    """The base is compared with each version but not with its own copy; each version is named with its kernel."""
    text = said.of("compare", base="versions/app_v2.ncu-rep", head="versions")
    rows = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| v")]
    assert rows == ["version", "v2", "v1 (fastest)", "v3"]
    assert "copy (v2 to v1), copied (v3)" in text
    assert "among the base's" not in text
    assert "truncated, " in said.of("compare", base="versions", max_tokens=200)


def test_a_glob_of_many_stars_is_answered_for_a_long_name(said: Said) -> None:
    """Ten stars against a name of 50,000 characters match nothing, and the server stays responsive."""
    for tool in ("open_report", "explain_kernel"):
        assert "no kernel matches" in said.refused(tool, path="odd/long.ncu-rep", kernel=SLOW_GLOB)


def test_what_a_client_lacks_is_not_named(said: Said) -> None:
    """Answers and hints name tools instead of the shell commands that they replace."""
    answers = "".join(text for text, _ in said.answers.values())
    assert re.findall(r"`rooflens (?!profile|collect)[^`]*`", answers) == []
    assert "then `compare`." in said.of("explain_kernel", path="before.ncu-rep", kernel="gemm")
    refused = said.refused("predict", operation="gemm", sizes={"m": 64, "n": 64, "k": 64}, gpu="zzz")
    assert "no GPU is called `zzz`" in refused
    assert "rooflens gpus" not in refused


def test_a_mistyped_path_or_argument_is_answered_with_what_there_is(said: Said) -> None:
    """For a misspelled path similar ones are suggested; an unknown argument is refused, not dropped."""
    assert "did you mean `versions/app_v2.ncu-rep`?" in said.refused("open_report", path="app_v2.ncu-rep")
    assert "did you mean `versions`" in said.refused("open_report", path="version")
    assert "(hint: `list_reports` names the reports)" in said.refused("open_report", path="nothing-like-it")
    assert "takes no `haed` (hint: it takes base, head, " in said.refused(
        "compare", base="versions", haed="after.ncu-rep"
    )


PUBLISHED = Path(__file__).parents[2] / "fixtures" / "published"


@pytest.fixture(scope="module")
def published() -> Answers:
    """Answer about the project's published reports, without a client."""
    return Answers(Root(PUBLISHED))


def test_an_export_is_read_for_the_gpu_that_a_client_names(tmp_path: Path) -> None:
    """A list of counters names no GPU: the error asks for the argument `gpu`, which gives the kernel its roofs."""
    names = {
        "gpu__time_duration.sum": 1e4,
        "dram__bytes.sum": 1e7,
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": 1e6,
    }
    heads = '"ID","Process ID","Kernel Name","Block Size","Grid Size","Device","CC"'
    rows = [
        f'"0","1","axpy","(256, 1, 1)","(64, 1, 1)","0","8.0","{name}","","{value}"' for name, value in names.items()
    ]
    lines = (f'{heads},"Metric Name","Metric Unit","Metric Value"', *rows)
    (tmp_path / "list.csv").write_text("\n".join(lines), encoding="utf-8")
    answers = Answers(Root(tmp_path))
    with pytest.raises(InputError) as refused:
        answers.open_report("list.csv")
    assert "name it with gpu" in refused.value.hint
    for text in (
        answers.open_report("list.csv", gpu="a100-sxm4-40gb").text,
        answers.explain_kernel("list.csv", gpu="a100-sxm4-40gb").text,
    ):
        assert "1.00 TB/s of 1.56 TB/s by the datasheet (64 %)" in text.replace("\u00a0", " ")
    with pytest.raises(UsageError, match="name of 4 GPUs"):
        answers.list_kernels("list.csv", gpu="a100")


def test_the_why_of_each_kernel_is_in_the_first_page(published: Answers) -> None:
    """Verdict, moves, lines and reasons fit on the first default page."""
    keys = re.findall(r"`([\w.]+-[0-9a-f]{6})` \|$", published.list_kernels(MW).text, re.MULTILINE)
    assert len(keys) == 5
    for key in keys:
        page = published.explain_kernel(MW, key).text
        assert page.index("\n## What to try") < page.index("\n## Where\n") < page.index("\n## Why\n"), key


@pytest.mark.parametrize("tokens", range(200, 700, 45))
def test_pages_end_at_no_heading_and_go_on_within_tables(published: Answers, tokens: int) -> None:
    """All pages together are the whole text; none ends with a heading, and each part of a table has its head."""
    whole = published.explain_kernel(MW, "x_279", max_tokens=MOST_TOKENS).text
    offset, lines = 0, []
    while True:
        page, _, end = published.explain_kernel(MW, "x_279", max_tokens=tokens, offset=offset).text.partition(
            "\n\ntruncated, "
        )
        own = page.splitlines()
        assert not own[-1].startswith(("#", "|--")), page
        for at, line in enumerate(own):
            if line.startswith("|") and not own[at - 1].startswith("|"):
                assert own[at + 1].startswith("|--"), page
        lines += own
        if not end:
            break
        offset = int(end.partition("offset=")[2])
    assert list(dict.fromkeys(filter(None, lines))) == list(dict.fromkeys(filter(None, whole.splitlines())))


def test_doubt_is_marked_as_the_table_of_analyze_marks_it(published: Answers) -> None:
    """A kernel's verdict reads as in `analyze`, including its confidence, and the marks are explained."""
    table = CliRunner().invoke(main, ["analyze", str(PUBLISHED / MW)], env={"COLUMNS": "220"}).stdout
    listed = published.list_kernels(MW).text
    verdicts = [line.split(" | ")[4] for line in listed.splitlines() if re.match(r"\| \d", line)]
    assert len(verdicts) == 5
    assert any(verdict.endswith(" (low)") for verdict in verdicts)
    for verdict in verdicts:
        assert verdict in table
    assert "(low)" in published.open_report(MW, max_tokens=MOST_TOKENS).text.partition("Gains are")[0]
    for text in (listed, published.open_report(MW, max_tokens=MOST_TOKENS).text):
        assert "(medium), (low): confidence" in text


def test_a_kernel_is_explained_by_the_name_that_tables_print(published: Answers) -> None:
    """A template's short name selects it and heads its explanation; the full name appears once, at the end."""
    name = "B2bGemm<32x384x64>"
    report = "cutlass__384.ncu-rep"
    assert f"`{name}`" in published.list_kernels(report).text
    text = published.explain_kernel(report, name, max_tokens=MOST_TOKENS).text
    assert text.startswith(f"# `{name}`\n\nResult 0 ")
    assert text.count("cutlass::Kernel<") == 1
    assert text.splitlines()[-1].startswith("Full name: `cutlass::Kernel<")


def test_the_first_page_holds_the_moves_and_no_escapes(said: Said) -> None:
    """Verdict and moves come first, counters last; `fp64_divisions` and `<` are not escaped."""
    text = said.of("explain_kernel", path="before.ncu-rep", kernel="gemm")
    parts = [line for line in text.splitlines() if line.startswith("## ")]
    assert parts[0] == "## What to try, in this order"
    assert parts[-1] == "## How busy each unit is"
    answers = "".join(text for text, _ in said.answers.values())
    assert re.findall(r"\\[_*\[\]~$]|\\$|&(?:lt|gt|amp);|\u2060", answers, re.MULTILINE) == []


def test_the_names_that_the_tools_state_are_those_that_predict_takes(said: Said) -> None:
    """Each operation in the schema exists, `attention` alone does not, and the options are those of the command."""
    (schema,) = (tool.input_schema for tool in said.tools if tool.name == "predict")
    assert schema["properties"]["operation"]["description"].split(", ") == list(OPERATIONS)
    told = {
        name: one["description"] for name, one in schema["properties"].items() if name not in {"operation", "sizes"}
    }
    assert told == {one.name: one.meaning for one in OPTIONS}
    assert "its sizes are " in said.refused("predict", operation="gemm", sizes={})


def test_two_recordings_are_compared_and_operations_predicted(said: Said) -> None:
    """Both answers contain their numbers: 4096 cubed is 137 GFLOP."""
    assert "`gemm`" in said.of("compare", base="before.ncu-rep", head="after.ncu-rep")
    assert "137 GFLOP" in said.of("predict", operation="gemm", sizes={"m": 4096, "n": 4096, "k": 4096})


def test_no_path_leads_out_of_the_root(said: Said) -> None:
    """Parent folders, absolute paths, links out of the folder, and impossible or overlong paths are refused."""
    for path in ("../outside/secret.ncu-rep", "/etc/passwd", "link.ncu-rep", "linked"):
        assert "outside the folder that this server reads" in said.refused("open_report", path=path)
    assert "is not a path" in said.refused("open_report", path="a\0b")
    assert "is not a path" in said.refused("open_report", path=TOO_LONG)


def test_what_a_client_can_mend_is_an_error_with_a_hint(said: Said) -> None:
    """A misspelled kernel, a wrong file, an unknown operation or size, and regular expressions give errors."""
    assert "did you mean `gemm`?" in said.refused("open_report", path="before.ncu-rep", kernel="gemn")
    assert "regular expressions are not supported here" in said.refused(
        "open_report", path="before.ncu-rep", kernel="re:(a+)+$"
    )
    assert "not an Nsight Compute report" in said.refused("open_report", path="cut.ncu-rep")
    assert "called `gem` (hint: did you mean `gemv` or" in said.refused("predict", operation="gem", sizes={})
    assert "its sizes are m, n, k" in said.refused("predict", operation="gemm", sizes={"q": 1})
    assert "by instruction" in said.refused("hotspots", path="before.ncu-rep", kernel="gemm")


def test_no_answer_is_over_a_page(said: Said) -> None:
    """No answer exceeds a page, and a longer text ends with a line on how to continue."""
    assert max(tokens_of(text) for text, _ in said.answers.values()) <= PAGE_TOKENS + 50


@pytest.mark.corpus
def test_the_transcript_finds_kernel_line_and_move_in_four_calls_and_6_kb(said: Said, root: Path) -> None:
    """The stored transcript equals the server's answers about a published report, and it is short."""
    if not (root / "published").is_dir():
        pytest.skip("no corpus of published reports")
    answers = [said.of(name, **given) for name, given in TRANSCRIBED]
    whole = "".join(answers)
    assert len(answers) <= 4
    assert len(whole.encode()) <= 6000
    for known in ("compute_tendencies_x_279_gpu", "miniWeather_mpi_openacc.F90:288", "ompute reciprocals once"):
        assert known in answers[1]
        assert known in answers[2]
    written = transcript(answers)
    if os.environ.get("ROOFLENS_WRITE_TRANSCRIPT"):
        TRANSCRIPT.write_text(written, "utf-8")
    assert TRANSCRIPT.read_text("utf-8") == written, "write it anew: ROOFLENS_WRITE_TRANSCRIPT=1 pytest tests/mcp"


def transcript(answers: list[str]) -> str:
    """Write calls and answers as Markdown."""
    size = len("".join(answers).encode())
    told = f"What a client asked of a published report, and what it was told: {len(answers)} calls, {size:,} bytes."
    parts = ["# A transcript of the MCP server", READER, f"{told} A test holds that the server says this."]
    for (name, given), answer in zip(TRANSCRIBED, answers, strict=True):
        arguments = ", ".join(f"{key}={value!r}" for key, value in given.items())
        parts.append(f"## `{name}({arguments})`\n\n````markdown\n{answer.strip()}\n````")
    return "\n\n".join(parts) + "\n"


def test_without_the_sdk_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the extra the exit code is 3, with the command that installs it."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    done = CliRunner().invoke(main, ["mcp", "--root", str(tmp_path)])
    assert done.exit_code == 3
    assert done.stderr == "error: the MCP SDK is not installed\n\nhint: `pip install 'mcp>=2,<3'`\n"


def test_a_root_must_be_a_folder(tmp_path: Path) -> None:
    """A root that does not exist is bad input."""
    done = CliRunner().invoke(main, ["mcp", "--root", str(tmp_path / "none")])
    assert done.exit_code == 1
    assert "is not a folder" in done.stderr


def test_the_set_up_of_clients_gives_whole_paths() -> None:
    """Each block of the page parses in its client, and starts the server with absolute paths."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "agents.md").read_text("utf-8")
    blocks = re.findall(r"^```(json|toml)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    configured = [(json.loads if kind == "json" else tomllib.loads)(text) for kind, text in blocks]
    assert [next(iter(one)) for one in configured] == ["mcpServers", "servers", "mcp_servers"]
    for servers in configured:
        (server,) = next(iter(servers.values())).values()
        assert PurePosixPath(server["command"]).is_absolute()
        assert server["args"][:2] == ["mcp", "--root"]
        assert PurePosixPath(server["args"][2]).is_absolute()
