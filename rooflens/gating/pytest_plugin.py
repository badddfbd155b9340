"""The pytest plugin: a test passes only if the report that it names or writes meets what its marks require.

    @pytest.mark.roofline("out/adamw.ncu-rep", kernel="adamw*", level="dram", min_share=0.7)
    def test_adamw_fills_the_memory(): ...

    @pytest.mark.roofline(max_us=120)
    def test_adamw_is_quick(roofline):
        subprocess.run(["ncu", "--export", roofline.path, "./adamw"], check=True)

pytest imports this file at every start: nothing but pytest is imported with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

    from rooflens.gating.judging import Wanted

_MARK = (
    "roofline(*reports, kernel=None, level=None, min_share=None, max_us=None, bound=None, base=None, fail_on=None, "
    "floor_us=None): hold the kernels of these reports, or of the one the test writes, to shares, times and limiters"
)


class Roofline:
    """Value of the fixture `roofline`.

    Attributes:
        path: Where the test may write a report, which its marks judge when it ends.
    """

    def __init__(self, path: Path, item: pytest.Item) -> None:
        self.path = path
        self._item = item
        self._root = item.config.rootpath
        self._named: list[Path] = []

    def add(self, *reports: str | Path) -> None:
        """Add reports, or folders of them, for the marks to judge when the test ends; relative to pytest's root."""
        self._named += [self._root / report for report in reports]

    def judge(self, *reports: str | Path, **wanted: Any) -> None:
        """Judge reports here and now.

        Args:
            *reports: Reports or folders of them, relative to pytest's root; by default those of the test.
            **wanted: As for the mark: `kernel`, `level`, `min_share`, `max_us`, `bound`, `base`, `fail_on`, `floor_us`.

        Raises:
            pytest.fail.Exception: Something is not met, or cannot be judged.
        """
        __tracebackhide__ = True
        _fail_unless_met([self._root / report for report in reports] or self.reports, wanted, self._item)

    @property
    def reports(self) -> list[Path]:
        """The reports of the test so far: those it added, and the one it wrote."""
        packed = self.path.with_suffix(".ncu-repz")
        return [*self._named, *(path for path in (self.path, packed) if path.exists())]


_NOTE = "roofline"
"""Property of a test with a note: what its report holds of it, which comes through to the summary of pytest-xdist."""

_GIVEN = pytest.StashKey[Roofline]()


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line("markers", _MARK)


@pytest.fixture
def roofline(request: pytest.FixtureRequest, tmp_path: Path) -> Roofline:
    """Place for the test's report, and a way to add others; the test's marks judge them when it ends."""
    given = Roofline(tmp_path / "report.ncu-rep", request.node)
    request.node.stash[_GIVEN] = given
    return given


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse a mark that makes no sense before the test runs, which may take long."""
    refused = ""
    for mark in item.iter_markers("roofline"):
        try:
            _wanted(mark.kwargs, item.config.rootpath)
        except pytest.UsageError as error:
            refused = str(error)
    if refused:
        pytest.fail(refused, pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Judge the reports when the test has passed."""
    done = yield
    given = item.stash.get(_GIVEN, None)
    root = item.config.rootpath
    for mark in item.iter_markers("roofline"):
        named = [root / report for report in mark.args]
        _fail_unless_met(named or (given.reports if given else []), mark.kwargs, item)
    return done


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Note what passed although it could not be judged."""
    passed = terminalreporter.getreports("passed")
    notes = [text for report in passed for name, text in report.user_properties if name == _NOTE]
    if notes:
        terminalreporter.section("roofline")
        for text in notes:
            terminalreporter.write_line(f"note: {text}")


def _fail_unless_met(reports: list[Path], kwargs: Mapping[str, Any], item: pytest.Item) -> None:
    __tracebackhide__ = True
    from rooflens.errors import RooflensError
    from rooflens.gating.judging import unmet

    wanted = _wanted(kwargs, item.config.rootpath)
    if not reports:
        pytest.fail(
            "roofline: there is no report to judge: name one in the mark, or take the fixture `roofline` and write to "
            "`roofline.path` or name one with `roofline.add`",
            pytrace=False,
        )
    try:
        found = unmet(reports, wanted, lambda note: item.user_properties.append((_NOTE, note)))
    except RooflensError as error:
        found = [f"{error}{f' (hint: {error.hint})' if error.hint else ''}"]
    if found:
        pytest.fail("\n".join(f"roofline: {text}" for text in found), pytrace=False)


def _wanted(kwargs: Mapping[str, Any], root: Path) -> Wanted:
    """Read the requirements of a mark.

    Raises:
        pytest.UsageError: There is no such requirement, or nothing can meet it.
    """
    from rooflens.errors import RooflensError
    from rooflens.gating.judging import Wanted, check

    try:
        base = {"base": root / kwargs["base"]} if kwargs.get("base") else {}
        wanted = Wanted(**{**kwargs, **base})
        check(wanted)
    except (RooflensError, TypeError) as error:
        hint = getattr(error, "hint", "")
        raise pytest.UsageError(f"mark roofline: {error}{f' (hint: {hint})' if hint else ''}") from error
    return wanted
