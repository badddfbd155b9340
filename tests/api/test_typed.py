"""The installed wheel's types, as a user's checker sees them without the checkout."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel and our dependencies into a new environment, and return a program beside it."""
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("no hatchling, which builds the wheel: pip install hatchling")
    folder = tmp_path_factory.mktemp("typed")
    argv = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder))
    subprocess.run(argv, cwd=ROOT, check=True, capture_output=True)  # noqa: S603 - ours
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "env")
    (site,) = (folder / "env" / "lib").glob("python3.*/site-packages")
    zipfile.ZipFile(wheel).extractall(site)
    dependencies = (str(Path(place).resolve()) for place in sys.path if Path(place).name == "site-packages")
    (site / "dependencies.pth").write_text("\n".join(dependencies), encoding="utf-8")
    shutil.copyfile(HERE / "client.py", folder / "client.py")
    return folder / "client.py"


def test_the_wheel_says_that_it_is_typed(client: Path) -> None:
    """Without the `py.typed` marker, checkers take every name of the package as Any."""
    assert list(client.parent.glob("env/lib/python3.*/site-packages/rooflens/py.typed"))


def test_pyright_checks_a_client_against_the_wheel(client: Path) -> None:
    """Pyright accepts the correct code and finds each mistake; `make lint` has mypy check the same client."""
    found = next(filter(None, map(shutil.which, ("basedpyright", "pyright"))), None)
    beside = Path(sys.executable).with_name("basedpyright")
    pyright = found or (str(beside) if beside.exists() else None)
    if pyright is None:
        pytest.skip("no pyright: pip install basedpyright")
    settings = {"typeCheckingMode": "standard", "include": [client.name], "reportUnnecessaryTypeIgnoreComment": "error"}
    (client.parent / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    argv = (pyright, "--outputjson", "--pythonpath", str(client.parent / "env" / "bin" / "python"))
    done = subprocess.run(argv, cwd=client.parent, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    told = json.loads(done.stdout)
    assert told["summary"]["filesAnalyzed"] == 1
    assert [(one["range"]["start"]["line"] + 1, one["message"]) for one in told["generalDiagnostics"]] == []
