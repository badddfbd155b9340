"""Profile a part of the running program by running it again under ncu, up to the end of that part.

A running process cannot be profiled, so a child runs the same command line. Like its parent, it counts the parts to
profile, tells ncu where the wanted part begins and ends (`marking`), and stops after it. Parts before that are profiled
already, and the child is given their reports.

Not yet run on a GPU: tested with a stand-in for ncu.
"""

from __future__ import annotations

import atexit
import inspect
import itertools
import json
import os
import shutil
import sys
import tempfile
from functools import update_wrapper
from pathlib import Path
from types import MethodType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeVar, overload

from rooflens.api import notebook
from rooflens.errors import UsageError
from rooflens.model.counters.metric import DETAILS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rooflens.api.report import Report
    from rooflens.model.counters.metric import Detail

P = ParamSpec("P")
R = TypeVar("R")

WANTED = "ROOFLENS_PROFILED_PART"
"""Environment variable of a child: the number of the part to profile, and the reports of earlier parts."""

_numbers = itertools.count()
_reports: list[str] = []


class Profile:
    """A profiled part of a program: the result of `with rooflens.profile() as profiled`, with its `report`.

    >>> import rooflens as rl
    >>> with rl.profile(tier="quick", output="part.ncu-rep") as profiled:
    ...     pass
    >>> profiled.report[0].verdict.bound
    'compute'
    """

    def __init__(self, tier: Detail, output: Path | None, ncu: str | None, timeout_s: float | None) -> None:
        self._tier = tier
        self._output = output
        self._ncu = ncu
        self._timeout_s = timeout_s
        self._number = -1
        self._place: str | None = None
        self._report: Report | None = None
        self._warnings: tuple[str, ...] = ()

    @property
    def report(self) -> Report:
        """The report of the part.

        Raises:
            UsageError: The part has not ended.
            InputError: The report is gone.
        """
        from rooflens.api.opening import open as open_report

        if self._report is None:
            if self._place is None:
                raise UsageError("nothing has been profiled yet", "ask for the report after the end of the block")
            self._report = open_report(self._place)
        return self._report

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about ncu's warnings, and about what could not be collected on this machine."""
        return self._warnings

    def __enter__(self) -> Self:
        self._number = next(_numbers)
        wanted = _wanted()
        if wanted is None:
            _command()  # raises now, not at the end of hours of work
        elif wanted[0] == self._number:
            from rooflens.api import marking

            marking.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            return
        wanted = _wanted()
        if wanted is None:
            self._take_report()
            return
        number, reports = wanted
        if number == self._number:
            from rooflens.api import marking

            marking.stop()
            raise SystemExit(0)
        self._place = reports[self._number]

    def __call__(self, function: Callable[P, R], /) -> Profiled[P, R]:
        """Profile the first call of a function: `@rooflens.profile(tier="quick")`."""
        return Profiled(function, self)

    def _take_report(self) -> None:
        from rooflens.collect.command import Collection
        from rooflens.collect.plan import Request, command_target, make_plan
        from rooflens.collect.profile import profile as take

        program = _command()
        target = command_target(program)
        output = self._output or _kept_folder() / f"{target.name}.{self._number}.ncu-rep"
        told = json.dumps([self._number, _reports])
        collection = Collection(program=(), output=output, from_start=False, environment={WANTED: told})
        request = Request(target, collection, self._tier, ncu_path=self._ncu, timeout_s=self._timeout_s)
        plan = make_plan(request, dry_run=False)
        collected = take(plan, run_first=False).collected
        self._place = str(collected.report)
        self._warnings = (*plan.warnings, *collected.warnings)
        _reports.append(self._place)


class Profiled(Generic[P, R]):
    """A function whose first call is profiled, made by `@rooflens.profile`; it returns what the function returns."""

    def __init__(self, function: Callable[P, R], profile: Profile) -> None:
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            hint = "use `with rooflens.profile():` around what runs it"
            raise UsageError(f"`{function.__name__}` has not run yet when its call returns", hint)
        self._function = function
        self._profile = profile
        self._is_done = False
        update_wrapper(self, function)

    def __call__(self, *arguments: P.args, **options: P.kwargs) -> R:
        """Call the function; its first call is profiled."""
        if self._is_done:
            return self._function(*arguments, **options)
        self._is_done = True
        with self._profile:
            return self._function(*arguments, **options)

    def __get__(self, owner: object, kind: type | None = None) -> Callable[..., R]:
        return self if owner is None else MethodType(self, owner)

    @property
    def report(self) -> Report:
        """The report of the first call; raises the same errors as `Profile.report`."""
        return self._profile.report


@overload
def profile(function: Callable[P, R], /) -> Profiled[P, R]: ...


@overload
def profile(
    *,
    tier: Detail = "standard",
    output: str | os.PathLike[str] | None = None,
    force: bool = False,
    ncu: str | None = None,
    timeout_s: float | None = None,
) -> Profile: ...


def profile(  # noqa: PLR0913 - each is one thing of how it is collected
    function: Callable[..., Any] | None = None,
    /,
    *,
    tier: Detail = "standard",
    output: str | os.PathLike[str] | None = None,
    force: bool = False,
    ncu: str | None = None,
    timeout_s: float | None = None,
) -> Profile | Profiled[..., Any]:
    """Profile a part of this program under ncu: `with rooflens.profile() as profiled:`, or `@rooflens.profile`.

    The part runs here normally. At its end the program is started again with the same arguments, in a child under ncu
    that ends after the part, so everything before the part runs a second time. Of a function the first call is
    profiled.

    Not yet run on a GPU: it was tested with a stand-in for ncu.

    Args:
        function: The function, if used as a decorator without arguments.
        tier: `quick`, `standard` or `deep`: how many counters, and therefore passes.
        output: Report to write, `NAME.ncu-rep`; by default a temporary report, deleted when the program ends.
        force: Overwrite an existing report.
        ncu: Path of the ncu to run; by default the one that `rooflens doctor` finds.
        timeout_s: Time limit of the child, in seconds; by default unlimited.

    Raises:
        UsageError: The tier does not exist, the report exists, or this is no script that can run again.
        EnvironmentMissingError: ncu, a GPU or a permission is missing; raised at the end of the part.
        InputError: Nothing was profiled, ncu failed, or the program behaved differently when it ran again.

    >>> import rooflens as rl
    >>> @rl.profile
    ... def step(scale: int) -> int:
    ...     return 2 * scale
    >>> step(21)
    42
    >>> step.report[0].verdict.bound
    'compute'
    """
    if tier not in DETAILS:
        raise UsageError(f"there is no tier `{tier}`", f"choose one of {', '.join(DETAILS)}")
    file = None if output is None else Path(output)
    if file is not None and _wanted() is None:
        check_place(file, force=force)
    made = Profile(tier, file, ncu, timeout_s)
    return made if function is None else Profiled(function, made)


def check_place(file: Path, *, force: bool) -> None:
    """Refuse to overwrite a report without `force`, under either name that ncu may give it.

    Raises:
        UsageError: A report exists and `force` is False, another file has its name, or its folder is missing.
    """
    from rooflens.collect.run import both_names
    from rooflens.writing.outputs import check_folder, check_free

    check_folder(file)
    for name in both_names(file):
        check_free(name, force=force, hint="give another name, or force=True to overwrite it")


def _wanted() -> tuple[int, Sequence[str]] | None:
    """Return which part this process should profile, and the reports of earlier parts; None if it is no such child."""
    told = os.environ.get(WANTED)
    if told is None:
        return None
    number, reports = json.loads(told)
    return number, reports


def _command() -> tuple[str, ...]:
    """Return the command line of this program.

    Raises:
        UsageError: The program is a notebook, or an interactive interpreter.
    """
    arguments = sys.orig_argv[1:]
    is_script = hasattr(sys.modules["__main__"], "__file__") or "-c" in arguments
    if notebook.shell() is not None or not is_script:
        hint = "in a notebook, write the cell with `%%writefile cell.py`, then `!rooflens profile -- python cell.py`"
        raise UsageError("only a script can be run again under ncu", hint)
    return sys.executable, *arguments


def _kept_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="rooflens-"))
    atexit.register(_remove, folder)
    return folder


def _remove(folder: Path) -> None:
    """Remove the folder of a temporary report, unless collecting failed: the error names the log in it."""
    from rooflens.ingest.reports.unpacking import INCOMPLETE_SUFFIX, LOG_SUFFIX

    is_failure = any(file.name.endswith((LOG_SUFFIX, INCOMPLETE_SUFFIX)) for file in folder.glob("*"))
    if not is_failure:
        shutil.rmtree(folder, ignore_errors=True)
