"""A query over files that drops rows, and what it answers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import millstream as ms

JOIN = """SELECT a.k, a.n AS a, b.n AS b FROM A WINDOW(RANGE 1 SECOND) a
JOIN B WINDOW(RANGE 1 SECOND) b ON a.k = b.k"""
SECOND = 1_000_000


def write(folder: Path, name: str, rows: int) -> None:
    """A row in every 10 milliseconds."""
    lines = [f'{{"t": {i * SECOND // 100}, "k": {i % 7}, "n": {i}}}' for i in range(rows)]
    (folder / name).mkdir()
    (folder / name / "rows.json").write_text("\n".join(lines) + "\n")


def session(folder: Path, rate: float, engine: str = "local", **options: object) -> ms.Session:
    made = ms.Session(engine=engine, **options)  # type: ignore[arg-type]
    for name in ("A", "B"):
        made.sql(
            f"CREATE STREAM {name} (t BIGINT, k INT, n INT) SOURCE json('{folder / name}') "
            f"ORDERED BY t UNIT MICROSECONDS WITH (rate = {rate}, distinct(k) = 7)"
        )
    return made


def query_of(made: ms.Session, sql: str = JOIN) -> ms.Query:
    query = made.sql(sql)
    assert isinstance(query, ms.Query)
    return query


def answer(query: ms.Query, **options: object) -> Counter[tuple[object, ...]]:
    running = query.start(trigger="available_now", **options)  # type: ignore[arg-type]
    assert running.wait(300)
    return Counter(map(tuple, (row.values() for row in running.results().to_pylist())))
