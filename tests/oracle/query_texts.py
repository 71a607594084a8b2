"""The texts of queries in files, each with its file and number."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

FILES = sorted((Path(__file__).parent / "queries").glob("*.sql"))


def texts(file: Path) -> Iterator[str]:
    """The statements of a file, which end with a semicolon at the end of a line."""
    lines = file.read_text(encoding="utf-8").splitlines()
    body = "\n".join(line for line in lines if not line.startswith("--"))
    for statement in body.split(";\n"):
        text = " ".join(statement.rstrip(";\n").split())
        if text:
            yield text


TEXTS = [text for file in FILES for text in texts(file)]
