from __future__ import annotations

from pathlib import Path

from rooflens.ingest.reports.inputs import find_inputs


def test_a_folder_gives_its_reports_as_people_count(tmp_path: Path) -> None:
    """Versions, and folders of them, are sorted as v1, v2, v10."""
    names = ("v10/a2.ncu-rep", "v10/a10.ncu-rep", "v2/a.ncu-rep", "v1.ncu-rep")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"NVR\0")
    found = [str(job.path.relative_to(tmp_path)) for job in find_inputs([str(tmp_path)]).jobs]
    assert found == ["v1.ncu-rep", "v2/a.ncu-rep", "v10/a2.ncu-rep", "v10/a10.ncu-rep"]
