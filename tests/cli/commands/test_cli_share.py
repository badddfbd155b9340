"""`rooflens share`: a shared report gives the same answers, and reveals nothing about the machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace
from support.chips import H200
from support.fixture_kernels import triad
from support.loops import for_all
from support.ncu_rep_writer import NvtxRange, ReportSpec, Rule, SessionSpec, write_report
from support.synthetic_kernels import kernel_spec

import rooflens as rl
from rooflens.cli.group import main

PUBLISHED = sorted(path.name for path in (Path(__file__).parents[3] / "fixtures" / "published").glob("*.ncu-rep"))


def run(*arguments: object) -> Result:
    """Run the command line."""
    return CliRunner().invoke(main, list(map(str, arguments)))


def answers(report: Path) -> list[object]:
    """Return each kernel's limiter, gain, limit, findings and hottest lines."""
    return [
        (
            kernel["verdict_bound"],
            kernel["verdict_resource"],
            kernel["verdict_gain_factor"],
            kernel["verdict_limit_factor"],
            [finding.id for finding in kernel.findings],
            [(spot.line, spot.share) for spot in kernel.hotspots()],
        )
        for kernel in rl.open(report)
    ]


@for_all("name", PUBLISHED)
def test_what_is_shared_gives_the_same_answers(
    name: str, fixtures: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With names kept, every column of the summary is equal, except the file's own."""
    file, folder = fixtures / "published" / name, tmp_path_factory.mktemp("share")
    done = run("share", file, "-o", folder / "shared.ncu-rep")
    assert done.exit_code == 0, done.stderr
    assert done.stderr == f"wrote {folder / 'shared.ncu-rep'}\n"
    before, after = rl.open(file), rl.open(folder / "shared.ncu-rep")
    for one, other in zip(before, after, strict=True):
        differing = {column for column in one if one[column] != other[column]}
        failed = {"verdict_sentence"} if one.status == "failed" else set()  # it contains the command line
        assert differing <= {"source", "digest"} | failed, one.name
    assert answers(folder / "shared.ncu-rep") == answers(file)


@pytest.mark.corpus
@pytest.mark.parametrize("name", ["GPU_workshop__MW_Baseline.ncu-rep", "KernelBench__matmul_kernel.ncu-rep"])
def test_an_original_gives_the_same_answers_without_its_code(name: str, corpus: Path, tmp_path: Path) -> None:
    """Facts read from machine code are also read from figures; without names the numbers stay."""
    for options in ((), ("--no-names",)):
        out = tmp_path / f"{len(options)}.ncu-rep"
        assert run("share", corpus / name, "-o", out, *options).exit_code == 0
        assert answers(out) == answers(corpus / name)
    assert {kernel.name for kernel in rl.open(out)} == {f"kernel_{i + 1}" for i in range(len(rl.open(out)))}


def test_nothing_of_the_machine_is_shared(tmp_path: Path) -> None:
    """Host, user, folder, command and sentences are removed; with --no-names also kernel, range and program names."""
    spec = replace(
        kernel_spec(triad(H200)),
        name="void secret_kernel<Layout>(float*)",
        ranges=[NvtxRange("secret_range", "secret_domain")],
        rules=[Rule("SOLBottleneck", "SpeedOfLight", "title", "secret_sentence in /home/secret_user/a.cu")],
    )
    session = SessionSpec(
        process_name="/home/secret_user/secret_program",
        host="secret_host",
        command_line="ncu --set full /home/secret_user/secret_program --token secret_token",
    )
    file = write_report(tmp_path / "a.ncu-rep", ReportSpec([spec], session))
    secrets = re.compile(rb"secret_(?:kernel|range|domain|program|host|user|token|sentence)")
    assert len(set(secrets.findall(file.read_bytes()))) == 8
    for options, left in (
        ((), {b"secret_kernel", b"secret_range", b"secret_domain", b"secret_program"}),
        (("--no-names",), set()),
    ):
        assert run("share", file, "-o", tmp_path / "out.ncu-rep", "--force", *options).exit_code == 0
        assert set(secrets.findall((tmp_path / "out.ncu-rep").read_bytes())) == left
    assert answers(tmp_path / "out.ncu-rep") == answers(file)


def test_what_cannot_be_written_is_refused(tmp_path: Path, fixtures: Path) -> None:
    """Another extension, the report itself, an existing file and a file that is no report are refused."""
    file = tmp_path / "a.ncu-rep"
    file.write_bytes((fixtures / "synthetic" / "attention.synthetic.ncu-rep").read_bytes())
    (tmp_path / "other.ncu-rep").write_text("mine")
    (tmp_path / "cut.ncu-rep").write_text("cut off")
    for given, output, code, words in (
        (file, "out.html", 2, "does not have a report's name"),
        (file, "a.ncu-rep", 2, "the output is the report itself"),
        (file, "other.ncu-rep", 2, "exists"),
        (tmp_path / "none.ncu-rep", "out.ncu-rep", 1, "is not a file"),
        (tmp_path / "cut.ncu-rep", "out.ncu-rep", 1, "error: "),
    ):
        done = run("share", given, "-o", tmp_path / output)
        assert (done.exit_code, words in done.stderr) == (code, True), done.stderr
    assert (tmp_path / "other.ncu-rep").read_text() == "mine"


def test_an_export_is_told_to_be_text(tmp_path: Path) -> None:
    """A text printed by ncu is refused, with a hint which columns and lines to remove."""
    export = tmp_path / "export.csv"
    export.write_text('"ID","Kernel Name","gpu__time_duration.sum"\n"","","ns"\n"0","k","1000"\n', encoding="utf-8")
    refused = run("share", export, "-o", tmp_path / "shared.ncu-rep")
    assert refused.exit_code == 1
    assert "is an export, of which no report can be made" in refused.stderr
    assert "Host Name" in refused.stderr
