from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result
from pypdf import PdfReader
from support.ncu_rep_writer import KernelSpec, ReportSpec, write_report

from rooflens.cli.group import main
from rooflens.report.html import theme

SCHEMA = json.loads(files("rooflens.report").joinpath("analysis.schema.json").read_text(encoding="utf-8"))
BEGINS = {"html": b"<!doctype html>", "md": b"## ", "pdf": b"%PDF", "png": b"\x89PNG", "svg": b"<svg ", "json": b"{"}


def run(*arguments: object) -> Result:
    """Run the command line; an exception that is no exit fails the test with its traceback."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def report(fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a stored report and an empty working folder."""
    monkeypatch.chdir(tmp_path)
    return fixtures / "synthetic" / "attention.synthetic.ncu-rep"


@pytest.mark.parametrize("style", ["html", "md", "pdf", "png", "json"])
def test_each_format_is_written_under_its_own_name(report: Path, style: str) -> None:
    """`--format` alone writes `report.` with its ending, and the last line says so."""
    result = run("report", report, "--format", style)
    assert result.exit_code == 0
    assert result.stdout == ""
    assert result.stderr.splitlines()[-1] == f"wrote report.{style}"
    assert Path(f"report.{style}").read_bytes().lower().startswith(BEGINS[style].lower())


@pytest.mark.parametrize(("name", "style"), [("a.MD", "md"), ("a.htm", "html"), ("a.json", "json")])
def test_the_format_follows_from_the_ending(report: Path, name: str, style: str) -> None:
    """Without `--format` the ending of the file decides."""
    assert run("report", report, "-o", name).exit_code == 0
    assert Path(name).read_bytes().lower().startswith(BEGINS[style].lower())


def test_a_name_without_an_ending_is_a_page_and_any_name_goes_with_a_format(report: Path) -> None:
    """A file without ending is html, and `--format` decides for unknown endings."""
    assert run("report", report, "-o", "page").exit_code == 0
    assert Path("page").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert run("report", report, "-o", "notes.txt", "--format", "md").exit_code == 0
    assert Path("notes.txt").read_text(encoding="utf-8").startswith("## ")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("-o", "a.png", "--format", "svg"), "`a.png` ends like png, and --format is svg"),
        (("-o", "a.eps"), "the extension of `a.eps` is not a known format"),
        (("-o", "-"), "`-o -` needs --format"),
        (("-o", "-", "--format", "md", "--table"), "--table and `-o -` both write to stdout"),
        (("--theme", "dark"), "--theme is for pictures, not for html"),
        (("-o", "a.ncu-rep", "--force"), "`a.ncu-rep` is the name of a report"),
    ],
)
def test_wrong_usage_is_named_with_a_hint(report: Path, arguments: tuple[str, ...], error: str) -> None:
    """Contradicting options end with exit code 2 and a hint before anything is read or written."""
    result = run("report", report, *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {error}\n\nhint: ")
    assert not list(Path().iterdir())


def test_an_existing_file_of_any_format_is_kept(report: Path) -> None:
    """Files with default names are also kept unless forced."""
    Path("report.md").write_text("mine")
    refused = run("report", report, "--format", "md")
    assert refused.exit_code == 2
    assert "--force" in refused.stderr
    assert Path("report.md").read_text() == "mine"
    assert run("report", report, "--format", "md", "--force").exit_code == 0


def test_markdown_goes_to_stdout_alone(report: Path) -> None:
    """`-o -` writes only the file to stdout, and leaves no file."""
    result = run("report", report, "-o", "-", "--format", "md", "--title", "my_run")
    assert result.exit_code == 0
    assert result.stdout.startswith("## my\\_run\n\n> [!WARNING]\n> **Synthetic data.**")
    assert result.stdout.endswith("</details>\n")
    assert "wrote" not in result.stderr
    assert not list(Path().iterdir())


def test_a_pdf_is_as_wide_as_a_column_of_a_paper(report: Path) -> None:
    """A PDF is 88 by 66 mm, within a line of words, whatever the names of its reports."""
    assert run("report", report, "-o", "figure.pdf").exit_code == 0
    box = PdfReader("figure.pdf").pages[0].mediabox
    assert float(box.width) * 25.4 / 72 == pytest.approx(88, abs=0.5)
    assert float(box.height) * 25.4 / 72 == pytest.approx(66, abs=2.5)


def test_a_png_goes_into_a_pipe_and_to_no_terminal(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture goes through a pipe unchanged; a terminal is refused."""
    assert run("report", report, "-o", "-", "--format", "png").stdout_bytes.startswith(b"\x89PNG")
    monkeypatch.setattr("rooflens.cli.commands.report._stdout_is_terminal", lambda: True)
    refused = run("report", report, "-o", "-", "--format", "png")
    assert refused.exit_code == 2
    assert "a terminal cannot show a png" in refused.stderr


def test_json_is_the_contract(report: Path) -> None:
    """The file equals `analyze --format json` and is valid against the schema."""
    assert run("report", report, "-o", "a.json").exit_code == 0
    document = json.loads(Path("a.json").read_text(encoding="utf-8"))
    jsonschema.validate(document, SCHEMA)
    assert document == json.loads(run("analyze", report, "--format", "json").stdout)


@pytest.mark.parametrize(("options", "inks"), [((), theme.LIGHT), (("--theme", "dark"), theme.DARK)])
def test_a_theme_colours_a_picture(report: Path, options: tuple[str, ...], inks: theme.Inks) -> None:
    """A picture's background follows its theme, by default light."""
    assert run("report", report, "-o", "a.svg", *options).exit_code == 0
    assert f'fill="{inks.page}"' in Path("a.svg").read_text(encoding="utf-8")[:600]


def test_a_report_that_cannot_be_placed_has_no_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without FLOPs and bytes there is one error with a hint, exit code 1, and no file."""
    monkeypatch.chdir(tmp_path)
    report = write_report(tmp_path / "bare.ncu-rep", ReportSpec([KernelSpec("k()", {"gpu__time_duration.sum": 1e6})]))
    result = run("report", report, "-o", "bare.png")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: no kernel can be placed in a roofline")
    assert "\nhint: collect them with `ncu --set full`" in result.stderr
    assert not Path("bare.png").exists()


def test_unread_reports_are_in_the_markdown_and_set_the_exit_code(report: Path) -> None:
    """A damaged report among good ones is named in the file; the file is written, and the exit code is 1."""
    Path("bad.ncu-rep").write_bytes(b"no report")
    result = run("report", report, "bad.ncu-rep", "-o", "a.md")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == "wrote a.md"
    assert "1 of 2 reports could not be read: `bad.ncu-rep`" in Path("a.md").read_text(encoding="utf-8")


def test_a_store_gives_the_same_markdown_and_keeps_its_rooflines(report: Path) -> None:
    """`report --store` writes all formats, and writes the table `roofline` to the store."""
    assert run("ingest", report, "--store", "store").exit_code == 0
    assert run("report", "--store", "store", "-o", "stored.md").exit_code == 0
    assert run("report", report, "-o", "direct.md").exit_code == 0
    assert Path("stored.md").read_text(encoding="utf-8") == Path("direct.md").read_text(encoding="utf-8")
    assert (Path("store") / "roofline").is_dir()


def test_columns_are_chosen_by_name(report: Path) -> None:
    """`--columns` shows any quantity with label and unit; unknown names and other formats are wrong usage."""
    shown = run("analyze", report, "--columns", "dram_share,verdict_bound,kernel_time_ns").stdout.splitlines()
    assert shown[1].split()[0] == "kernel"
    assert all(label in shown[1] for label in ("DRAM busy", "Verdict", "Time"))
    assert run("analyze", report, "--columns", "dram_sharp").stderr.startswith(
        "error: no column is called `dram_sharp`"
    )
    result = run("analyze", report, "--columns", "dram_share", "--format", "json")
    assert (result.exit_code, result.stderr.splitlines()[0]) == (
        2,
        "error: --columns works with the table, not with --format json",
    )
