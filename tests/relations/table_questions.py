"""Random queries over tables, in our words and in DuckDB's.

`T` has duplicates and NULLs, `U` is joined with it. Rows of one table, also through filters,
subqueries in FROM and IN, are in the order in which they came; those of joins, UNION ALL and
DISTINCT in that of their columns, from left to right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st
from table_judge import PLACE

T = {"id": "INT", "k": "STRING", "v": "BIGINT", "d": "DOUBLE", "b": "BOOLEAN"}
U = {"id": "INT", "w": "BIGINT"}

PREDICATES = (
    "TRUE", "{t}id > 1", "{t}id <= 2", "{t}k = 'a'", "{t}k IS NULL", "{t}v IS NOT NULL", "{t}b",
    "{t}v = 1 OR {t}k <> 'b'", "{t}d < 1", "NOT {t}b", "{t}id = 2",
)  # fmt: skip


@dataclass(frozen=True)
class Question:
    ours: str
    theirs: str


@dataclass(frozen=True)
class Rows:
    """A FROM clause in both dialects, with its columns and what its rows are in order of; `of` is
    what must stand before the names of columns."""

    ours: str
    theirs: str
    columns: dict[str, str]
    order: tuple[str, ...]
    of: str = ""


# --- aggregates -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """A call of an aggregate: its argument, the conditions of FILTER, and the order of the rows."""

    x: str
    y: str
    distinct: bool
    conditions: tuple[str, ...]
    order: tuple[str, ...]

    @property
    def d(self) -> str:
        return "DISTINCT " if self.distinct else ""

    def filter(self, *more: str) -> str:
        conditions = [*self.conditions, *more]
        return f" FILTER (WHERE {' AND '.join(f'({c})' for c in conditions)})" if conditions else ""

    def ordered(self, how: str) -> str:
        return ", ".join(f"{column} {how}" for column in self.order)


Theirs = Callable[[Call], str]


def _plain(name: str) -> Theirs:
    return lambda call: f"{name}({call.d}{call.x}){call.filter()}"


def _first(how: str) -> Theirs:
    return lambda call: f"FIRST({call.x} ORDER BY {call.ordered(how)}){call.filter()}"


def _array(call: Call) -> str:
    present = call.filter(f"{call.x} IS NOT NULL")
    values = f"COALESCE(LIST({call.x} ORDER BY {call.ordered('NULLS FIRST')}){present}, [])"
    if call.distinct:
        values = f"LIST_FILTER({values}, LAMBDA x_, i_: LIST_POSITION({values}, x_) = i_)"
    return f"CASE WHEN COUNT(*){call.filter()} > 0 THEN {values} END"


def _by(how: str, nulls: str) -> Theirs:
    def text(call: Call) -> str:
        order = f"{call.y} {how}, {call.x} {how} NULLS {nulls}"
        return f"FIRST({call.x} ORDER BY {order}){call.filter(f'{call.y} IS NOT NULL')}"

    return text


def _quantile(share: str) -> Theirs:
    return lambda c: f"QUANTILE_CONT({c.d}CAST({c.x} AS DOUBLE), {share}){c.filter()}"


def _pair(call: Call) -> str:
    both = f"{call.x} IS NOT NULL AND {call.y} IS NOT NULL"
    return f"COUNT({call.d}CASE WHEN {both} THEN ROW({call.x}, {call.y}) END){call.filter()}"


# What we call it, the types of its argument, and DuckDB's words for it.
NUMBERS, ANYTHING = ("INT", "BIGINT", "DOUBLE"), ("INT", "BIGINT", "DOUBLE", "STRING", "BOOLEAN")
AGGREGATES: dict[str, tuple[tuple[str, ...], Theirs]] = {
    "COUNT({d}{x})": (ANYTHING, _plain("COUNT")),
    "COUNT({d}{x}, {y})": (ANYTHING, _pair),
    "COUNT_IF({x})": (("BOOLEAN",), lambda c: f"COUNT(CASE WHEN {c.x} THEN 1 END){c.filter()}"),
    "SUM({d}{x})": (NUMBERS, _plain("SUM")),
    "AVG({d}{x})": (NUMBERS, _plain("AVG")),
    "MIN({d}{x})": (ANYTHING, _plain("MIN")),
    "MAX({d}{x})": (ANYTHING, _plain("MAX")),
    "MIN_BY({x}, {y})": (ANYTHING, _by("ASC", "FIRST")),
    "MAX_BY({x}, {y})": (ANYTHING, _by("DESC", "LAST")),
    "BOOL_AND({x})": (("BOOLEAN",), _plain("BOOL_AND")),
    "BOOL_OR({x})": (("BOOLEAN",), _plain("BOOL_OR")),
    "VAR_SAMP({d}{x})": (NUMBERS, _plain("VAR_SAMP")),
    "VAR_POP({d}{x})": (NUMBERS, _plain("VAR_POP")),
    "STDDEV_SAMP({d}{x})": (NUMBERS, _plain("STDDEV_SAMP")),
    "STDDEV_POP({d}{x})": (NUMBERS, _plain("STDDEV_POP")),
    "MEDIAN({d}{x})": (NUMBERS, _quantile("0.5")),
    "QUANTILE({x}, 0.25)": (NUMBERS, _quantile("0.25")),
    "FIRST({x})": (ANYTHING, _first("ASC NULLS FIRST")),
    "ANY_VALUE({x})": (ANYTHING, _first("ASC NULLS FIRST")),
    "LAST({x})": (ANYTHING, _first("DESC NULLS LAST")),
    "ARRAY_AGG({d}{x})": (ANYTHING, _array),
    "COLLECT_LIST({d}{x})": (ANYTHING, _array),
}
ORDERED = [name for name in AGGREGATES if name[:3] in ("FIR", "ANY", "LAS", "ARR", "COL")]


@st.composite
def aggregate(draw: st.DrawFn, rows: Rows) -> tuple[str, str]:
    """An aggregate over rows, in both dialects."""
    name = draw(
        st.sampled_from([*AGGREGATES, *ORDERED, *ORDERED])
    )  # those with an order more often
    types, theirs = AGGREGATES[name]
    fitting = [c for c, type in rows.columns.items() if type in types]
    if not fitting:
        return "COUNT(*)", "COUNT(*)"
    x = rows.of + draw(st.sampled_from(fitting))
    y = rows.of + draw(st.sampled_from([*rows.columns]))
    distinct = "{d}" in name and draw(st.booleans())
    conditions = draw(st.sampled_from([(), (), *(((p,)) for p in PREDICATES[1:])]))
    known = all(column in rows.columns for column in ("id", "k", "v", "d", "b"))
    conditions = tuple(c.format(t=rows.of) for c in conditions) if known else ()
    call = Call(x, y, distinct, conditions, rows.order)
    return name.format(d=call.d, x=x, y=y) + call.filter(), theirs(call)


# --- FROM -----------------------------------------------------------------------------------------


def _qualified(table: str, columns: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{table}.{column}" for column in columns)


@st.composite
def rows(draw: st.DrawFn) -> Rows:
    where = draw(st.sampled_from(PREDICATES)).format(t="")
    shape = draw(
        st.sampled_from(
            ["table", "table", "within", "map", "in", "join", "left", "union", "distinct"]
        )
    )
    columns = ", ".join(T)
    by_columns = tuple(T)
    match shape:
        case "table":
            text = f"T WHERE {where}"
            return Rows(text, text, T, (PLACE,))
        case "within":
            text = f"(SELECT {columns} FROM T WHERE {where}) s"
            return Rows(text, text.replace(columns, f"{columns}, {PLACE}"), T, (PLACE,))
        case "map":
            items = "id + 1 AS id, k, v * 2 AS v, d, NOT b AS b"
            text = f"(SELECT {items} FROM (SELECT * FROM T WHERE {where}) i) s"
            return Rows(text, text.replace(items, f"{items}, {PLACE}"), T, (PLACE,))
        case "in":
            text = f"T WHERE id {draw(st.sampled_from(['', 'NOT ']))}IN (SELECT id FROM U)"
            return Rows(text, text, T, (PLACE,))
        case "join" | "left":
            joined = "LEFT JOIN" if shape == "left" else "JOIN"
            text = f"T {joined} U ON T.id = U.id WHERE {where.replace('id', 'T.id')}"
            order = _qualified("T", [*T]) + _qualified("U", [*U])
            return Rows(text, text, T, order, "T.")
        case "union":
            text = (
                f"(SELECT {columns} FROM T UNION ALL SELECT id, k, v, d, b FROM T WHERE {where}) s"
            )
            return Rows(text, text, T, by_columns)
    text = f"(SELECT DISTINCT {columns} FROM T WHERE {where}) s"
    return Rows(text, text, T, by_columns)


# --- queries --------------------------------------------------------------------------------------


@st.composite
def questions(draw: st.DrawFn) -> Question:
    source = draw(rows())
    shape = draw(
        st.sampled_from(["all", "all", "group", "group", "group", "plain", "distinct", "above"])
    )
    if shape in ("plain", "distinct"):
        names = draw(st.lists(st.sampled_from([*T]), min_size=1, max_size=3, unique=True))
        items = ", ".join(f"{source.of}{name} AS {name}" for name in names)
        word = "SELECT DISTINCT" if shape == "distinct" else "SELECT"
        return Question(
            f"{word} {items} FROM {source.ours}", f"{word} {items} FROM {source.theirs}"
        )
    calls = [draw(aggregate(source)) for _ in range(draw(st.integers(1, 3)))]
    keys = []
    if shape != "all":
        keys = draw(
            st.lists(st.sampled_from(["k", "b", "id"]), min_size=1, max_size=2, unique=True)
        )
    having = draw(aggregate(source)) if keys and draw(st.booleans()) else None
    texts = []
    for dialect, whence in ((0, source.ours), (1, source.theirs)):
        items = [f"{source.of}{key} AS {key}" for key in keys]
        items += [f"{call[dialect]} AS c{n}" for n, call in enumerate(calls)]
        text = f"SELECT {', '.join(items)} FROM {whence}"
        if keys:
            text += f" GROUP BY {', '.join(source.of + key for key in keys)}"
        if having is not None:
            text += f" HAVING {having[dialect]} IS NOT NULL"
        if shape == "above":
            text = f"SELECT COUNT(*) AS n, COUNT(c0) AS m FROM ({text}) g"
        texts.append(text)
    return Question(*texts)
