"""What a report says of the processes that were profiled."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from rooflens.ingest.messages.messages import text_of

SYNTHETIC_PROVIDER = "rooflens synthetic report"
"""Provider of the version entry that a generated report has in addition to Nsight Compute's own."""

_NCU_PROVIDER = "Nsight Compute Target"
_LATEST_UNIX_S = 2**33
"""In the year 2242: a later time is damage; Python's dates end with the year 9999."""
_MODES = ("clock_control", "cache_control", "replay_mode")


class Session(Struct, frozen=True):
    """What a report says of one profiled process.

    Attributes:
        ncu_version: Version of the ncu that wrote the report, without its build number.
        host: Name of the machine that ran the process.
        clock_control: ncu's clock mode if its settings or its command line state it, in lower case.
        cache_control: The same for its cache mode, which only a command line states.
        replay_mode: The same for its replay mode.
        created_unix_s: When ncu made the report, in seconds since 1970.
        notes: Impossible values that were left out, one sentence each.
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
        """Name of the program without folders, and the process ID: `python 4711`; None without an ID."""
        name = re.split(r"[/\\]", self.process_name or "")[-1]
        return f"{name} {self.process_id}".lstrip() if self.process_id else None


def is_synthetic(headers: Sequence[Any]) -> bool:
    """Return whether one of the block headers says that a generator wrote the report."""
    return any(_text(header.SessionDetails.VersionInfo.Provider) == SYNTHETIC_PROVIDER for header in headers)


def gather_sessions(headers: Sequence[Any]) -> tuple[Session, ...]:
    """Gather each process's entries, which the report spreads over many blocks."""
    facts: dict[int, dict[str, Any]] = {}
    for header in headers:
        process_id = header.Process.ProcessID or header.SessionDetails.ProcessID
        known = facts.setdefault(process_id, {})
        for name, value in _facts(header.Process, header.SessionDetails).items():
            if value:
                known.setdefault(name, value)
    return tuple(_session(process_id, known) for process_id, known in facts.items())


def _facts(process: Any, details: Any) -> dict[str, Any]:
    """Return what a block says of its process, and one entry of session details; what is empty is not known."""
    version = details.VersionInfo
    is_ncu = _text(version.Provider) == _NCU_PROVIDER
    return {
        "process_name": _text(process.ProcessName),
        "address": _text(process.Hostname),
        "created_unix_s": details.CreationTime,
        "host": _text(details.TargetSystemInfo.ComputerName),
        "ncu_version": (_text(version.Version) or "").partition(" ")[0] if is_ncu else None,
        "command_line": _text(details.ProfilerCmdline),
        "clock_control": _text(details.ProfilerSettings.ClockControlMode),
        "replay_mode": _text(details.ProfilerSettings.ReplayMode),
    }


def _session(process_id: int, known: dict[str, Any]) -> Session:
    """Make a session from its facts; modes that the settings lack are taken from ncu's command line."""
    command_line = known.get("command_line") or ""
    options = {name: known.get(name) or _option(command_line, name) for name in _MODES}
    created_unix_s = known.get("created_unix_s")
    is_odd = created_unix_s is not None and not 0 < created_unix_s <= _LATEST_UNIX_S
    return Session(
        process_id=process_id,
        process_name=known.get("process_name"),
        # If ncu names no machine, there is still the address it connected to: 127.0.0.1 for local runs.
        host=known.get("host") or known.get("address"),
        ncu_version=known.get("ncu_version"),
        command_line=known.get("command_line"),
        created_unix_s=None if is_odd else created_unix_s,
        notes=(f"the report's date is left out: {created_unix_s} s after 1970 is impossible",) if is_odd else (),
        **{name: mode.lower() if mode else None for name, mode in options.items()},
    )


def _option(command_line: str, name: str) -> str | None:
    """Return the value of an option in ncu's command line; `name` is written with underscores."""
    found = re.search(rf"(?:^|\s)--{name.replace('_', '-')}[ =]+([a-z-]+)", command_line)
    return found[1] if found else None


def _text(encoded: bytes) -> str | None:
    """Decode text of unknown code page; Windows ends process names with a NUL."""
    return text_of(encoded).strip("\0 ") or None
