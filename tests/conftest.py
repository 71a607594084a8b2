"""What all tests share: expected texts in files, and `--accept` to write them anew; a server."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from effort import load_profile
from millstream.physical.expressions import programs
from postgres_server import postgres_server, server, url  # noqa: F401

# Tests say which engine they mean, or mean the quick one; so do the documents that they run.
os.environ["MILLSTREAM_ENGINE"] = "local"
# Nor do they depend on what was measured on this machine.
os.environ["XDG_CONFIG_HOME"] = os.devnull + "/config"
load_profile()
# They have few rows, and mean the machine code that many would have.
programs.WORTH = 0

Comparison = Callable[[Path, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--accept",
        action="store_true",
        help="write expected texts anew from what the program gives; then read the difference",
    )


@pytest.fixture
def matches_file(request: pytest.FixtureRequest) -> Comparison:
    """Require a text to be that of a file, whose leading `--` lines are comments and stay."""
    accept = bool(request.config.getoption("--accept"))

    def compare(file: Path, actual: str) -> None:
        comments, expected = _split(file.read_text(encoding="utf-8") if file.exists() else "")
        actual = actual.rstrip("\n") + "\n"
        if accept and actual != expected:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(comments + actual, encoding="utf-8")
        else:
            assert actual == expected, f"{file.name} differs; --accept writes it anew"

    return compare


def _split(text: str) -> tuple[str, str]:
    """The comments at the top of a file, and the rest."""
    lines = text.splitlines(keepends=True)
    count = next((i for i, line in enumerate(lines) if not line.startswith("--")), len(lines))
    return "".join(lines[:count]), "".join(lines[count:])
