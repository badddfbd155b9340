from __future__ import annotations

from msgspec.structs import replace
from support import samples

from rooflens.model.compare.versions import report_labels
from rooflens.writing.rendering import default_title

RUN = samples.report([]).run


def labels(*sources: str, times: tuple[int | None, ...] = ()) -> list[str]:
    """Label reports of these paths."""
    made = times or (None,) * len(sources)
    runs = [
        replace(RUN, digest=f"d{i}", source=source, created_unix_s=time)
        for i, (source, time) in enumerate(zip(sources, made, strict=True))
    ]
    return list(report_labels(runs).values())


def test_labels_are_what_differs_in_the_names() -> None:
    """Words that all names begin and end with are cut."""
    assert labels("a/v4_swizzle_D64.ncu-rep", "a/v5_swizzle_D64.ncu-rep") == ["v4", "v5"]
    assert labels("profileHIGGS.out.ncu-rep", "profile4.out.ncu-rep") == ["profile4", "profileHIGGS"]
    assert labels("silu-2025-04-19-v1.ncu-rep", "silu-2025-04-21-v3.ncu-repz") == ["19-v1", "21-v3"]


def test_a_label_is_never_empty_and_never_that_of_another() -> None:
    """A name that others begin with stays whole, files of one name get their folder, one path a number."""
    assert labels("profile.ncu-rep", "profile_v2.ncu-rep") == ["profile", "v2"]
    assert labels("x/a/profile.ncu-rep", "x/b/profile.ncu-rep") == ["a", "b"]
    assert labels("profile.ncu-rep", "profile.ncu-rep") == ["profile (1)", "profile (2)"]
    assert labels("gemm.ncu-rep", "attention.ncu-rep") == ["attention", "gemm"]
    assert labels("only.ncu-rep") == ["only"]
    assert labels() == []


def test_reports_stand_in_the_order_of_their_recording() -> None:
    """Those without a time come last, in the order of their names, which counts v2 before v10."""
    assert labels("c.ncu-rep", "a.ncu-rep", "b.ncu-rep", times=(None, 20, 10)) == ["b", "a", "c"]
    assert labels("v10.ncu-rep", "v9.ncu-rep", "v1.ncu-rep", times=(None, 10, None)) == ["v9", "v1", "v10"]


def test_a_page_is_named_after_its_reports_in_that_order() -> None:
    """A folder or shell that gives v10 before v2 does not name the page so."""
    runs = [replace(RUN, digest=name, source=f"x/{name}.ncu-rep", created_unix_s=None) for name in ("v1", "v10", "v2")]
    assert default_title(runs) == "v1, v2, v10"
