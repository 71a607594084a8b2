"""The documents are true: their statements run, and their Python prints what they say."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from pathlib import Path

import pytest

import millstream as ms

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(document: Path, language: str) -> list[str]:
    found = _BLOCK.findall(document.read_text(encoding="utf-8"))
    return [text for kind, text in found if kind == language]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_statements_bind(document: Path) -> None:
    session = ms.Session()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for text in blocks(document, "sql"):
            session.run_script(text, document.name)


def test_readme_prints_what_it_says() -> None:
    program, *_ = blocks(ROOT / "README.md", "python")
    printed, *_ = blocks(ROOT / "README.md", "")
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(program, "README.md", "exec"), {})
    assert output.getvalue() == printed


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), target
