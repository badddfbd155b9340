"""Command lines of `torchrun`: split, and rebuilt so that each rank has its own ncu."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rooflens.collect.ranks import (
    NO_COMMUNICATION,
    Launcher,
    expanded,
    parse_ranks,
    rank_argv,
    reports_of,
    split_launcher,
)
from rooflens.errors import UsageError

PYTHON = (sys.executable, "-u")


@pytest.mark.parametrize(
    ("command", "head", "program"),
    [
        ("torchrun --nproc-per-node 2 t.py --lr 1", "torchrun --nproc-per-node 2", (*PYTHON, "t.py", "--lr", "1")),
        ("/x/torchrun --standalone --nproc_per_node=2 t.py -m", "/x/torchrun --standalone --nproc_per_node=2",
         (*PYTHON, "t.py", "-m")),
        ("torchrun --nnodes 1 -m pkg.train a", "torchrun --nnodes 1", (*PYTHON, "-m", "pkg.train", "a")),
        ("torchrun --no_python --nproc-per-node 2 ./a.out x", "torchrun --nproc-per-node 2", ("./a.out", "x")),
        ("py3 -m torch.distributed.run --nproc-per-node 2 t.py", "py3 -m torch.distributed.run --nproc-per-node 2",
         ("py3", "-u", "t.py")),
    ],
)  # fmt: skip
def test_a_launcher_is_taken_apart(command: str, head: str, program: tuple[str, ...]) -> None:
    """Options of torchrun are kept, except those about starting the script; the script's options stay its own."""
    assert split_launcher(command.split()) == Launcher((*head.split(), "--no-python"), program)


@pytest.mark.parametrize(
    "command", ["python train.py", "torchrun --nproc-per-node 2", "torchrun --run-path t.py", "", "x"]
)
def test_what_is_no_launcher_stays_whole(command: str) -> None:
    """A plain program, a launcher without a script, and one that runs the script in its process are not split."""
    assert split_launcher(command.split()) is None


def test_some_ranks_run_the_program_as_it_is() -> None:
    """For unselected ranks the shell in between drops the profiler."""
    launcher = Launcher(("torchrun", "--no-python"), ("echo", "program"))
    assert rank_argv(launcher, ("echo", "ncu")) == ("torchrun", "--no-python", "echo", "ncu", "echo", "program")
    argv = rank_argv(launcher, ("echo", "ncu"), (1, 12))[2:]
    said = {}
    for rank in ("0", "1", "2", "12"):
        environment = {"RANK": rank, "PATH": "/bin:/usr/bin"}
        said[rank] = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)  # noqa: S603 - ours
    assert {rank: done.stdout.strip() for rank, done in said.items()} == {
        "0": "program", "1": "ncu echo program", "2": "program", "12": "ncu echo program",
    }  # fmt: skip


def test_ranks_are_numbers_or_all() -> None:
    """`0,1` is accepted in any order and with repetition; anything else is wrong usage."""
    assert (parse_ranks("all"), parse_ranks("3,0,3")) == (None, (0, 3))
    for wrong in ("", "first", "-1", "0,"):
        with pytest.raises(UsageError, match="--ranks cannot be"):
            parse_ranks(wrong)


def test_names_of_reports_hold_variables(tmp_path: Path) -> None:
    """`%q{RANK}` is replaced like in ncu; an unset variable is wrong usage that names what launchers set."""
    assert expanded(Path("x.%q{RANK}.ncu-rep"), {"RANK": "3"}) == Path("x.3.ncu-rep")
    with pytest.raises(UsageError, match="the environment variable RANK, which"):
        expanded(Path("x.%q{RANK}.ncu-rep"), {})
    for name in ("t.rank10.ncu-rep", "t.rank9.ncu-repz", "t.rank9.ncu-rep.incomplete", "t.rank.ncu-rep", "t.ncu-rep"):
        (tmp_path / name).touch()
    assert [path.name for path in reports_of(tmp_path / "t.rank%q{RANK}.ncu-rep")] == [
        "t.rank9.ncu-repz",
        "t.rank10.ncu-rep",
    ]


def test_kernels_that_wait_for_other_ranks_are_left_out() -> None:
    """The filter matches kernels of NCCL, NVSHMEM and one-launch all-reduces, but no others with such words."""
    expression = NO_COMMUNICATION.removeprefix("regex:")
    waits = ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "nvshmemi_barrier", "cross_device_reduce_1stage")
    others = ("block_all_reduce_sum", "my_nccl_free_kernel", "ampere_sgemm_128x64", "reduce_kernel")
    assert [name for name in waits if re.search(expression, name)] == []
    assert [name for name in others if not re.search(expression, name)] == []
