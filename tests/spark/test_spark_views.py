"""Views on the Spark engine: its operators keep them as those of the local engine do."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import millstream as ms

pytestmark = pytest.mark.xdist_group("spark")

QUERY = "SELECT k, COUNT(*) AS n, MAX(v) AS m FROM S WINDOW(RANGE 50) GROUP BY k"
SCHEMA = {"t": "BIGINT", "k": "BIGINT", "v": "BIGINT"}


def rows(first: int, last: int) -> pa.Table:
    numbers = range(first, last)
    columns = {"t": [*numbers], "k": [i % 7 for i in numbers], "v": [i * i % 23 for i in numbers]}
    return pa.table(columns)


def test_views_are_read_while_spark_runs() -> None:
    session = ms.Session(engine="spark")
    feed = session.feed("S", SCHEMA, time="t")
    view = session.sql(f"CREATE MATERIALIZED VIEW v AS {QUERY} RETAIN 200")
    local = ms.Session(engine="local")
    local.stream("S", rows(0, 300), time="t")
    asked = local.sql(QUERY)
    for first in (0, 100, 200):
        feed.send(rows(first, first + 100))
        at = first + 98
        assert view.as_of(at, timeout=120).equals(asked.snapshot(at))
    assert view.as_of(150).equals(asked.snapshot(150))
    total = session.sql("SELECT SUM(n) AS n, COUNT(*) AS groups FROM v").run().to_pylist()
    assert total == [{"n": 50, "groups": 7}]
    history = session.sql("SELECT COUNT(*) AS c FROM HISTORY(v) WHERE valid_to > 150").run()
    assert history["c"][0].as_py() > 100
    view.stop()


def test_views_in_a_folder_and_whole_answers(tmp_path: Path) -> None:
    """The stream is read by Spark, from files."""
    import pyarrow.parquet as pq

    (tmp_path / "rows").mkdir()
    local = ms.Session(engine="local")
    local.stream("S", rows(0, 300), time="t")
    asked = local.sql(QUERY)
    for number, (first, last) in enumerate([(0, 150), (150, 300)]):
        pq.write_table(rows(first, last), tmp_path / "rows" / f"{number}.parquet")
        session = ms.Session(engine="spark")
        session.sql(
            "CREATE STREAM S (t BIGINT, k BIGINT, v BIGINT) "
            "SOURCE parquet(:path, follow => TRUE) ORDERED BY t",
            path=str(tmp_path / "rows"),
        )
        view = session.sql(
            f"CREATE MATERIALIZED VIEW v AS {QUERY} INTO csv(:out) EMIT EVERY 100 "
            "RETAIN 100 IN :folder",
            folder=str(tmp_path / "view"),
            out=str(tmp_path / "whole"),
        )
        for at in (last - 2, last - 60):
            assert view.as_of(at, timeout=120).equals(asked.snapshot(at))
        view.stop()
    given = {
        line
        for path in (tmp_path / "whole").glob("*.csv")
        for line in path.read_text().splitlines()[1:]
    }
    assert given == {
        f"{row['k']},{row['n']},{row['m']},{at}"
        for at in (0, 100, 200)
        for row in asked.snapshot(at).to_pylist()
    }
