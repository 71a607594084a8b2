"""`make` sets up what it needs, or says in one sentence what to install."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def program(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def make(target: str, python: str | Path, folder: Path) -> tuple[int, str, list[str]]:
    """The exit code, what was printed, and what was complained about, but for make's own line."""
    done = subprocess.run(
        ["make", target, f"PYTHON={python}", f"VENV={folder}"],
        capture_output=True,
        check=False,
        text=True,
        cwd=ROOT,
        env={name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
    )
    complaints = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    return done.returncode, done.stdout, complaints


@pytest.mark.parametrize("target", ["demo", "test"])
def test_no_python(target: str, tmp_path: Path) -> None:
    assert make(target, "no-such-python", tmp_path / "venv") == (
        2,
        "",
        [
            "error: Millstream needs Python 3.11 or later, and there is no no-such-python: "
            "install it, or name another one: make PYTHON=/path/to/python3"
        ],
    )
    assert not (tmp_path / "venv").exists()


def test_an_old_python(tmp_path: Path) -> None:
    old = program(tmp_path / "python3", "echo 'SyntaxError' >&2; exit 1")
    assert make("demo", old, tmp_path / "venv") == (
        2,
        "",
        [
            f"error: Millstream needs Python 3.11 or later, and {old} is not: "
            "install it, or name another one: make PYTHON=/path/to/python3"
        ],
    )


def test_a_python_without_virtual_environments(tmp_path: Path) -> None:
    """As Debian has it without the package python3-venv."""
    part = program(
        tmp_path / "python3",
        f'case "$2" in *ensurepip*) echo ModuleNotFoundError >&2; exit 1;; esac\n'
        f'exec {sys.executable} "$@"',
    )
    assert make("demo", part, tmp_path / "venv") == (
        2,
        "",
        [
            f"error: {part} cannot create virtual environments: "
            "install its venv module (Debian, Ubuntu: apt install python3-venv)"
        ],
    )


@pytest.mark.parametrize(
    ("version", "code"), [("1.8.0_392", 1), ("11.0.2", 1), ("17.0.9", 0), ("25", 0), (None, 1)]
)
@pytest.mark.parametrize("place", ["JAVA_HOME", "PATH"])
def test_whether_a_java_is_fetched(
    version: str | None, code: int, place: str, tmp_path: Path
) -> None:
    """What set-up asks: whether the Java that Spark would take will do."""
    if version is not None:
        program(tmp_path / "bin/java", f"echo 'openjdk version \"{version}\"' >&2")
    home = {"JAVA_HOME": str(tmp_path)} if place == "JAVA_HOME" else {}
    done = subprocess.run(
        [sys.executable, "-m", "millstream.spark.java"],
        capture_output=True,
        check=False,
        env={"PATH": str(tmp_path / "bin"), **home},
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, b"", b"")
