"""Replacement for a GPU machine: ncu, nvcc, nvidia-smi and PyTorch, each with its costs.

The costs are two seconds per start of ncu, 20 ms per pass and kernel, eight seconds per start of PyTorch, three per
program compiled by nvcc, 0.3 per start of such a program; `DAY_SCALE` scales them all. ncu writes reports whose kernels
have the ranges that were open. As `gpu_day.py ncu ...` it acts as ncu.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])] if __name__ == "__main__" else []

from support.fake_ncu import FAILURES, split  # noqa: E402

SCALE, STARTS, REFUSES, LAUNCHES, FIRST_S = "DAY_SCALE", "DAY_STARTS", "DAY_REFUSES", "DAY_LAUNCHES", "DAY_FIRST_S"
"""Factor of all costs; file that gets a line for each start; `counters` or `nvcc`; file that gets a line a kernel; what
the first start of ncu takes longer, in seconds."""
NCU_S, PASS_S, TORCH_S, NVCC_S, PROGRAM_S, CASE_S = 2.0, 0.02, 8.0, 3.0, 0.3, 0.2
PASSES = {"quick": 3, "standard": 6, "deep": 24, "full": 40, "roofline": 8}
"""By the scheduler's count of the hardware's passes, and some more that patch the code."""
KERNEL_BYTES = 60_000
"""What a kernel's samples and tables take in a report, which no gzip makes smaller."""

_NVCC = """#!/bin/sh
if [ "$1" = --version ]; then echo "Cuda compilation tools, release 13.0, V13.0.88"; exit 0; fi
echo nvcc >> "${starts}"
sleep {nvcc_s}
if [ "$DAY_REFUSES" = nvcc ]; then echo "error: no g++ here" >&2; exit 1; fi
while [ $# -gt 1 ]; do if [ "$1" = -o ]; then output=$2; fi; shift; done
cat > "$output" <<'PROGRAM'
#!/bin/sh
case $(basename $0) in
  *calibrate*) echo '{"rates": {}}'; exit 0 ;;
esac
sleep {program_s}
name=$(basename "$0"); name=${name%%-*}
count=1
if [ $name = tiny_launches ]; then count=900; fi
if [ -n "$DAY_LAUNCHES" ]; then
  line="{\\"range\\": \\"$ROOFLENS_CASE\\", \\"name\\": \\"$name\\"}"
  yes "$line" | head -n $count >> "$DAY_LAUNCHES"
fi
echo "{\\"workload\\": \\"$name\\", \\"case\\": \\"${ROOFLENS_CASE#*.}\\", {measured}}"
PROGRAM
chmod +x "$output"
"""

_SMI = """#!/bin/sh
case "$*" in
  *--loop*) while :; do echo now; sleep 2; done ;;
  *) echo "0, GPU-0123, NVIDIA H100 80GB HBM3, 9.0, 580.65.06, Disabled" ;;
esac
"""
_MEASURED = {
    "iterations": 20,
    "launches": 20,
    "wall_ns": 1_000_000,
    "kernel_ns": 990_000,
    "cold_ns": 1_400_000,
    "max_relative_error": 0.0,
    "tolerance": 1e-6,
    "ok": True,
}
_TORCH = '''"""Stands in for PyTorch: slow to import, and it notes what the harness would measure."""
import dataclasses, json, os, sys, time, types
with open(os.environ["DAY_STARTS"], "a") as starts:
    starts.write("torch\\n")
time.sleep({torch_s})
__version__ = "2.11.0+cu130"

class _Anything:
    def __getattr__(self, name): return _Anything()
    def __call__(self, *given, **named): return given[0] if given and callable(given[0]) else _Anything()

def __getattr__(name):
    if name.startswith("__"): raise AttributeError(name)
    return _Anything()

__path__ = []
for name in ("nn", "nn.functional", "nn.attention"):
    module = types.ModuleType(f"torch.{name}"); module.__getattr__ = __getattr__; module.__path__ = []
    sys.modules[module.__name__] = module
nn = sys.modules["torch.nn"]; nn.functional = sys.modules["torch.nn.functional"]

@dataclasses.dataclass
class MeasurePlan:
    device: str
    iterations: int
    profiled: bool
    checked: bool = True
    case_range: str | None = None

@dataclasses.dataclass
class Measurement:
    launches: int | None
    wall_ns: int
    kernel_ns: int | None
    cold_ns: int | None
    max_relative_error: float | None
    tolerance: float
    ok: bool

def measure(program, parameters, dtype, plan):
    time.sleep({case_s})
    for number in range(3):
        if path := os.environ.get("DAY_LAUNCHES"):
            with open(path, "a") as launches:
                launches.write(json.dumps({"range": plan.case_range or "", "name": f"kernel_{number}"}) + "\\n")
    error = 1e-3 if plan.checked else None
    return Measurement(3 * plan.iterations, 1_000_000, 990_000, 1_400_000, error, 1e-2, True)

measuring = types.ModuleType("rooflens.workloads.torch_measure")
measuring.find_device = lambda name, dtype: name
measuring.MeasurePlan, measuring.measure, measuring.WARM_UP_RUNS = MeasurePlan, measure, 3
sys.modules[measuring.__name__] = measuring
'''

_TRITON = "def jit(function): return function\n"
"""Stands in for Triton: its kernels are written down, and never called."""


def install(folder: Path, scale: float, refuses: str = "", program_s: float = PROGRAM_S) -> dict[str, str]:
    """Install the machine in a folder, and return the variables that activate it."""
    programs, packages = folder / "bin", folder / "packages"
    costs = {"nvcc_s": NVCC_S, "program_s": program_s, "torch_s": TORCH_S, "case_s": CASE_S}

    def priced(text: str) -> str:
        measured = json.dumps(_MEASURED)[1:-1].replace(chr(34), chr(92) + chr(34))
        text = text.replace("${starts}", "$DAY_STARTS").replace("{measured}", measured)
        for name, cost_s in costs.items():
            text = text.replace(f"{{{name}}}", f"{cost_s * scale:g}")
        return text

    _program(programs / "nvcc", priced(_NVCC))
    _program(programs / "nvidia-smi", _SMI)
    _program(programs / "ncu", f'#!/bin/sh\nexec "{sys.executable}" "{Path(__file__).resolve()}" "$@"\n')
    for package, text in {"torch": priced(_TORCH), "triton": _TRITON, "triton/language": ""}.items():
        (packages / package).mkdir(parents=True)
        (packages / package / "__init__.py").write_text(text)
    return {
        "PATH": f"{programs}:/usr/bin:/bin",
        "PYTHONPATH": str(packages),
        "XDG_CACHE_HOME": str(folder / "cache"),
        SCALE: str(scale),
        STARTS: str(folder / "starts"),
        REFUSES: refuses,
    }


def _program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


# ---- the ncu --------------------------------------------------------------------------------------------------------


def main(arguments: list[str]) -> int:
    """Act as ncu."""
    scale = float(os.environ[SCALE])
    if arguments == ["--version"]:
        sys.stdout.write(
            "NVIDIA (R) Nsight Compute Command Line Profiler\nVersion 2025.3.1.0 (build 1) (public-release)\n"
        )
        return 0
    if arguments[0].startswith(("--query", "--list", "--help")):
        time.sleep(NCU_S * scale)
        sys.stdout.write("sm__things Counter things\n" if "gb" in arguments[-1] else "")
        return 0
    if not Path(os.environ[STARTS]).exists() or "\nncu " not in "\n" + Path(os.environ[STARTS]).read_text():
        time.sleep(float(os.environ.get(FIRST_S, "0")))
    with Path(os.environ[STARTS]).open("a") as starts:
        starts.write(f"ncu {shlex.join(arguments)}\n")
    time.sleep(NCU_S * scale)
    options, program = split(arguments)
    log = Path(options.get("--log-file", os.devnull))
    if os.environ[REFUSES] == "counters":
        log.write_text(FAILURES["permission"].log)
        return 1
    return _profile(options, program, log, scale)


def _profile(options: dict[str, str], program: list[str], log: Path, scale: float) -> int:
    launches = Path(f"{options.get('--export', os.devnull)}.launches") if "--export" in options else None
    environment = {**os.environ, LAUNCHES: str(launches)} if launches else dict(os.environ)
    status, profiled, passes = 0, [], _passes(options)
    if program[-1].endswith("probe.py"):
        profiled = [{"range": "", "name": "rooflens_probe"}]
    else:
        status = subprocess.run(program, env=environment, check=False).returncode  # noqa: S603 - the program of the test
        if launches is not None and launches.exists():
            profiled = [json.loads(line) for line in launches.read_text().splitlines()]
            launches.unlink()
    if "--kernel-id" in options:
        profiled = list({kernel["name"]: kernel for kernel in profiled}.values())
    if options.get("--graph-profiling") == "graph":
        profiled = profiled[:1]
    profiled = profiled[: int(options.get("--launch-count", len(profiled)))]
    done = []
    with log.open("a") as said:
        try:
            for number, kernel in enumerate(profiled):
                said.write(f'==PROF== Profiling "{kernel["name"]}" - {number}: 0%....50%')
                time.sleep(passes * PASS_S * scale)
                said.write(f"....100% - {passes} passes\n")
                said.flush()
                done.append(kernel)
        except KeyboardInterrupt:
            status = 1
        if "--export" in options:
            Path(options["--export"].replace("%%", "%")).write_bytes(report_of(done, passes))
            said.write(f"==PROF== Report: {options['--export']}\n")
    return status


def _passes(options: dict[str, str]) -> int:
    if "--set" in options:
        return PASSES[options["--set"]]
    if "--section" in options:
        return PASSES["deep"]
    return PASSES["standard" if options.get("--metrics", "").count(",") > 80 else "quick"]


def report_of(kernels: list[dict[str, str]], passes: int) -> bytes:
    """Write a report of kernels within the ranges that were open around them."""
    from msgspec.structs import replace  # noqa: PLC0415
    from support.chips import H200  # noqa: PLC0415 - the other calls of ncu need not wait for these
    from support.fixture_kernels import triad  # noqa: PLC0415
    from support.ncu_rep_writer import NvtxRange, ReportSpec, encode_report  # noqa: PLC0415
    from support.synthetic_kernels import kernel_spec  # noqa: PLC0415

    spec = kernel_spec(triad(H200, elements=1 << 20))
    made = []
    for kernel in kernels:
        names = ("rooflens", kernel["range"]) if kernel["range"] else ()
        ranges = [NvtxRange(name, thread_id=None) for name in names]
        metrics = {
            **spec.metrics,
            "profiler__replayer_passes": passes,
            "rooflens__samples": os.urandom(KERNEL_BYTES // 2).hex(),
        }
        made.append(replace(spec, name=f"{kernel['name']}(float *)", metrics=metrics, ranges=ranges))
    return encode_report(ReportSpec(tuple(made)))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
