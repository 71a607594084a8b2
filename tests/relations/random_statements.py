"""Random changes of the tables `T` and `U`, carried out by a session and by the judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st
from table_judge import Judge, Merge, Row, literal
from table_questions import PREDICATES, T, U

import millstream as ms

VALUES = {
    "id": st.integers(0, 3),
    "k": st.sampled_from(["a", "b", None]),
    "v": st.sampled_from([0, 1, 2, 5, None]),
    "d": st.sampled_from([0.5, -1.5, 2.0, None]),
    "b": st.sampled_from([True, False, None]),
    "w": st.sampled_from([1, 2, None]),
}
COLUMNS = {"T": T, "U": U}
SETTINGS = {
    "id": ["id + 1", "3 - id", "0"],
    "k": ["'a'", "NULL", "CASE WHEN b THEN 'b' ELSE k END"],
    "v": ["v + 1", "CAST(id AS BIGINT)", "(SELECT MAX(v) FROM T)", "NULL"],
    "d": ["d * 2", "CAST(0.5 AS DOUBLE)"],
    "b": ["NOT b", "id > 1"],
}


def a_row(table: str) -> st.SearchStrategy[Row]:
    return st.tuples(*(VALUES[column] for column in COLUMNS[table]))


@dataclass(frozen=True)
class Insert:
    table: str
    rows: Sequence[Row]

    @property
    def text(self) -> str:
        rows = ", ".join(f"({', '.join(map(literal, row))})" for row in self.rows)
        return f"INSERT INTO {self.table} VALUES {rows}"

    def judge(self, judge: Judge, at: int | None) -> None:
        judge.insert(self.table, self.rows, at)


@dataclass(frozen=True)
class Copy:
    """INSERT INTO T SELECT … FROM T."""

    where: str

    ITEMS = "id + 1, k, v, d, NOT b"
    table = "T"

    @property
    def text(self) -> str:
        return f"INSERT INTO T SELECT {self.ITEMS} FROM T WHERE {self.where}"

    def judge(self, judge: Judge, at: int | None) -> None:
        judge.insert_from("T", self.ITEMS, self.where, at)


@dataclass(frozen=True)
class Delete:
    table: str
    where: str

    @property
    def text(self) -> str:
        return f"DELETE FROM {self.table} WHERE {self.where}"

    def judge(self, judge: Judge, at: int | None) -> None:
        judge.delete(self.table, self.where, at)


@dataclass(frozen=True)
class Update:
    settings: tuple[tuple[str, str], ...]
    where: str

    table = "T"

    @property
    def text(self) -> str:
        given = ", ".join(f"{column} = {value}" for column, value in self.settings)
        return f"UPDATE T SET {given} WHERE {self.where}"

    def judge(self, judge: Judge, at: int | None) -> None:
        judge.update("T", dict(self.settings), self.where, at)


@dataclass(frozen=True)
class MergeInto:
    merge: Merge

    table = "T"

    @property
    def text(self) -> str:
        return self.merge.text("T", [*T])

    def judge(self, judge: Judge, at: int | None) -> None:
        judge.merge("T", self.merge, at)


Statement = Insert | Copy | Delete | Update | MergeInto

predicates = st.sampled_from(PREDICATES).map(lambda text: text.format(t=""))
inserts = st.sampled_from(["T", "T", "T", "U"]).flatmap(
    lambda table: st.builds(Insert, st.just(table), st.lists(a_row(table), min_size=1, max_size=4))
)
deletes = st.builds(Delete, st.just("T"), predicates) | st.builds(
    Delete, st.just("U"), st.sampled_from(["id > 1", "w IS NULL", "TRUE"])
)
settings = st.lists(
    st.sampled_from([(column, value) for column, values in SETTINGS.items() for value in values]),
    min_size=1,
    max_size=2,
    unique_by=lambda setting: setting[0],
).map(tuple)
updates = st.builds(Update, settings, predicates)


@st.composite
def merges(draw: st.DrawFn) -> MergeInto:
    source = draw(st.lists(a_row("T"), min_size=1, max_size=3, unique_by=lambda row: row[0]))
    clauses: list[tuple[str, str, dict[str, str] | None]] = []
    for _ in range(draw(st.integers(0, 2))):
        condition = draw(st.sampled_from(PREDICATES)).format(t="T.")
        clauses.append(
            (
                "MATCHED",
                condition,
                draw(st.sampled_from([None, {"v": "s.v"}, {"k": "s.k", "d": "T.d * 2"}])),
            )
        )
    if draw(st.booleans()):
        clauses.append(("NOT MATCHED", draw(st.sampled_from(PREDICATES)).format(t="s."), None))
    if draw(st.booleans()) or not clauses:
        condition = draw(st.sampled_from(PREDICATES)).format(t="T.")
        action = draw(st.sampled_from([None, {"v": "T.v + 1"}]))
        clauses.append(("NOT MATCHED BY SOURCE", condition, action))
    return MergeInto(Merge(source, clauses))


statements: st.SearchStrategy[Statement] = st.one_of(
    inserts, inserts, st.builds(Copy, predicates), deletes, updates, updates, merges()
)


def carry_out(statement: Statement, session: ms.Session, judge: Judge, at: int | None) -> None:
    """In both, at some instant or without one."""
    session.sql(statement.text if at is None else f"{statement.text} EFFECTIVE AT {at}")
    statement.judge(judge, at)
