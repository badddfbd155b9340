"""`rooflens profile -- torchrun ...`: a report per rank, one page for all."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support import fake_ncu, fake_torchrun

from rooflens.cli.group import main
from rooflens.collect.ranks import NO_COMMUNICATION
from rooflens.ingest.reports.unprofiled import read_unprofiled

COMMAND = ("--", "torchrun", "--nproc-per-node", "2", "train.py", "--lr", "1")


@pytest.fixture
def ranks_box(gpu_box: Path, fixtures: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Add a torchrun, and a script that logs its rank, to the machine with a GPU; return the folder."""
    fake_torchrun.install(gpu_box.parent / "bin")
    kept = [fixtures / "synthetic" / f"verdict_{name}.synthetic.ncu-rep" for name in ("memory_dram", "memory_l2")]
    monkeypatch.setenv(fake_ncu.REPORT, ":".join(map(str, kept)))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH")))))  # fmt: skip # noqa: E501
    Path("train.py").write_text("import os; open('ran', 'a').write(os.environ['RANK'])\n")
    return gpu_box


def run(*arguments: str) -> Result:
    """Run the command line; an exception that is no exit fails the test with its traceback."""
    result = CliRunner().invoke(main, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_each_rank_has_a_report_and_all_have_one_page(ranks_box: Path) -> None:
    """The program runs once without ncu; then torchrun starts ncu in each rank, and the page shows all reports."""
    result = run("profile", *COMMAND)
    assert result.exit_code == 0, result.stderr
    out = ranks_box / "out"
    expected = {"train.html", *(f"train.rank{at}.{end}" for at in (0, 1) for end in ("ncu-rep", "unprofiled.json"))}
    assert {path.name for path in out.iterdir()} == expected
    page = (out / "train.html").read_text()
    assert ["train.rank0" in page, "train.rank1" in page] == [True, True]
    assert Path("ran").read_text() == "0101"
    kept = read_unprofiled(out / "train.rank1.ncu-rep")
    assert kept is not None
    assert kept.source == "wall"
    assert "note: kernels that wait for other ranks (NCCL, NVSHMEM) run unprofiled" in result.stderr
    assert "profiled 2 ranks, one report each" in result.stderr
    refused = run("profile", *COMMAND)
    assert (refused.exit_code, "--force" in refused.stderr) == (2, True)


def test_a_dry_run_prints_ncu_inside_torchrun(ranks_box: Path) -> None:
    """A dry run prints one line that works alone: ncu puts the rank into the name and leaves out waiting kernels."""
    line = run("collect", "--dry-run", "--detail", "quick", *COMMAND).stdout
    argv = shlex.split(line)
    assert argv[:5] == ["torchrun", "--nproc-per-node", "2", "--no-python", str(ranks_box.parent / "bin" / "ncu")]
    assert argv[argv.index("--export") + 1] == "out/train.rank%q{RANK}.ncu-rep"
    assert argv[argv.index("--kernel-name") + 1] == NO_COMMUNICATION
    assert argv[-5:] == [sys.executable, "-u", "train.py", "--lr", "1"]
    assert "nccl" not in run("collect", "--dry-run", "--kernel", "gemm", *COMMAND).stdout
    assert not (ranks_box / "out").exists()


def test_one_rank_can_be_chosen(ranks_box: Path) -> None:
    """Unselected ranks run unprofiled; our options reach the selected rank's collection."""
    options = ("--ranks", "1", "--no-unprofiled", "--kernel", "regex:a b", "--ncu-args", "--nvtx-exclude 'c d'")
    result = run("collect", *options, *COMMAND)
    assert result.exit_code == 0, result.stderr
    assert [path.name for path in (ranks_box / "out").iterdir()] == ["train.rank1.ncu-rep"]
    assert Path("ran").read_text() == "01"
    refused = run("collect", "--ranks", "1", "--", "/bin/true")
    assert (refused.exit_code, "--ranks is for programs that `torchrun` starts" in refused.stderr) == (2, True)


def test_a_rank_that_fails_says_why(ranks_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Error and hint come from the failed rank, not from torchrun; its log is kept beside its report."""
    monkeypatch.setenv(fake_ncu.BEHAVIOUR, "permission")
    result = run("profile", *COMMAND)
    assert result.exit_code == 3
    assert "error: you may not read this GPU's counters" in result.stderr
    assert not Path("ran").exists()
    result = run("profile", "--no-trial", *COMMAND)
    assert result.exit_code == 1
    assert "error: a rank failed under ncu: you may not read this GPU's counters" in result.stderr
    assert "NVreg_RestrictProfilingToAdminUsers=0" in result.stderr
    assert (ranks_box / "out" / "train.rank0.ncu.log").exists()


def test_a_report_is_named_after_a_variable(ranks_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under `mpirun` or `srun`, `-o` with `%q{}` names each rank's report."""
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "7")
    assert run("collect", "-o", "x.%q{OMPI_COMM_WORLD_RANK}.ncu-rep", "--", "/bin/true").exit_code == 0
    assert (ranks_box / "x.7.ncu-rep").exists()


STARTERS = {
    "mpirun": ({"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1"}, "mpirun", "OMPI_COMM_WORLD_RANK"),
    "mvapich": ({"MV2_COMM_WORLD_SIZE": "2", "MV2_COMM_WORLD_RANK": "1"}, "mpirun", "MV2_COMM_WORLD_RANK"),
    "mpich": ({"PMI_SIZE": "2", "PMI_RANK": "1"}, "mpirun", "PMI_RANK"),
    "srun": ({"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1"}, "srun", "SLURM_PROCID"),
    "torchrun": ({"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1"}, "torchrun --no-python", "RANK"),
}
ALONE = {
    "one rank": {"OMPI_COMM_WORLD_SIZE": "1", "OMPI_COMM_WORLD_RANK": "0"},
    "a batch script": {"SLURM_NTASKS": "2", "SLURM_PROCID": "0"},
    "a machine of a cluster": {"WORLD_SIZE": "2", "RANK": "1"},
    "nonsense": {"PMI_SIZE": "many", "PMI_RANK": "1"},
}


@pytest.mark.parametrize("starter", STARTERS)
def test_a_rank_without_a_name_of_its_own_is_refused(
    ranks_box: Path, monkeypatch: pytest.MonkeyPatch, starter: str
) -> None:
    """If all ranks would write the same report, the command is refused with a line that gives each its own name."""
    variables, program, variable = STARTERS[starter]
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    refused = run("collect", "--kernel", "a b", "-o", "x.ncu-rep", "--", "/bin/true", "--lr", "1 e")
    assert refused.exit_code == 2
    assert f"one of several ranks ({variable} is 1), and all would write `x.ncu-rep`" in refused.stderr
    own = f"'x.%q{{{variable}}}.ncu-rep'"
    line = f"{program} ... rooflens collect --kernel 'a b' -o {own} -- /bin/true --lr '1 e'`"
    assert line in refused.stderr
    refused = run("profile", "--output-folder", "pages", "--", "/bin/true")
    assert refused.exit_code == 2
    assert f"rooflens collect -o 'pages/true.%q{{{variable}}}.ncu-rep' -- /bin/true`" in refused.stderr
    assert "`rooflens report pages/true.*.ncu-rep` then draws one page of all" in refused.stderr
    assert not list(ranks_box.glob("**/*.ncu-rep"))
    for name in (f"x.%q{{{variable}}}.ncu-rep", "x.rank1.ncu-rep", "x_01.ncu-rep"):
        assert run("collect", "-o", name, "--force", "--", "/bin/true").exit_code == 0, name
    assert run("collect", "-o", "x1y.ncu-rep", "--", "/bin/true").exit_code == 2
    assert run("collect", "--dry-run", "-o", "x.ncu-rep", "--", "/bin/true").exit_code == 0


@pytest.mark.parametrize("place", ALONE)
def test_one_process_among_variables_of_ranks_is_not_refused(
    ranks_box: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """The task count of a batch script, and a machine count, do not make a process a rank."""
    for name, value in ALONE[place].items():
        monkeypatch.setenv(name, value)
    assert run("collect", "-o", "x.ncu-rep", "--", "/bin/true").exit_code == 0
    assert (ranks_box / "x.ncu-rep").exists()
