"""What a report says about the profiled processes, and about the NVTX ranges around a launch.

A report stores the whole NVTX state of each result: push/pop ranges as a stack per thread and domain, start/end ranges
as a set per domain, and for every range the last CUDA call before it began. These calls order ranges across domains and
kinds. Standard library only, except for decoding: reports are split where little else is installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any

from rooflens.ingest.messages.messages import decode, text_of

SYNTHETIC_PROVIDER = "rooflens synthetic report"
"""Provider of the version entry that a generated report has besides Nsight Compute's own."""

_NCU_PROVIDER = "Nsight Compute Target"
_LATEST_UNIX_S = 2**33
"""The year 2242: a later time is damage; Python's dates end with the year 9999."""
_SEPARATOR = "/"
_MODES = ("clock_control", "cache_control", "replay_mode")


@dataclass(frozen=True, slots=True)
class Session:
    """What a report says about one profiled process.

    Attributes:
        ncu_version: Version of the ncu that wrote the report, without its build number.
        host: Name of the machine that ran the process.
        clock_control: ncu's clock mode in lower case, if settings or command line state it.
        cache_control: Likewise ncu's cache mode, which only a command line states.
        replay_mode: Likewise ncu's replay mode.
        created_unix_s: When ncu made the report, in seconds since 1970.
        notes: Impossible values that were left out, a sentence each.
    """

    process_id: int
    process_name: str | None = None
    host: str | None = None
    ncu_version: str | None = None
    command_line: str | None = None
    clock_control: str | None = None
    cache_control: str | None = None
    replay_mode: str | None = None
    created_unix_s: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def process_label(self) -> str | None:
        """Program name without folders, and process ID: `python 4711`; None without an ID."""
        name = re.split(r"[/\\]", self.process_name or "")[-1]
        return f"{name} {self.process_id}".lstrip() if self.process_id else None


def is_synthetic(headers: Sequence[Any]) -> bool:
    """Return whether a block header says that a generator wrote the report."""
    return any(_decoded_text(header.SessionDetails.VersionInfo.Provider) == SYNTHETIC_PROVIDER for header in headers)


def gather_sessions(headers: Sequence[Any]) -> tuple[Session, ...]:
    """Collect each process's facts, which the report spreads over many blocks."""
    facts: dict[int, dict[str, Any]] = {}
    for header in headers:
        process_id = header.Process.ProcessID or header.SessionDetails.ProcessID
        known = facts.setdefault(process_id, {})
        for name, value in _process_facts(header.Process, header.SessionDetails).items():
            if value:
                known.setdefault(name, value)
    return tuple(_session(process_id, known) for process_id, known in facts.items())


def _process_facts(process: Any, details: Any) -> dict[str, Any]:
    """Return what a block and one entry of session details say about a process; empty values are unknown."""
    version = details.VersionInfo
    is_ncu = _decoded_text(version.Provider) == _NCU_PROVIDER
    return {
        "process_name": _decoded_text(process.ProcessName),
        "address": _decoded_text(process.Hostname),
        "created_unix_s": details.CreationTime,
        "host": _decoded_text(details.TargetSystemInfo.ComputerName),
        "ncu_version": (_decoded_text(version.Version) or "").partition(" ")[0] if is_ncu else None,
        "command_line": _decoded_text(details.ProfilerCmdline),
        "clock_control": _decoded_text(details.ProfilerSettings.ClockControlMode),
        "replay_mode": _decoded_text(details.ProfilerSettings.ReplayMode),
    }


def _session(process_id: int, facts: dict[str, Any]) -> Session:
    """Make a session from its facts; modes missing from the settings come from ncu's command line."""
    command_line = facts.get("command_line") or ""
    options = {name: facts.get(name) or _option(command_line, name) for name in _MODES}
    created_unix_s = facts.get("created_unix_s")
    is_odd = created_unix_s is not None and not 0 < created_unix_s <= _LATEST_UNIX_S
    return Session(
        process_id=process_id,
        process_name=facts.get("process_name"),
        # If ncu does not name the machine, use the address that it connected to: 127.0.0.1 for local runs.
        host=facts.get("host") or facts.get("address"),
        ncu_version=facts.get("ncu_version"),
        command_line=facts.get("command_line"),
        created_unix_s=None if is_odd else created_unix_s,
        notes=(f"the report's date is left out: {created_unix_s} s after 1970 is impossible",) if is_odd else (),
        **{name: mode.lower() if mode else None for name, mode in options.items()},
    )


def _option(command_line: str, name: str) -> str | None:
    """Return the value of an option in ncu's command line; `name` has underscores."""
    found = re.search(rf"(?:^|\s)--{name.replace('_', '-')}[ =]+([a-z-]+)", command_line)
    return found[1] if found else None


def _decoded_text(encoded: bytes) -> str | None:
    """Decode text of an unknown code page; Windows ends process names with a NUL."""
    return text_of(encoded).strip("\0 ") or None


@lru_cache(maxsize=1024)
def range_path(state: bytes, thread_id: int) -> str | None:
    """Join the names of the open ranges, outermost first: `train/step/forward`, `nccl:allreduce`.

    Names in other domains than the default are prefixed by their domain. Start/end ranges hold for every thread,
    push/pop ranges for the thread that opened them.

    Args:
        state: Encoded NvtxState, which kernels of a range share.
        thread_id: The launching thread.

    Returns:
        None if no range was open, or the state cannot be decoded.
    """
    decoded = decode("NvtxState", state) if state else None
    if decoded is None:
        return None
    domains = {domain.Id: text_of(domain.Name) for domain in decoded.Domains}
    labels = []
    for domain_id, name in open_ranges(decoded, thread_id):
        is_default = domain_id == decoded.DefaultDomain
        if name:
            domain = "" if is_default else f"{domains.get(domain_id) or domain_id}:"
            labels.append(f"{domain}{text_of(name)}")
    return _SEPARATOR.join(labels) or None


def open_ranges(state: Any, thread_id: int) -> list[tuple[int, bytes]]:
    """List domain and name of each range that is open around a launch, outermost first.

    Args:
        state: A decoded NvtxState.
        thread_id: The launching thread.
    """
    opened = sorted(_open_ranges(state, thread_id), key=lambda found: found[0])
    return [(domain_id, name) for _, domain_id, name in opened]


def _open_ranges(state: Any, thread_id: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield last call, domain and name of every range; of equal calls the outer range first."""
    for domain in state.StartEndDomains:
        for found in sorted(domain.Ranges, key=lambda opened: opened.Id):
            yield found.LastApiCallId, domain.Id, found.Name
    for thread in state.Threads:
        if thread_id == thread.TID:
            for domain in thread.PushPopDomains:
                # A stack is in order whatever its calls say: versions without calls store zeros.
                calls = accumulate((found.LastApiCallId for found in domain.Stack), max)
                for call, found in zip(calls, domain.Stack, strict=True):
                    yield call, domain.Id, found.Name
