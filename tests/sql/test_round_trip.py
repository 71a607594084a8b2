"""A statement that is printed and read again is the same statement."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from effort import examples
from millstream.model.errors import MillstreamError
from millstream.sql.parser import parse

TESTS = Path(__file__).parent.parent
drawn = settings(max_examples=examples(60))


def check(text: str, **parameters: object) -> None:
    for statement in parse(text, parameters):
        printed = str(statement)
        assert parse(printed, parameters) == [statement], printed
        assert str(parse(printed, parameters)[0]) == printed


# --- statements of every kind ---------------------------------------------------------------------

PLAIN_NAMES = ["a", "b", "Bid", "price", "t1", "x_y", "Auction"]
ODD_NAMES = ["two words", "select", "a`b", "a'b", 'a"b', "é∞", "1st", "a.b", "-- x", "/* */", "a;b"]
WORDS_AS_NAMES = ["window", "range", "rows", "emit", "stream", "source", "delay", "unit", "now"]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


names = st.one_of(
    st.sampled_from(PLAIN_NAMES),
    st.sampled_from(PLAIN_NAMES + ODD_NAMES + WORDS_AS_NAMES).map(_quoted),
)
strings = st.one_of(
    st.sampled_from(["a", "", "it''s", "\\\\", "\\'", "%", "WINDOW(ROWS 1)", "é∞", '"', "`", ";"]),
    st.text(st.characters(codec="utf-8", exclude_characters="'\\\x00\r"), max_size=6),
).map(lambda text: f"'{text}'")
numbers = st.one_of(
    st.integers(0, 10**20).map(str),
    st.decimals(0, 1000, places=3).map(str),
    st.sampled_from(["1e3", "2.5E-7", "0.0", "1L", "3.0D"]),
)
counts = st.integers(1, 10**12).map(str)
units = st.sampled_from(["MICROSECOND", "MILLISECONDS", "SECOND", "MINUTES", "HOUR", "DAYS"])
durations = st.one_of(
    st.tuples(st.integers(0, 10**9).map(str), units).map(" ".join),
    st.tuples(st.decimals(0, 100, places=6).map(str), units).map(" ".join),
    st.integers(1, 10**18).map(str),
)
types = st.recursive(
    st.sampled_from(
        ["INT", "BIGINT", "DOUBLE", "STRING", "BOOLEAN", "DATE", "TIMESTAMP", "DECIMAL(9, 2)"]
    ),
    lambda inner: st.one_of(
        inner.map("ARRAY<{}>".format),
        st.tuples(names, inner).map(lambda pair: f"STRUCT<{pair[0]}: {pair[1]}>"),
    ),
    max_leaves=3,
)


@st.composite
def windows(draw: st.DrawFn) -> str:
    size = draw(
        st.one_of(
            durations.map("RANGE {}".format),
            counts.map("ROWS {}".format),
            st.sampled_from(["NOW", "UNBOUNDED", "RANGE NOW", "RANGE UNBOUNDED", "ROWS UNBOUNDED"]),
            st.tuples(durations, durations).map(lambda d: f"RANGE MIN {d[0]}, MAX {d[1]}"),
            st.tuples(counts, counts).map(lambda d: f"ROWS MIN {d[0]}, MAX {d[1]}"),
        )
    )
    if draw(st.booleans()):
        step = counts if size.startswith("ROWS") else durations
        size = f"{size} SLIDE {draw(step)}"
    if draw(st.booleans()):
        columns = draw(st.lists(names, min_size=1, max_size=2))
        size = f"PARTITION BY {', '.join(columns)} {size}"
    return draw(st.sampled_from(["WINDOW({})", "[{}]", "window ( {} )"])).format(size)


granularities = st.one_of(
    durations.map("GRANULARITY({})".format),
    st.tuples(durations, durations).map(lambda d: f"GRANULARITY(COARSEST {d[0]}, FINEST {d[1]})"),
)

columns = st.one_of(names, st.tuples(names, names).map(".".join))


def _expressions(queries: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    leaves = st.one_of(columns, numbers, strings, st.sampled_from(["NULL", "TRUE", ":p"]))

    def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        two = st.tuples(inner, inner)
        operators = st.sampled_from(
            ["+", "-", "/", "%", "||", "=", "<>", "<", ">=", "<=>", "AND", "OR"]
        )
        return st.one_of(
            st.tuples(inner, operators, inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
            inner.map("(NOT ({}))".format),
            inner.map("- ({})".format),
            inner.map("(({}) IS NOT NULL)".format),
            two.map(lambda t: f"CASE WHEN {t[0]} THEN {t[1]} ELSE 0 END"),
            two.map(lambda t: f"(({t[0]}) IN ({t[1]}, 1))"),
            two.map(lambda t: f"(({t[0]}) BETWEEN 1 AND ({t[1]}))"),
            st.tuples(inner, types).map(lambda t: f"CAST({t[0]} AS {t[1]})"),
            st.tuples(st.sampled_from(["ABS", "UPPER", "COALESCE", "my_function"]), inner).map(
                lambda t: f"{t[0]}({t[1]})"
            ),
            inner.map("SUM({})".format),
            inner.map("COUNT(DISTINCT {})".format),
            queries.map("({})".format),
            queries.map("EXISTS ({})".format),
            st.tuples(inner, queries).map(lambda t: f"(({t[0]}) IN ({t[1]}))"),
            st.tuples(inner, queries).map(lambda t: f"(({t[0]}) > ALL ({t[1]}))"),
        )

    return st.recursive(leaves, grown, max_leaves=4)


@st.composite
def references(draw: st.DrawFn, queries: st.SearchStrategy[str]) -> str:
    kind = draw(st.sampled_from(["name", "name", "name", "subquery", "function", "function query"]))
    alias = draw(st.one_of(st.just(""), names.map(" AS {}".format), names.map(" {}".format)))
    clauses = " ".join(
        draw(st.one_of(st.just(""), clause)) for clause in (windows(), granularities)
    ).strip()
    clauses = f" {clauses}" if clauses else ""
    if kind == "name":
        return draw(st.sampled_from(["{0}{1}{2}", "{0}{2}{1}"])).format(draw(names), clauses, alias)
    if kind == "subquery":
        text = draw(st.sampled_from(["({0}){1}{2}", "({0}){2}{1}"]))
        return text.format(draw(queries), clauses, alias)
    inner = f"{draw(names)}{clauses}" if kind == "function" else draw(queries)
    return f"{draw(st.sampled_from(['ISTREAM', 'DSTREAM', 'RSTREAM']))}({inner}){alias}"


@st.composite
def selects(draw: st.DrawFn, queries: st.SearchStrategy[str]) -> str:
    expressions = _expressions(queries)
    item = st.one_of(
        st.tuples(expressions, names).map(" AS ".join), expressions, st.just("*"), columns
    )
    items = ", ".join(draw(st.lists(item, min_size=1, max_size=3)))
    if draw(st.integers(0, 5)) == 0:
        items = f"ISTREAM({items})"
    text = f"SELECT {draw(st.sampled_from(['', 'DISTINCT ']))}{items} FROM "
    text += draw(references(queries))
    for _ in range(draw(st.integers(0, 2))):
        other = draw(references(queries))
        join = draw(
            st.sampled_from(
                [", {}", " CROSS JOIN {}", " NATURAL JOIN {}", " JOIN {} USING (a)",
                 " LEFT JOIN {} ON TRUE", " FULL JOIN {} ON TRUE", " LEFT SEMI JOIN {} ON a = b"]
            )
        )  # fmt: skip
        text += join.format(other.replace("{", "{{").replace("}", "}}"))
    if draw(st.booleans()):
        text += f" WHERE {draw(expressions)}"
    if draw(st.booleans()):
        text += f" GROUP BY {', '.join(draw(st.lists(columns, min_size=1, max_size=2)))}"
        if draw(st.booleans()):
            text += f" HAVING {draw(expressions)}"
    if draw(st.integers(0, 3)) == 0:
        text += f" ORDER BY {draw(columns)} DESC NULLS LAST LIMIT {draw(counts)}"
    return text


def _grown_queries(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT"])
    return st.one_of(
        selects(inner),
        st.tuples(inner, operators, inner).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
        st.tuples(names, inner, inner).map(lambda t: f"WITH {t[0]} AS ({t[1]}) ({t[2]})"),
    )


smallest = st.tuples(names, st.one_of(st.just(""), windows())).map(
    lambda t: f"SELECT a FROM {t[0]} {t[1]}"
)
queries = st.recursive(smallest, _grown_queries, max_leaves=3)
emitted = st.tuples(queries, st.sampled_from(["", " EMIT FINAL", " EMIT CHANGES"])).map("".join)


@st.composite
def connectors(draw: st.DrawFn) -> str:
    literals = st.one_of(
        strings.filter(lambda text: "''" not in text[1:-1]),
        st.integers(-(10**20), 10**20).map(str),
        st.sampled_from(["TRUE", "NULL", "-2.5"]),
    )
    values = draw(st.lists(literals, max_size=2))
    keys = draw(st.lists(names, max_size=2, unique_by=lambda name: name.strip("`").lower()))
    arguments = [*values, *(f"{key} => {draw(literals)}" for key in keys)]
    return f"{draw(names)}({', '.join(arguments)})"


@st.composite
def definitions(draw: st.DrawFn) -> str:
    columns = draw(
        st.lists(
            st.tuples(names, types, st.sampled_from(["", " NOT NULL"])).map(
                lambda t: f"{t[0]} {t[1]}{t[2]}"
            ),
            min_size=1,
            max_size=3,
        )
    )
    if draw(st.booleans()):
        columns.append(f"UNIQUE ({draw(names)}, {draw(names)})")
    text = f"CREATE STREAM {draw(names)} ({', '.join(columns)}) SOURCE {draw(connectors())}"
    unit = draw(st.one_of(st.just(""), units.map(" UNIT {}".format)))
    match draw(st.sampled_from(["nothing", "ordered", "valid"])):
        case "ordered":
            text += f" ORDERED BY {draw(names)}{unit}"
            text += draw(st.one_of(st.just(""), durations.map(" DELAY {}".format)))
            text += draw(st.one_of(st.just(""), durations.map(" IDLE AFTER {}".format)))
        case "valid":
            text += f" VALID FROM {draw(names)} TO {draw(names)}{unit}"
    if draw(st.booleans()):
        text += f" WITH (rate = {draw(rates)}, distinct({draw(names)}) = {draw(rates)})"
    return text


rates = st.one_of(
    st.integers(1, 10**9).map(str), st.sampled_from(["0.1", "1234567.25", "1e-9", "3.5e12"])
)
others = st.one_of(
    st.tuples(st.sampled_from(["DROP STREAM", "DROP QUERY", "STOP QUERY"]), names).map(" ".join),
    st.sampled_from(["SHOW STREAMS", "SHOW QUERIES"]),
)


@drawn
@given(emitted)
def test_queries(text: str) -> None:
    check(text, p=1)


@drawn
@given(definitions())
def test_definitions(text: str) -> None:
    check(text)


@drawn
@given(st.tuples(connectors(), emitted).map(lambda t: f"INSERT INTO {t[0]} {t[1]}"))
def test_inserts(text: str) -> None:
    check(text, p=1)


@drawn
@given(st.tuples(names, queries).map(lambda t: f"CREATE STREAM {t[0]} AS {t[1]}"))
def test_derived_streams(text: str) -> None:
    check(text, p=1)


@given(others)
def test_other_statements(text: str) -> None:
    check(text)


# --- the text that other tests have ---------------------------------------------------------------


def _statements_of_tests() -> Iterator[str]:
    for file in sorted(TESTS.rglob("*.sql")):
        yield file.read_text(encoding="utf-8")
    for file in sorted((TESTS / "errors").glob("*.txt")):
        for case in file.read_text(encoding="utf-8").split("====\n"):
            statement, _, message = case.partition("\n----\n")
            # What there is not, the dialect may print in other words: TO_CHAR(x, f) as CAST.
            unknown = "is not supported" in message or 'error: function "' in message
            if not unknown:
                yield statement.partition("\n")[2]
    first = "SELECT|WITH|CREATE|INSERT INTO|UPDATE|DELETE FROM|MERGE INTO"
    literal = re.compile(rf'"((?:{first})\b[^"\n]*)"')
    for file in sorted(TESTS.rglob("test_*.py")):
        found = literal.findall(file.read_text(encoding="utf-8"))
        # Not the templates, nor what only PostgreSQL has.
        yield from (text for text in found if "{" not in text and "generate_series" not in text)


def test_every_statement_of_the_tests() -> None:
    """Those that parse; there are many, or the collection is broken."""
    seen = 0
    for text in _statements_of_tests():
        try:
            parse(text, {"p": 1, "q": 2})
        except MillstreamError:
            continue
        check(text, p=1, q=2)
        seen += 1
    assert seen > 250


@pytest.mark.parametrize(
    "text",
    [
        "SELECT price FROM Bid WINDOW(RANGE 0.1 SECONDS) WHERE price > 0.1 EMIT CHANGES",
        "SELECT price FROM Bid [PARTITION BY auction ROWS 3 SLIDE 2] AS b",
        "SELECT ISTREAM(price) FROM Bid WINDOW(UNBOUNDED)",
        "SELECT price FROM ISTREAM(Bid WINDOW(ROWS 3)) AS b",
        "SELECT price FROM (SELECT price FROM Bid) GRANULARITY(1 SECOND)",
    ],
)
def test_a_printed_query_binds_to_the_same_plan(text: str) -> None:
    session = ms.Session()
    session.sql(
        "CREATE STREAM Bid (auction INT, price DOUBLE, ts TIMESTAMP) SOURCE f() ORDERED BY ts"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = session.sql(text)
        second = session.sql(str(parse(text)[0]))
    assert first.plan == second.plan
