"""Where this process runs, as far as files and variables tell: a container, a pod, a job, a part of a GPU, WSL.

Each decides who may open the GPU's counters, and how. Standard library only: it runs on bare GPU machines.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Surrounding(NamedTuple):
    """A kind of place in which programs run.

    Attributes:
        name: What it is called.
        fix: How its user gets at counters that are closed.
        variables: Each is set in it.
        files: Each lies in it, below the root.
        pattern: Expression that one of `texts` matches in it.
        texts: Files below the root.
        values: Expression that the value of one of `variables` matches.
    """

    name: str
    fix: str
    variables: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    pattern: str = ""
    texts: tuple[str, ...] = ()
    values: str = ""


_HOST = "whoever runs the host opens counters: `NVreg_RestrictProfilingToAdminUsers=0`"
_TRACE = "a trace of torch.profiler needs no counters: `rooflens analyze trace.json.gz`"
_OF_PROCESS = ("proc/1/cgroup", "proc/self/cgroup", "proc/self/mountinfo")

SURROUNDINGS = (
    Surrounding(
        "a Docker container",
        "start it with `docker run --gpus all --cap-add SYS_ADMIN ...`",
        files=(".dockerenv",),
        pattern=r"/docker[/-][0-9a-f]{12}|/var/lib/docker/containers/",
        texts=_OF_PROCESS,
    ),
    Surrounding(
        "a Podman container",
        "start it with `podman run --device nvidia.com/gpu=all --cap-add SYS_ADMIN ...`",
        files=("run/.containerenv",),
        pattern=r"/libpod-",
        texts=_OF_PROCESS,
    ),
    Surrounding(
        "an Apptainer container",
        f"start it with `apptainer exec --nv ...`; inside you have the rights that you have outside, so {_HOST}",
        variables=("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"),
        files=(".singularity.d",),
    ),
    Surrounding(
        "a Kubernetes pod",
        "give the container `securityContext: {capabilities: {add: [SYS_ADMIN]}}`",
        variables=("KUBERNETES_SERVICE_HOST",),
        files=("var/run/secrets/kubernetes.io",),
        pattern=r"/kubepods[./]",
        texts=_OF_PROCESS,
    ),
    Surrounding(
        "a step of a Slurm job",
        f"{_HOST}; where DCGM watches the nodes, `dcgmi profile --pause` frees them",
        variables=("SLURM_STEP_ID",),
    ),
    Surrounding(
        "a Slurm job",
        f"{_HOST}; `srun` starts the program on the node with the GPU",
        variables=("SLURM_JOB_ID",),
    ),
    Surrounding("Google Colab", f"Google decides who reads counters; {_TRACE}", variables=("COLAB_RELEASE_TAG",)),
    Surrounding("Kaggle", f"Kaggle decides who reads counters; {_TRACE}", variables=("KAGGLE_KERNEL_RUN_TYPE",)),
    Surrounding("Modal", f"Modal decides who reads counters; {_TRACE}", variables=("MODAL_TASK_ID",)),
    Surrounding(
        "WSL",
        "on Windows, let all users access counters: NVIDIA Control Panel, Developer, Manage GPU Performance Counters",
        variables=("WSL_DISTRO_NAME",),
        pattern=r"(?i)microsoft",
        texts=("proc/sys/kernel/osrelease",),
    ),
    Surrounding(
        "a MIG instance of a GPU",
        "counters that instances share cannot be read in it: collect on a whole GPU",
        variables=("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"),
        values=r"\bMIG-",
    ),
)
"""Whatever may lie within another stands before it: a step is a part of a job."""

_LARGEST_TEXT = 1 << 16
_WITHIN = {"a step of a Slurm job": "a Slurm job"}


def surroundings(root: Path, environment: Mapping[str, str]) -> tuple[Surrounding, ...]:
    """Return the places in which this process runs; empty if nothing tells of any.

    Args:
        root: Folder with `/proc` and the files of containers; tests use their own.
        environment: The variables.
    """
    here = [one for one in SURROUNDINGS if _is_here(one, root, environment)]
    outer = {_WITHIN.get(one.name) for one in here}
    return tuple(one for one in here if one.name not in outer)


def _is_here(place: Surrounding, root: Path, environment: Mapping[str, str]) -> bool:
    set_here = [environment[name] for name in place.variables if environment.get(name)]
    if any(re.search(place.values, value) for value in set_here) or any((root / name).exists() for name in place.files):
        return True
    return bool(place.pattern) and any(re.search(place.pattern, _file_head(root / name)) for name in place.texts)


def _file_head(file: Path) -> str:
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            return opened.read(_LARGEST_TEXT)
    except OSError:
        return ""
