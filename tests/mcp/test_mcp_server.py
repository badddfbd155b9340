"""The server of the Model Context Protocol, spoken to by the SDK's own client over stdin and stdout."""

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
from rooflens.mcp.answers import PAGE_TOKENS
from rooflens.model.predict.operations import OPERATIONS
from rooflens.report.text.digest import tokens_of

READER = "For anyone who wonders what a model sees of a report when it asks."
TRANSCRIPT = Path(__file__).parent / "transcript.md"
MW = "GPU_workshop__MW_Baseline.ncu-rep"
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
    ("predict", {"operation": "attention-flash", "sizes": {}}),
    ("compare", {"base": "before.ncu-rep", "head": "after.ncu-rep"}),
    ("predict", {"operation": "gemm", "sizes": {"m": 4096, "n": 4096, "k": 4096}}),
    ("hotspots", {"path": "before.ncu-rep", "kernel": "gemm"}),
    ("open_report", {"path": "../outside/secret.ncu-rep"}),
    ("open_report", {"path": "/etc/passwd"}),
    ("open_report", {"path": "link.ncu-rep"}),
    ("open_report", {"path": "linked"}),
    ("open_report", {"path": "a\0b"}),
    ("open_report", {"path": "before.ncu-rep", "kernel": "re:(a+)+$"}),
    ("open_report", {"path": "before.ncu-rep", "kernel": "gemn"}),
    ("open_report", {"path": "cut.ncu-rep"}),
    ("predict", {"operation": "gem", "sizes": {}}),
    ("predict", {"operation": "gemm", "sizes": {"q": 1}}),
)
TRANSCRIBED: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("list_reports", {"folder": "published"}),
    ("open_report", {"path": f"published/{MW}"}),
    ("explain_kernel", {"path": f"published/{MW}", "kernel": "compute_tendencies_x_279"}),
)


class Said(Struct):
    """What the server said.

    Attributes:
        answers: Text and whether it was an error, by call.
        tools: As listed.
    """

    tools: list[Any]
    answers: dict[str, tuple[str, bool]]

    def of(self, name: str, **arguments: object) -> str:
        """Return the answer to a call that must have gone well."""
        text, is_error = self.answers[repr((name, arguments))]
        assert not is_error, text
        return text

    def refused(self, name: str, **arguments: object) -> str:
        """Return the answer to a call that must have been refused."""
        text, is_error = self.answers[repr((name, arguments))]
        assert is_error, text
        return text


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder of reports with a store and links that lead out of it; a published report, where there is one."""
    base = tmp_path_factory.mktemp("mcp")
    folder, outside = base / "root", base / "outside"
    for place in (folder, outside):
        place.mkdir()
    for name, more_ns in (("before", 0), ("after", 200_000)):
        times_ns = (("gemm", 900_000), ("copy", 400_000))
        specs = [replace(kernel_spec(replace(triad(H200), duration_ns=ns + more_ns)), name=n) for n, ns in times_ns]
        write_report(folder / f"{name}.ncu-rep", ReportSpec(kernels=tuple(specs)))
    (folder / "cut.ncu-rep").write_bytes(b"cut off")
    shutil.copy(folder / "before.ncu-rep", outside / "secret.ncu-rep")
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
    """Ask one server everything, in a thread of its own: in the first one the browser of other tests keeps a loop."""
    anyio = pytest.importorskip("anyio")
    asked = (*ASKED, *(TRANSCRIBED if (root / "published").is_dir() else ()))
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(anyio.run, _talk, root, asked).result()


async def _talk(root: Path, asked: tuple[tuple[str, Mapping[str, Any]], ...]) -> Said:
    mcp = pytest.importorskip("mcp")
    arguments = ["-m", "rooflens", "mcp", "--root", str(root)]
    environment = {"PYTHONPATH": str(Path(__file__).parents[2]), "ROOFLENS_HOME": str(root.parent / "home")}
    server = mcp.StdioServerParameters(command=sys.executable, args=arguments, env=environment)
    answers = {}
    async with mcp.Client(server) as client:
        tools = (await client.list_tools()).tools
        for name, given in asked:
            result = await client.call_tool(name, dict(given))
            answers[repr((name, dict(given)))] = "".join(part.text for part in result.content), bool(result.is_error)
    return Said(tools, answers)


def test_the_tools_are_few_described_and_read_only(said: Said) -> None:
    """Seven tools, each with a sentence, a schema and the mark that it only reads; all of them in under 6.5 kB."""
    names = [tool.name for tool in said.tools]
    assert names == ["list_reports", "open_report", "list_kernels", "explain_kernel", "hotspots", "compare", "predict"]
    assert all(tool.annotations.read_only_hint and tool.description for tool in said.tools)
    assert sum(len(tool.model_dump_json(exclude_none=True)) for tool in said.tools) < 6500


def test_reports_are_listed_from_the_root_without_links_that_lead_out(said: Said) -> None:
    """Newest first with date, GPU and kernels, in pages; a link to a report outside is not among them."""
    text = said.of("list_reports")
    lines = text.splitlines()
    assert lines[0] == "- `after.ncu-rep`: 2024-03-01 12:00, `NVIDIA H200`, 2 kernels"
    assert lines[1] == "- `before.ncu-rep`: 2024-02-01 12:00, `NVIDIA H200`, 2 kernels"
    assert lines[2].startswith("- `cut.ncu-rep`: 2024-01-01 12:00, cannot be read: ")
    assert lines[-1] == "- `store`: store"
    assert "link" not in text
    assert "after" not in said.of("list_reports", offset=3)


def test_a_report_is_digested_and_its_kernels_are_listed(said: Said) -> None:
    """Digest, choice by name, and the table from a folder and from a store."""
    assert said.of("open_report", path="before.ncu-rep").startswith("# `before.ncu-rep`\n")
    assert "gemm" not in said.of("open_report", path="before.ncu-rep", kernel="copy")
    assert said.of("list_kernels", path=".").count("| `gemm` |") == 2
    assert said.of("list_kernels", path="store").count("| `gemm` |") == 1


def test_a_kernel_is_explained_in_pages(said: Said) -> None:
    """A page goes on where the one before it says."""
    first = said.of("explain_kernel", path="before.ncu-rep", kernel="gemm")
    assert first.startswith("# `gemm`\n\nResult 0 of `before.ncu-rep`")
    assert said.of("explain_kernel", path="before.ncu-rep", kernel="gemm", offset=1).startswith("\nResult 0")
    assert tokens_of(said.of("explain_kernel", path="before.ncu-rep", kernel="gemm", max_tokens=300)) < 330


def test_the_first_page_holds_the_moves_and_no_escapes(said: Said) -> None:
    """Verdict and moves come first, the counters last; `fp64_divisions` and `<` are what they are."""
    text = said.of("explain_kernel", path="before.ncu-rep", kernel="gemm")
    parts = [line for line in text.splitlines() if line.startswith("## ")]
    assert parts[0] == "## What to try, in this order"
    assert parts[-1] == "## How busy each unit is"
    answers = "".join(text for text, _ in said.answers.values())
    assert re.findall(r"\\[_*\[\]~$]|\\$|&(?:lt|gt|amp);|\u2060", answers, re.MULTILINE) == []


def test_the_names_that_the_tools_state_are_those_that_predict_takes(said: Said) -> None:
    """Each operation that the schema names is one: `attention` alone is none."""
    (schema,) = (tool.input_schema for tool in said.tools if tool.name == "predict")
    assert schema["properties"]["operation"]["description"].split(", ") == list(OPERATIONS)
    assert "its sizes are " in said.refused("predict", operation="attention-flash", sizes={})


def test_two_recordings_are_compared_and_operations_predicted(said: Said) -> None:
    """Both answers have their numbers; 4096 cubed is 137 GFLOP."""
    assert "`gemm`" in said.of("compare", base="before.ncu-rep", head="after.ncu-rep")
    assert "137 GFLOP" in said.of("predict", operation="gemm", sizes={"m": 4096, "n": 4096, "k": 4096})


def test_no_path_leads_out_of_the_root(said: Said) -> None:
    """Steps up, absolute paths, links to files and to folders, and what is not a path are refused."""
    for path in ("../outside/secret.ncu-rep", "/etc/passwd", "link.ncu-rep", "linked"):
        assert "outside the folder that this server reads" in said.refused("open_report", path=path)
    assert "is not a path" in said.refused("open_report", path="a\0b")


def test_what_a_client_can_mend_is_an_error_with_a_hint(said: Said) -> None:
    """A mistyped kernel, a file that is no report, an unknown operation or size; regular expressions are for people."""
    assert "did you mean `gemm`?" in said.refused("open_report", path="before.ncu-rep", kernel="gemn")
    assert "regular expressions are not supported here" in said.refused(
        "open_report", path="before.ncu-rep", kernel="re:(a+)+$"
    )
    assert "not an Nsight Compute report" in said.refused("open_report", path="cut.ncu-rep")
    assert "called `gem` (hint: did you mean `gemv` or" in said.refused("predict", operation="gem", sizes={})
    assert "its sizes are m, n, k" in said.refused("predict", operation="gemm", sizes={"q": 1})
    assert "by instruction" in said.refused("hotspots", path="before.ncu-rep", kernel="gemm")


def test_no_answer_is_over_a_page(said: Said) -> None:
    """Whatever was asked, an answer is at most a page, with the line that says how to go on."""
    assert max(tokens_of(text) for text, _ in said.answers.values()) <= PAGE_TOKENS + 50


@pytest.mark.corpus
def test_the_transcript_finds_kernel_line_and_move_in_four_calls_and_6_kb(said: Said, root: Path) -> None:
    """The stored transcript is what the server says of a published report, and it is short."""
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
    """The extra is missing: exit code 3, with the command that installs it."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    done = CliRunner().invoke(main, ["mcp", "--root", str(tmp_path)])
    assert done.exit_code == 3
    assert done.stderr == "error: the MCP SDK is not installed\n\nhint: `pip install 'mcp>=2,<3'`\n"


def test_a_root_must_be_a_folder(tmp_path: Path) -> None:
    """A root that is not there is bad input."""
    done = CliRunner().invoke(main, ["mcp", "--root", str(tmp_path / "none")])
    assert done.exit_code == 1
    assert "is not a folder" in done.stderr


def test_the_set_up_of_clients_gives_whole_paths() -> None:
    """Each block of the page is read by its client's parser, and starts the server by absolute paths."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "agents.md").read_text("utf-8")
    blocks = re.findall(r"^```(json|toml)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    configured = [(json.loads if kind == "json" else tomllib.loads)(text) for kind, text in blocks]
    assert [next(iter(one)) for one in configured] == ["mcpServers", "servers", "mcp_servers"]
    for servers in configured:
        (server,) = next(iter(servers.values())).values()
        assert PurePosixPath(server["command"]).is_absolute()
        assert server["args"][:2] == ["mcp", "--root"]
        assert PurePosixPath(server["args"][2]).is_absolute()
