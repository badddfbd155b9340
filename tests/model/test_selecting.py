from __future__ import annotations

import pytest
from support import samples
from support.kernels import make_kernel
from support.loops import for_all

from rooflens.errors import NoMatchError, UsageError
from rooflens.model.analyze import analyze
from rooflens.model.keys import Keys, launch_id
from rooflens.model.records import AnalyzedReport, Outside
from rooflens.model.selecting import Chooser, Selection, select

GEMM = "void cutlass::Kernel<cutlass::gemm::Gemm<float, (int)128>>(Params)"
LAUNCHES = (
    (GEMM, "train/step 1/forward"),
    ("adamw_kernel2", "train/step 1/optimizer"),
    ("adamw_kernel2", "train/step 2/optimizer"),
    ("add(float *, int)", None),
)


def report() -> AnalyzedReport:
    """Make a report of four launches, two of which are of one kernel."""
    kernels = [make_kernel(name=name, function_name=name, nvtx_range=opened) for name, opened in LAUNCHES]
    return AnalyzedReport(samples.run(), tuple(map(analyze, kernels)))


def chosen(kernel: tuple[str, ...] = (), nvtx: tuple[str, ...] = ()) -> list[int]:
    """Choose, and return the positions of the chosen launches."""
    given = report()
    places = {id(analysis): place for place, analysis in enumerate(given.analyses)}
    return [places[id(analysis)] for one in select([given], Selection(kernel, nvtx)) for analysis in one.analyses]


@for_all(
    "pattern, places",
    [
        ("adamw", [1, 2]),
        ("ADAMW", [1, 2]),
        ("a*", [1, 2, 3]),
        ("adamw_kernel?", [1, 2]),
        ("w*", None),
        ("add(float *, int)", [3]),
        (GEMM, [0]),
        ("void cutlass::Kernel<cutlass::gemm::Gemm<float, 128>>(Params)", [0]),
        ("Kernel<cutl…(Params)", [0]),
        ("Kernel", [0, 1, 2]),
        ("re:^add\\b", [3]),
        ("re:^Kernel$", [0]),
        ("re:ADAMW", None),
    ],
)
def test_a_kernel_is_meant_by_text_glob_or_expression(pattern: str, places: list[int] | None) -> None:
    """Plain text matches anywhere, a glob the whole name, `re:` is searched for, and a cut name matches its kernel."""
    if places is None:
        with pytest.raises(NoMatchError):
            chosen((pattern,))
    else:
        assert chosen((pattern,)) == places


def test_a_key_is_one_launch_and_a_glob_over_keys_is_several() -> None:
    """The key of a launch chooses only this launch, even if another key begins alike."""
    keys = Keys()
    kernels = [make_kernel(name="k<1>", grid=(size, 1, 1)) for size in (1, 1, 2)]
    given = AnalyzedReport(
        samples.run(), tuple(analyze(k, outside=Outside(key=keys.next(launch_id(k)))) for k in kernels)
    )
    first, second, _ = (analysis.key for analysis in given.analyses)
    assert second == f"{first}#2"
    for pattern, count in ((first, 1), (second, 1), (f"{first}*", 2), ("k-*", 3)):
        (found,) = select([given], Selection((pattern,)))
        assert len(found.analyses) == count


@for_all(
    "pattern, places",
    [
        ("train", [0, 1, 2]),
        ("forward", [0]),
        ("step*", [0, 1, 2]),
        ("step 1", [0, 1]),
        ("step 1/opt*", [1]),
        ("re:step [2-9]", [2]),
        ("step", None),
    ],
)
def test_a_range_is_meant_wherever_it_stands_on_the_stack(pattern: str, places: list[int] | None) -> None:
    """A pattern covers any range that was open, or several from outside in, but never a part of a range's name."""
    if places is None:
        with pytest.raises(NoMatchError):
            chosen(nvtx=(pattern,))
    else:
        assert chosen(nvtx=(pattern,)) == places


def test_patterns_of_one_kind_add_and_of_two_kinds_restrict() -> None:
    """Several kernels mean any of them; a kernel and a range mean both."""
    assert chosen(("adamw", "add")) == [1, 2, 3]
    assert chosen(("adamw",), ("step 2",)) == [2]


def test_without_patterns_everything_stays() -> None:
    """Without a selection, or with an empty one, the reports stay unchanged."""
    given = report()
    assert select([given], None) == select([given], Selection()) == (given,)


@pytest.mark.parametrize(
    ("kernel", "nvtx", "message", "hint"),
    [
        (("adamx",), (), "no kernel matches `adamx`", "did you mean `adamw_kernel2`"),
        (("kernl",), (), "no kernel matches `kernl`", "did you mean `Params`"),
        (("zzz*",), (), "no kernel matches `zzz*`", "there are: Params, adamw_kernel2, add"),
        ((), ("forwrad",), "no NVTX range matches `forwrad`", "did you mean `forward`?"),
        (
            ("add",),
            ("forward",),
            "no kernel that matches `add` was launched in a range that matches `forward`",
            "drop one of the two",
        ),
    ],
)
def test_nothing_chosen_names_what_is_called_alike(
    kernel: tuple[str, ...], nvtx: tuple[str, ...], message: str, hint: str
) -> None:
    """The error says which pattern matched nothing, and its hint names kernels or ranges that exist."""
    with pytest.raises(NoMatchError) as caught:
        chosen(kernel, nvtx)
    assert str(caught.value) == message
    assert caught.value.hint.startswith(hint)
    assert caught.value.exit_code == 1


def test_reports_without_ranges_say_how_to_record_them() -> None:
    """If no launch has a range, the hint names ncu's option."""
    bare = AnalyzedReport(samples.run(), (analyze(make_kernel()),))
    with pytest.raises(NoMatchError) as caught:
        select([bare], Selection(nvtx=("x",)))
    assert "ncu --nvtx" in caught.value.hint


@pytest.mark.parametrize(
    "selection", [Selection(("re:(",)), Selection(("",)), Selection(nvtx=("re:(",)), Selection(nvtx=(" ",))]
)
def test_a_pattern_that_cannot_be_read_is_a_mistake_of_usage(selection: Selection) -> None:
    """An invalid expression and an empty pattern end with exit code 2, before any report is read."""
    with pytest.raises(UsageError):
        Chooser(selection)


def test_a_hint_never_steers_a_terminal() -> None:
    """Names in a hint are printable and cut."""
    hostile = AnalyzedReport(samples.run(), (analyze(make_kernel(name="adam\x1b[2Jw" + "x" * 4000)),))
    with pytest.raises(NoMatchError) as caught:
        select([hostile], Selection(("zzz",)))
    assert caught.value.hint.isprintable()
    assert len(caught.value.hint) < 200


def test_reports_without_a_wanted_launch_are_left_out() -> None:
    """Of two reports only the one with a wanted launch stays, and patterns without a match are known."""
    other = AnalyzedReport(samples.run(), (analyze(make_kernel(name="other")),))
    chooser = Chooser(Selection(("other", "zzz")))
    assert chooser.chosen([report(), other]) == (other,)
    assert chooser.idle == ("zzz",)
    assert select([report(), other], Selection(("other",))) == (other,)


TILED = tuple(
    f"void cutlass::Kernel<cutlass::gemm::kernel::{kind}<cutlass::gemm::GemmShape<{tile}>, float>>(Params)"
    for kind, tile in (("B2bGemm", "32, 384, 64"), ("Gemm", "128, 96, 64"))
)


@for_all(
    "pattern, places",
    [
        ("B2bGemm<32x384x64>", [0]),
        ("Gemm<128x96x64>", [1]),
        ("gemm<128x96x64>", [1]),
        ("Gemm", [0, 1]),
        ("B2bGemm<*", [0]),
        ("B2b…x64>", [0]),
        ("add", [2]),
        ("ADD", [2, 3]),
        ("add*", [2, 3]),
    ],
)
def test_the_short_name_of_a_table_is_that_kernel_and_no_other(pattern: str, places: list[int]) -> None:
    """A printed name chooses its kernel before any text does; other spellings are text, and globs cover short names."""
    names = (*TILED, "add(float *)", "add_relu(float *)")
    given = AnalyzedReport(samples.run(), tuple(analyze(make_kernel(name=name, function_name="f")) for name in names))
    (found,) = select([given], Selection((pattern,)))
    assert [given.analyses.index(one) for one in found.analyses] == places


def test_a_hint_has_the_names_that_tables_print() -> None:
    """If nothing matches, the hint lists short names, each of which chooses its kernel."""
    given = AnalyzedReport(samples.run(), tuple(analyze(make_kernel(name=name)) for name in TILED))
    with pytest.raises(NoMatchError) as caught:
        select([given], Selection(("zzz",)))
    assert caught.value.hint == "there are: B2bGemm<32x384x64>, Gemm<128x96x64>"
