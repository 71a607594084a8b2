"""Tables that change, judged by DuckDB: it has their contents after every change."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_statements import (
    Delete,
    Insert,
    MergeInto,
    Statement,
    Update,
    carry_out,
    deletes,
    inserts,
    statements,
)
from table_judge import INFINITY, Judge, JudgedTable, Merge, Row
from table_questions import Question, T, U, questions

import millstream as ms
from effort import examples
from oracle.agreement import same_rows

pytestmark = pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")

SOON = 20.0
FIRST = Insert("T", [(1, "a", 1, 0.5, True), (0, None, None, 2.0, False), (1, "a", 1, 0.5, True)])


@contextmanager
def both(engine: str) -> Iterator[tuple[ms.Session, Judge]]:
    """A session and the judge, with the same tables."""
    session = ms.Session(engine=engine)
    tables = [JudgedTable("T", T), JudgedTable("U", U)]
    for table in tables:
        columns = ", ".join(f"{name} {type}" for name, type in table.columns.items())
        session.sql(f"CREATE TABLE {table.name} ({columns})")
    yield session, Judge(*tables)


def plain(rows: Sequence[dict[str, Any]]) -> list[Row]:
    return [tuple(map(_plain, row.values())) for row in rows]


def _plain(value: Any) -> Any:
    return tuple(map(_plain, value)) if isinstance(value, list) else value


def judged(judge: Judge, question: Question, instant: int = INFINITY - 1) -> list[Row]:
    return [tuple(map(_plain, row)) for row in judge.ask(question.theirs, instant)]


def check(ours: list[Row], theirs: list[Row], question: Question, when: object) -> None:
    assert same_rows(ours, theirs), f"{when}\n  {question.ours}\n  {ours}\n  {theirs}"


# --- queries that are asked once, and views -------------------------------------------------------


def check_after_every_change(
    changes: Sequence[Statement], asked: Sequence[Question], before: int = 0, engine: str = "local"
) -> None:
    """Views are created after so many changes."""
    with both(engine) as (session, judge):
        views = []
        try:
            for number, change in enumerate(changes):
                if number == before:
                    for place, question in enumerate(asked):
                        session.sql(f"CREATE MATERIALIZED VIEW v{place} AS {question.ours}")
                    views = list(session.views.values())
                carry_out(change, session, judge, None)
                for question in asked:
                    ours = plain(session.sql(question.ours).run().to_pylist())
                    check(ours, judged(judge, question), question, f"asked after {change.text}")
                for view, question in zip(views, asked, strict=False):
                    check_soon(view, judged(judge, question), question, change)
        finally:
            for view in views:
                view.stop()


def check_soon(view: Any, theirs: list[Row], question: Question, change: Statement) -> None:
    deadline = time.monotonic() + SOON
    while not same_rows(ours := plain(view.table().to_pylist()), theirs):
        assert view.exception is None
        if time.monotonic() > deadline:
            check(ours, theirs, question, f"view after {change.text}")
        time.sleep(0.0005)


@settings(max_examples=examples(40))
@given(
    st.lists(statements, min_size=1, max_size=5),
    st.lists(questions(), min_size=1, max_size=3),
    st.integers(0, 1),
)
def test_views_and_pull_queries(
    changes: list[Statement], asked: list[Question], before: int
) -> None:
    check_after_every_change([FIRST, *changes], asked, before)


# --- restarts -------------------------------------------------------------------------------------


def check_restarts(
    runs: Sequence[Sequence[Statement]], asked: Sequence[Question], shuffle: Random, folder: Path
) -> None:
    """The program makes its tables again with the same rows in another order; views keep theirs.
    Changes are such that the rows that come do not depend on the order of the table."""
    judge = Judge(JudgedTable("T", T), JudgedTable("U", U))
    for changes in runs:
        with both("local") as (session, _):
            for name, table in judge.tables.items():
                rows = [stay.row for stay in table.at(INFINITY - 1)]
                shuffle.shuffle(rows)
                if rows:
                    session.sql(Insert(name, rows).text)
            for place, question in enumerate(asked):
                inside = f"IN '{folder / str(place)}'"
                session.sql(f"CREATE MATERIALIZED VIEW v{place} AS {question.ours} {inside}")
            views = list(session.views.values())
            try:
                for change in changes:
                    carry_out(change, session, judge, None)
                    for view, question in zip(views, asked, strict=True):
                        check_soon(view, judged(judge, question), question, change)
            finally:
                for view in views:
                    view.stop()


@settings(max_examples=examples(8))
@given(
    st.lists(st.lists(inserts | deletes, min_size=1, max_size=3), min_size=2, max_size=3),
    st.lists(questions(), min_size=1, max_size=2),
    st.randoms(use_true_random=False),
)
def test_views_that_restart(
    runs: list[list[Statement]], asked: list[Question], shuffle: Random
) -> None:
    with TemporaryDirectory() as folder:
        check_restarts([[FIRST, *runs[0]], *runs[1:]], asked, shuffle, Path(folder))


# --- whole histories ------------------------------------------------------------------------------


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[Statement, int | None]]:
    """Statements and when they take effect: first without times; then at times that grow, or come
    between those of earlier inserts where nothing was taken away."""
    made: list[tuple[Statement, int | None]] = [(FIRST, None)]
    made += [(draw(statements), None) for _ in range(draw(st.integers(0, 2)))]
    latest = {"T": 0, "U": 0}
    for _ in range(draw(st.integers(1, 5))):
        statement = draw(statements)
        table = statement.table
        at = draw(st.sampled_from([None, 0, 0, 10, 10, 10]))
        if at is None:
            made.append((statement, None))
            continue
        latest[table] += at
        back = draw(st.sampled_from([0, 0, 5])) if isinstance(statement, Insert) else 0
        made.append((statement, latest[table] - back))
    return made


def check_history(
    history: Sequence[tuple[Statement, int | None]], asked: Sequence[Question], engine: str
) -> None:
    """The answer at every instant, of queries over the whole history."""
    with both(engine) as (session, judge):
        for statement, at in history:
            table = judge.tables[statement.table]
            if at is not None and not is_allowed(statement, at, table):
                at = max(table.latest, 0)
            carry_out(statement, session, judge, at)
        for question in asked:
            check_instants(session, judge, question)


def check_instants(session: ms.Session, judge: Judge, question: Question) -> None:
    """From the first change of a table that the query reads on."""
    given = session.sql(f"{question.ours} EMIT CHANGES").run().to_pylist()
    rows = [(tuple(map(_plain, list(row.values())[:-2])), row) for row in given]
    read = [t for t in judge.tables.values() if re.search(rf"\b{t.name}\b", question.ours)]
    instants = [t for table in read for stay in table.stays for t in (stay.start, stay.end)]
    instants = [instant for instant in instants if 0 <= instant < INFINITY]
    for instant in range(min(instants), max(instants) + 2) if instants else ():
        summed: Counter[Row] = Counter()
        for row, change in rows:
            if change["at"] <= instant:
                summed[row] += change["change"]
        assert min(summed.values(), default=0) >= 0
        check(list(summed.elements()), judged(judge, question, instant), question, instant)
    if not instants:
        assert given == []


def is_allowed(statement: Statement, at: int, table: JudgedTable) -> bool:
    """What takes rows away comes after all that came; what brings some, after what last did."""
    return at >= (table.floor if isinstance(statement, Insert) else table.latest)


@settings(max_examples=examples(40))
@given(histories(), st.lists(questions(), min_size=1, max_size=3))
def test_histories_in_the_local_engine(
    history: list[tuple[Statement, int | None]], asked: list[Question]
) -> None:
    check_history(history, asked, "local")


@settings(max_examples=examples(25))
@given(histories(), st.lists(questions(), min_size=1, max_size=2))
def test_histories_in_the_reference(
    history: list[tuple[Statement, int | None]], asked: list[Question]
) -> None:
    check_history(history, asked, "reference")


# --- on Spark -------------------------------------------------------------------------------------

CHANGES = [
    (FIRST, None),
    (Insert("U", [(1, 2), (3, None)]), 5),
    (Insert("T", [(2, "b", 5, 0.5, None), (1, "a", None, None, True)]), 10),
    (Update((("v", "v + 1"),), "k = 'a'"), 20),
    (Delete("T", "id = 1 AND v IS NULL"), 30),
    (
        MergeInto(
            Merge(
                [(2, "c", 7, 2.0, True), (3, None, 8, None, False)],
                [("MATCHED", "T.b IS NULL", {"k": "s.k"}), ("NOT MATCHED", "TRUE", None)],
            )
        ),
        40,
    ),
    (Delete("T", "id < 2"), 50),
]
ASKED = [
    Question(
        "SELECT COUNT(*) AS n, ARRAY_AGG(v) AS a, FIRST(id) AS f, LAST(k) AS l FROM T",
        "SELECT COUNT(*), CASE WHEN COUNT(*) > 0 THEN "
        "COALESCE(LIST(v ORDER BY _place) FILTER (v IS NOT NULL), []) END, "
        "FIRST(id ORDER BY _place), LAST(k ORDER BY _place) FROM T",
    ),
    Question(
        "SELECT k, ARRAY_AGG(id) AS a, ANY_VALUE(v) AS v FROM (SELECT * FROM T WHERE id > 0) s "
        "WHERE id IN (SELECT id FROM U) GROUP BY k",
        "SELECT k, LIST(id ORDER BY _place), FIRST(v ORDER BY _place) FROM T "
        "WHERE id > 0 AND id IN (SELECT id FROM U) GROUP BY k",
    ),
]


@pytest.mark.xdist_group("spark")
def test_a_history_on_spark() -> None:
    check_history(CHANGES, ASKED, "spark")


@pytest.mark.xdist_group("spark")
def test_views_on_spark() -> None:
    check_after_every_change([change for change, _ in CHANGES], ASKED, 1, "spark")


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_the_same_history(engine: str) -> None:
    check_history(CHANGES, ASKED, engine)
