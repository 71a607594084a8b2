"""Every link of every document leads somewhere.

Pages elsewhere are asked for with MILLSTREAM_LINKS=1; otherwise their addresses need only be ones.
"""

from __future__ import annotations

import os
import re
import subprocess
import urllib.request
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parent.parent.parent
_LISTED = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
DOCUMENTS = [
    ROOT / name
    for name in subprocess.run(
        _LISTED, capture_output=True, check=True, text=True, cwd=ROOT
    ).stdout.splitlines()
    if (ROOT / name).exists()
]


@cache
def parsed(document: Path) -> list[Token]:
    return MarkdownIt("gfm-like", {"linkify": False}).parse(document.read_text(encoding="utf-8"))


def links(document: Path) -> list[str]:
    """The targets of links and of pictures."""
    parts = [part for token in parsed(document) for part in token.children or []]
    found = [part.attrGet("href") or part.attrGet("src") for part in parts]
    return [str(target) for target in found if target is not None]


@cache
def anchors(document: Path) -> set[str]:
    """The names of a document's headings, as the pages of forges have them.

    Letters small, words joined by hyphens; the second of two alike has -1 at its end.
    """
    tokens = parsed(document)
    given: Counter[str] = Counter()
    found = set()
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            text = "".join(part.content for part in inline.children or [])
            name = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
            found.add(f"{name}-{given[name]}" if given[name] else name)
            given[name] += 1
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for link in links(document):
        target = urlsplit(link)
        if target.scheme:
            check_outside(link)
            continue
        file = (document.parent / unquote(target.path)).resolve() if target.path else document
        assert file.exists(), f"{link}: there is no such file"
        assert file.is_relative_to(ROOT), f"{link}: it is outside of the project"
        if target.fragment:
            assert file.suffix == ".md", f"{link}: only documents have headings"
            assert unquote(target.fragment) in anchors(file), f"{link}: there is no such heading"


def check_outside(link: str) -> None:
    assert re.fullmatch(r"https?://[\w.-]+\.[a-z]+(/[^\s<>]*)?", link), f"{link}: a bad address"
    if "MILLSTREAM_LINKS" in os.environ:
        request = urllib.request.Request(link, headers={"User-Agent": "millstream"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.status == 200


def test_anchors(tmp_path: Path) -> None:
    document = tmp_path / "a.md"
    document.write_text("# A `b`: c, d?\n\n```\n# no heading\n```\n\n## Two\n\n## Two\n")
    assert anchors(document) == {"a-b-c-d", "two", "two-1"}


def test_there_are_documents_with_links() -> None:
    assert sum(len(links(document)) for document in DOCUMENTS) > 20
