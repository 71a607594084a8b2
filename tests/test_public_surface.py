"""What programs rely on: names, rows for other libraries, sessions that are closed, old names."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pytest

import millstream as ms
from conftest import Comparison
from millstream.model.names import Name

ROWS = [{"t": 1, "price": 5}, {"t": 3, "price": 9}]
TEXT = "SELECT MAX(price) AS best FROM Bid WINDOW(RANGE 4)"


@pytest.fixture
def session() -> ms.Session:
    session = ms.Session(engine="local")
    session.stream("Bid", ROWS, time="t")
    return session


def everything_with_rows(session: ms.Session) -> dict[str, tuple[Any, pa.Table]]:
    query = session.sql(TEXT)
    running = query.start()
    assert running.wait(30)
    table = session.table("T", [{"k": 1}, {"k": 2}], key="k")
    view = session.sql(f"CREATE MATERIALIZED VIEW v AS {TEXT}")
    assert view.wait(30)
    pull = session.sql("SELECT best FROM v")
    return {
        "query": (query, query.run()),
        "running": (running, running.results()),
        "table": (table, table.rows()),
        "view": (view, view.table()),
        "pull query": (pull, pull.run()),
    }


def test_whatever_has_rows_gives_them_to_other_libraries(session: ms.Session) -> None:
    for what, (rows, expected) in everything_with_rows(session).items():
        assert rows.to_arrow().equals(expected), what
        assert rows.to_pandas().equals(expected.to_pandas()), what
        assert rows.to_polars().equals(polars.from_arrow(expected)), what
        assert pa.table(rows).equals(expected), what
        assert duckdb.sql("SELECT COUNT(*) FROM rows").fetchall() == [(expected.num_rows,)], what


def test_a_library_that_is_not_there(session: ms.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(ms.QueryError, match="polars is not installed\\nhelp: install it"):
        session.sql(TEXT).to_polars()


def test_all_names_are_there() -> None:
    for name in ms.__all__:
        assert getattr(ms, name) is not None


def test_a_session_is_closed_at_the_end_of_its_block() -> None:
    with ms.Session(engine="local") as session:
        session.feed("S", {"t": "BIGINT", "v": "BIGINT"}, time="t")
        running = session.sql("SELECT v FROM S").start("noop")
        view = session.sql("CREATE MATERIALIZED VIEW v AS SELECT v FROM S WINDOW(RANGE 5)")
        assert running.state == "running"
    assert running.state == "stopped"
    assert view.state == "stopped"
    assert view.table().num_rows == 0
    assert session.close()


def test_watermark_is_a_word_for_delay() -> None:
    session = ms.Session(engine="local")
    columns = {"t": "BIGINT", "v": "BIGINT"}
    session.feed("A", columns, time="t", watermark="5")
    session.feed("B", columns, time="t", delay="5")
    session.stream("C", [{"t": 1}], time="t", watermark=7)
    delays = [session.catalog.stream(Name(name)).delay for name in "ABC"]
    assert delays == [5, 5, 7]
    with pytest.raises(ms.DataError, match="delay and watermark are the same"):
        session.feed("D", columns, time="t", delay="5", watermark="5")


def test_old_names_warn() -> None:
    session = ms.Session(engine="local", on_error="stop", memory=5e6)
    with pytest.deprecated_call(match="read session.settings.on_error"):
        assert session.on_error == "stop"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert session.settings.memory == 5e6
        assert session.engine == "local"
    with pytest.deprecated_call(match=r"write Session\(on_error=…\)"):
        session.on_error = "skip"
    assert session.settings.on_error == "skip"
    with (
        pytest.deprecated_call(match="on_error"),
        pytest.raises(ms.QueryError, match='not "never"'),
    ):
        session.on_error = "never"
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        session.nonsense  # noqa: B018


def test_states_and_forms_equal_their_text(session: ms.Session) -> None:
    query = session.sql(f"{TEXT} EMIT CHANGES")
    assert (query.state, query.emit) == ("registered", "CHANGES")
    assert f"{query.state} {query.emit}" == "registered CHANGES"


def test_a_sink_of_the_user(session: ms.Session) -> None:
    given: list[Any] = []

    class Collecting:
        def __init__(self, context: Any, target: str, *, loud: bool = False) -> None:
            given.append((context.query, target, loud))

        def give(self, table: pa.Table, batch: Any) -> None:
            given.extend(table["best"].to_pylist())

        def close(self) -> None:
            given.append("closed")

    session.sink("collecting", Collecting)
    session.sql(f"INSERT INTO collecting('here', loud => TRUE) {TEXT}").start().wait(30)
    assert given == [("query_1", "here", True), 5, 9, None, "closed"]
    given.clear()
    session.sql(TEXT).start(ms.sink("collecting", "there")).wait(30)
    assert given == [("query_2", "there", False), 5, 9, None, "closed"]
    with pytest.raises(ms.QueryError, match='sink "collecting" has no option "lowd"'):
        session.sql(f"INSERT INTO collecting('here', lowd => TRUE) {TEXT}")
    session.sink("function", lambda context: lambda table, batch: given.append(batch.id))
    given.clear()
    session.sql(TEXT).start("function").wait(30)
    assert given
    with pytest.raises(ms.QueryError, match='sink "x" must be opened by a function'):
        session.sink("x", 5)  # type: ignore[arg-type]


def test_what_is_public_is_known(session: ms.Session, matches_file: Comparison) -> None:
    """Attributes without an underscore are a promise: a change of this list is one on purpose."""
    objects = {type(each).__name__: each for each, _ in everything_with_rows(session).values()}
    objects |= {"Session": session, "Feed": session.feed("F", {"t": "BIGINT"}, time="t")}
    lines = [f"millstream: {', '.join(sorted(ms.__all__))}"]
    for name, each in sorted(objects.items()):
        told = {*dir(type(each)), *vars(each)}
        lines.append(f"{name}: {', '.join(sorted(n for n in told if not n.startswith('_')))}")
    matches_file(Path(__file__).with_name("public_names.txt"), "\n".join(lines))
