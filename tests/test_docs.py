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


# --- the time lines of semantics.md ---------------------------------------------------------------


def answer(session: ms.Session, text: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in session.sql(text).run().to_pylist()]


def test_the_count_of_a_sliding_window() -> None:
    session = ms.Session()
    session.stream("Bid", [{"t": 1, "v": "a"}, {"t": 3, "v": "b"}, {"t": 5, "v": "c"}], time="t")
    query = session.sql("SELECT COUNT(*) AS n FROM Bid WINDOW(RANGE 3)")
    counts = [query.snapshot(t).to_pylist()[0]["n"] for t in range(1, 9)]
    assert counts == [1, 1, 2, 1, 2, 1, 1, 0]


def test_the_padded_row_of_an_outer_join() -> None:
    session = ms.Session()
    session.stream("Orders", [{"t": 1, "o": "o", "k": 1}], time="t")
    session.stream("Payments", [{"t": 3, "p": "p", "k": 1}], time="t")
    text = (
        "SELECT o, p FROM Orders WINDOW(RANGE 6) a LEFT JOIN Payments WINDOW(RANGE 2) b "
        "ON a.k = b.k"
    )
    assert answer(session, text) == [("o", None, 1, 3), ("o", "p", 3, 5), ("o", None, 5, 7)]
    assert answer(session, text + " EMIT CHANGES")[1:3] == [("o", None, 3, -1), ("o", "p", 3, 1)]


def test_the_instants_of_slide_and_of_granularity() -> None:
    session = ms.Session()
    session.stream("S", [{"t": t} for t in range(30)], time="t")
    slide = session.sql("SELECT t FROM S WINDOW(RANGE 10 SLIDE 10)")
    grid = session.sql("SELECT t FROM S WINDOW(RANGE 10) GRANULARITY(10)")

    def seen(query: ms.Query, at: int) -> list[int]:
        return query.snapshot(at).column("t").to_pylist()

    assert [seen(slide, t) for t in (8, 9, 18)] == [[], [*range(10)], [*range(10)]]
    assert seen(slide, 19) == [*range(10, 20)]
    assert seen(grid, 10) == seen(grid, 19) == [*range(1, 11)]
