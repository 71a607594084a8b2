"""The packages that are built: what is in them, and that what is installed from them runs."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import millstream
from cli.statements import QUERY, STREAM, write

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source package, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("packages")
    copy = folder / "copy"
    done = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=True,
        text=True,
        cwd=ROOT,
    )
    for name in done.stdout.splitlines():
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
    build = [sys.executable, "-m", "build", "--outdir", str(folder), str(copy)]
    built = subprocess.run(build, capture_output=True, check=False, text=True)
    assert built.returncode == 0, built.stderr[-2000:]
    assert "deprecat" not in (built.stdout + built.stderr).lower()
    return folder


def names_in(packages: Path, pattern: str) -> set[str]:
    (file,) = packages.glob(pattern)
    if pattern.endswith(".whl"):
        return set(zipfile.ZipFile(file).namelist())
    with tarfile.open(file) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def of_package() -> set[str]:
    """All files of the package here, but for what Python and Numba keep."""
    source = ROOT / "src"
    files = (source / "millstream").rglob("*")
    kept = [file for file in files if file.is_file() and "__pycache__" not in file.parts]
    return {str(file.relative_to(source)) for file in kept}


def test_the_wheel_has_the_package_and_nothing_else(packages: Path) -> None:
    names = names_in(packages, "*.whl")
    about = f"millstream-{millstream.__version__}.dist-info/"
    assert {name for name in names if not name.startswith(about)} == of_package()
    assert {"millstream/py.typed", "millstream/cli/auction.sql"} <= names
    assert f"{about}licenses/LICENSE" in names


def test_the_source_package(packages: Path) -> None:
    names = names_in(packages, "*.tar.gz")
    assert {f"src/{name}" for name in of_package()} <= names
    assert {"LICENSE", "README.md", "pyproject.toml"} <= names
    assert not [name for name in names if name.startswith(("tests", "benchmarks", "docs"))]


def test_the_version_is_told_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == millstream.__version__


def test_what_is_installed_runs(packages: Path, tmp_path: Path) -> None:
    """In an environment of its own, beside the libraries of this one."""
    venv = tmp_path / "venv"
    run([sys.executable, "-m", "venv", "--without-pip", str(venv)], tmp_path)
    (libraries,) = venv.glob("lib/python*/site-packages")
    (libraries / "others.pth").write_text(sysconfig.get_path("purelib"))
    (wheel,) = packages.glob("*.whl")
    python = str(venv / "bin/python")
    run([sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", str(wheel)], venv)
    told = run([python, "-c", "import millstream; print(millstream.__file__)"], tmp_path)
    assert Path(told.strip()).is_relative_to(libraries)
    command = str(venv / "bin/millstream")
    assert run([command, "version"], tmp_path) == f"{millstream.__version__}\n"
    file = write(tmp_path, STREAM + QUERY)
    answer = "sensor,best,valid_from,valid_to\na,5,1,4\nb,9,3,6\na,7,4,7\n"
    assert run([command, "run", "--engine", "local", file], tmp_path) == answer


def run(arguments: list[str], folder: Path) -> str:
    done = subprocess.run(arguments, capture_output=True, check=False, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
