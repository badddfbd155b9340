"""Show the modules of rooflens a Python of Windows: a folder for PYTHONPATH, whose processes inherit it.

Only the imports of our own modules are changed. The standard library and packages have their own code for Windows,
which cannot run here, so they keep the modules of this system.
"""

from __future__ import annotations

import builtins
import os
import pathlib
import signal
import sys
from types import ModuleType
from typing import Any

MISSING = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
"""Modules that Windows does not have."""

LACKS = {
    "os": """
        O_ASYNC O_CLOEXEC O_DIRECT O_DIRECTORY O_DSYNC O_NDELAY O_NOATIME O_NOCTTY O_NOFOLLOW O_NONBLOCK
        O_PATH O_RSYNC O_SYNC O_TMPFILE RTLD_LAZY RTLD_NOW WEXITSTATUS WIFEXITED WIFSIGNALED WNOHANG chown
        chroot confstr fchdir fchmod fchown fork forkpty fstatvfs getegid geteuid getgid getgroups getloadavg
        getpgid getpgrp getpriority getresuid getsid getuid killpg lchown lockf mkfifo mknod nice openpty
        pipe2 posix_fadvise posix_fallocate posix_spawn posix_spawnp pread preadv pwrite pwritev readv
        register_at_fork sched_getaffinity sched_setaffinity sched_yield sendfile setegid seteuid setgid
        setpgid setpgrp setpriority setsid setuid statvfs sync sysconf tcgetpgrp tcsetpgrp ttyname uname wait
        wait3 wait4 waitid writev
    """,
    "signal": """
        ITIMER_REAL SIGALRM SIGBUS SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGTTIN
        SIGTTOU SIGUSR1 SIGUSR2 SIG_BLOCK alarm getitimer pause pthread_kill pthread_sigmask setitimer
        siginterrupt sigpending sigtimedwait sigwait sigwaitinfo
    """,
    "select": """
        epoll kqueue poll
    """,
    "socket": """
        AF_UNIX socketpair
    """,
    "time": """
        CLOCK_MONOTONIC CLOCK_REALTIME clock_gettime pthread_getcpuclockid tzset
    """,
}
"""Names that Python's own modules do not have on Windows."""


class _OfWindows(ModuleType):
    """A module as on Windows; attributes are set on the module that it replaces."""

    def __init__(self, module: ModuleType, lacks: str, **others: object) -> None:
        super().__init__(module.__name__)
        self.__dict__.update(_module=module, _lacks=set(lacks.split()), _others=others)

    def __getattr__(self, name: str) -> Any:
        if name in self._lacks:
            message = f"module '{self.__name__}' has no attribute '{name}', on Windows"
            raise AttributeError(message)
        return self._others[name] if name in self._others else getattr(self._module, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._module, name, value)


def _no_link(*_: object, **__: object) -> None:
    raise OSError(22, "A required privilege is not held by the client")


def _kill(pid: int, number: int) -> None:
    message = f"os.kill({pid}, {number}) ends a process on Windows, whatever the number"
    raise AssertionError(message)


STANDS_IN = {
    "os": _OfWindows(os, LACKS["os"], name="nt", symlink=_no_link, kill=_kill, getppid=lambda: 0),
    "signal": _OfWindows(signal, LACKS["signal"]),
    "sys": _OfWindows(sys, "", platform="win32"),
}
_import = builtins.__import__


def _import_of_windows(
    name: str,
    globals: dict[str, Any] | None = None,  # noqa: A002 - the names are Python's
    locals: Any = None,  # noqa: A002 - as above
    fromlist: Any = (),
    level: int = 0,
) -> ModuleType:
    module = _import(name, globals, locals, fromlist, level)
    if level or not str((globals or {}).get("__name__", "")).startswith("rooflens"):
        return module
    first = name.partition(".")[0]
    if first in MISSING:
        message = f"No module named '{name}'"
        raise ModuleNotFoundError(message, name=name)
    if name in LACKS and name not in STANDS_IN:
        STANDS_IN[name] = _OfWindows(module, LACKS[name])
    return STANDS_IN.get(name, module)


builtins.__import__ = _import_of_windows  # type: ignore[assignment]
pathlib.Path.symlink_to = _no_link  # type: ignore[method-assign, assignment]
pathlib.Path.hardlink_to = _no_link  # type: ignore[method-assign, assignment]
