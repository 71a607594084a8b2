"""Random relations: streams, tables of every kind with their changes, and queries over both.

Everything is drawn from one tape. Changes are at any instant, also before all rows of the streams
and after them, several at one instant; a table may have rows that were always there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import millstream as ms
from millstream.api.tables import TableHandle
from oracle.random_streams import Tape

TIMES = (0, 0, 1, 1, 2, 3, 4, 5, 5, 8, 9, 13)
KEYS = (1, 1, 2, 3, None)

# R is a table of any kind, with k, v and perhaps a key; S and U are streams with t, k and x.
LOOKUPS = {
    "join": "SELECT S.k, x, v FROM S WINDOW(RANGE {w}) JOIN R ON S.k = R.k",
    "left join": "SELECT S.k, x, v FROM S WINDOW(RANGE {w}) LEFT JOIN R ON S.k = R.k",
    "semi join": "SELECT S.k, x FROM S WINDOW(RANGE {w}) LEFT SEMI JOIN R ON S.k = R.k",
    "anti join": "SELECT S.k, x FROM S WINDOW(RANGE {w}) LEFT ANTI JOIN R ON S.k = R.k",
    "exists": "SELECT k, x FROM S WINDOW(RANGE {w}) WHERE EXISTS (SELECT 1 FROM R WHERE R.k = S.k)",
    "not exists": "SELECT k, x FROM S WINDOW(RANGE {w}) "
    "WHERE NOT EXISTS (SELECT 1 FROM R WHERE R.k = S.k AND R.v > S.x)",
    "in": "SELECT k, x FROM S WINDOW(RANGE {w}) WHERE k IN (SELECT k FROM R)",
    "not in": "SELECT k, x FROM S WINDOW(RANGE {w}) WHERE k NOT IN (SELECT k FROM R)",
    "scalar": "SELECT k, (SELECT MAX(v) FROM R) AS m FROM S WINDOW(RANGE {w})",
    "correlated": "SELECT k, (SELECT SUM(v) FROM R WHERE R.k = S.k) AS m FROM S WINDOW(RANGE {w})",
    "table first": "SELECT x, v FROM R JOIN S WINDOW(RANGE {w}) ON S.k = R.k",
    "right join": "SELECT x, v FROM R RIGHT JOIN S WINDOW(RANGE {w}) ON S.k = R.k",
    "no window": "SELECT x, v FROM S JOIN R ON S.k = R.k",
    "smaller": "SELECT x, v FROM S WINDOW(RANGE {w}) JOIN R ON S.x < R.v",
    "product": "SELECT x, v FROM S WINDOW(RANGE {w}) CROSS JOIN R",
    "groups": "SELECT v, COUNT(*) AS n, SUM(x) AS s FROM S WINDOW(RANGE {w}) JOIN R ON S.k = R.k "
    "GROUP BY v",
    "distinct": "SELECT DISTINCT v FROM S WINDOW(RANGE {w}) JOIN R ON S.k = R.k",
    "top": "SELECT x, v FROM S WINDOW(RANGE {w}) JOIN R ON S.k = R.k ORDER BY v, x LIMIT 2",
    "slide": "SELECT x, v FROM S WINDOW(RANGE 4 SLIDE 2) JOIN R ON S.k = R.k",
    "filtered": "SELECT y, v FROM (SELECT k, x + 1 AS y FROM S WINDOW(RANGE {w}) WHERE x > 1) Q "
    "JOIN R ON Q.k = R.k WHERE v < 5",
    "two streams": "SELECT S.x, U.x AS y, v FROM S WINDOW(RANGE {w}) JOIN U WINDOW(RANGE 3) "
    "ON S.k = U.k JOIN R ON S.k = R.k",
    "two tables": "SELECT x, R.v, C.v AS c FROM S WINDOW(RANGE {w}) JOIN R ON S.k = R.k "
    "LEFT JOIN C ON S.k = C.k",
    "derived": "SELECT v, COUNT(*) AS n FROM ISTREAM(SELECT v FROM S JOIN R ON S.k = R.k) Q "
    "WINDOW(RANGE {w}) GROUP BY v",
}
COUNTED = {
    "rows": "SELECT x, v FROM S WINDOW(ROWS 2) JOIN R ON S.k = R.k",
    "partitions": "SELECT x, v FROM S WINDOW(PARTITION BY k ROWS 2) LEFT JOIN R ON S.k = R.k",
    "rows without": "SELECT x FROM S WINDOW(ROWS 3) "
    "WHERE NOT EXISTS (SELECT 1 FROM R WHERE R.k = S.k)",
}
SNAPSHOTS = {
    "except": "SELECT k FROM S WINDOW(RANGE {w}) EXCEPT SELECT k FROM R",
    "except all": "SELECT k FROM R EXCEPT ALL SELECT k FROM S WINDOW(RANGE {w})",
    "intersect": "SELECT k FROM R INTERSECT SELECT k FROM S WINDOW(RANGE {w})",
    "union": "SELECT k, x FROM S WINDOW(RANGE {w}) UNION ALL SELECT k, v FROM R",
    "right": "SELECT x, v FROM S WINDOW(RANGE {w}) RIGHT JOIN R ON S.k = R.k",
    "full": "SELECT x, v FROM S WINDOW(RANGE {w}) FULL JOIN R ON S.k = R.k",
    "table left": "SELECT x, v FROM R LEFT JOIN S WINDOW(RANGE {w}) ON S.k = R.k AND x > 2",
    "table anti": "SELECT v FROM R LEFT ANTI JOIN S WINDOW(RANGE {w}) ON S.k = R.k",
    "table counts": "SELECT v, (SELECT COUNT(*) FROM S WINDOW(RANGE {w}) WHERE S.k = R.k) AS n "
    "FROM R",
    "many rows": "SELECT x, v FROM S WINDOW(ROWS 3) JOIN R ON S.k = R.k",
    "of groups": "SELECT n, v FROM (SELECT k, COUNT(*) AS n FROM S WINDOW(RANGE {w}) GROUP BY k) Q "
    "JOIN R ON Q.k = R.k",
    "came": "SELECT x, v FROM S JOIN ISTREAM(R) WINDOW(RANGE {w}) I ON S.k = I.k",
    "went": "SELECT x, v FROM S WINDOW(RANGE {w}) JOIN DSTREAM(R) D ON S.k = D.k",
    "last that came": "SELECT x, v FROM S JOIN ISTREAM(R) WINDOW(ROWS 2) I ON S.k = I.k",
    "alone": "SELECT COUNT(*) AS n, SUM(v) AS s FROM R EMIT FINAL",
    "with another": "SELECT R.k, R.v, C.v AS c FROM R LEFT JOIN C ON R.k = C.k EMIT FINAL",
}


@dataclass
class Change:
    """Rows that come (k, v) or go, at an instant or without a time."""

    at: int | None
    kind: str
    k: int | None
    v: int

    def row(self) -> dict[str, Any]:
        return {"k": self.k, "v": self.v}


@dataclass
class RelationCase:
    tape: Tape
    changes: list[Change] = field(default_factory=list)
    streams: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    kind: str = ""
    shape: str = ""

    def __post_init__(self) -> None:
        pick = self.tape.pick
        kinds = ("retroactive", "non retroactive", "since", "constant", "temporal")
        self.kind = self.kind or pick(*kinds)
        self.has_key = pick(True, False) or self.shape in COUNTED
        self.width = pick(3, 1, 6)
        shapes = dict(LOOKUPS)
        if self.has_key or self.kind != "non retroactive":
            shapes |= COUNTED
        if self.kind != "non retroactive":
            shapes |= SNAPSHOTS
        self.shape = self.shape or pick(*shapes)
        self.text = shapes[self.shape].format(w=self.width)
        for name in ("S", "U"):
            self.streams[name] = [self._row() for _ in range(self.tape.number(8))]
        for rows in self.streams.values():
            rows.sort(key=lambda row: row["t"])
        self.changes = self._drawn_changes()

    def _row(self) -> dict[str, Any]:
        pick = self.tape.pick
        return {"t": pick(*TIMES), "k": pick(*KEYS), "x": pick(1, 2, 3, 5)}

    def _drawn_changes(self) -> list[Change]:
        """In order of time; what has no time first."""
        pick = self.tape.pick
        keys = KEYS[:-1] if self.has_key else KEYS
        first = [
            Change(None, "insert", pick(*keys), pick(1, 2, 5, 7)) for _ in range(pick(0, 1, 3))
        ]
        times = sorted(pick(-3, *TIMES, 16) for _ in range(self.tape.number(7)))
        kinds = ("insert", "insert", "delete")
        later = [Change(at, pick(*kinds), pick(*keys), pick(1, 2, 5, 7)) for at in times]
        return first + later

    # --- in a session ----------------------------------------------------------------------------

    def session(self, **options: Any) -> ms.Session:
        """The streams and the tables, R without rows yet."""
        session = ms.Session(**options)
        for name, rows in self.streams.items():
            schema = {"t": "BIGINT", "k": "BIGINT", "x": "BIGINT"}
            session.stream(name, rows, "t", schema=schema)
        session.table("C", [{"k": 1, "v": 10}, {"k": 2, "v": 20}], key="k", changes="constant")
        self.add_table(session)
        return session

    def add_table(self, session: ms.Session) -> TableHandle:
        schema = {"k": "BIGINT", "v": "BIGINT"}
        key = "k" if self.has_key else ()
        if self.kind == "temporal":
            schema |= {"a": "BIGINT", "b": "BIGINT"}
            return session.table("R", time=("a", "b"), schema=schema)
        if self.kind == "since":
            return session.table("R", key=key, time="a", schema=schema | {"a": "BIGINT"})
        return session.table("R", key=key, changes=self.kind, schema=schema)

    def apply(self, table: TableHandle, change: Change) -> None:
        """A change as the kind has it; one that the table cannot have is none."""
        rows = table.rows().to_pylist()
        present = [row for row in rows if row["k"] == change.k]
        if self.kind == "temporal":
            start = -9 if change.at is None else change.at
            table.insert(change.row() | {"a": start, "b": start + change.v})
        elif change.kind == "delete":
            if present and self.kind != "constant":
                table.delete(present if self.has_key else present[0], at=change.at)
        elif self.kind == "constant":
            if not (present and self.has_key):
                table.insert(change.row())
        elif self.kind == "since":
            since = -9 if change.at is None else change.at
            if not (present and self.has_key):
                table.insert(change.row() | {"a": since})
        elif self.has_key:
            table.upsert(change.row(), at=change.at)
        else:
            table.insert(change.row(), at=change.at)

    def filled(self, **options: Any) -> ms.Session:
        session = self.session(**options)
        table = TableHandle(session._origins._held["R"])  # type: ignore[arg-type]
        for change in self.changes:
            self.apply(table, change)
        return session

    def __str__(self) -> str:
        lines = [f"{self.kind} key={self.has_key} {self.shape}: {self.text}"]
        lines += [f"{name}: {rows}" for name, rows in self.streams.items()]
        return "\n".join([*lines, *map(str, self.changes)])
