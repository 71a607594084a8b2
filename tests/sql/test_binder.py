"""What names, groups and joins mean, at one instant over tiny streams."""

from __future__ import annotations

import warnings

import pyarrow as pa
import pytest

import millstream as ms


@pytest.fixture(scope="module")
def session() -> ms.Session:
    session = ms.Session()
    session.stream("A", [(1, 1, 10), (1, 2, 20), (1, None, 30)], "t", schema=columns("txy"))
    session.stream("B", [(1, 1, 100), (1, 1, 101), (1, 3, 102)], "t", schema=columns("txz"))
    session.stream("C", [(1, 1, 7), (1, 4, 8)], "t", schema=columns("txw"))
    session.stream("E", [], "t", schema=columns("txv"))
    struct = pa.array([{"x": 1, "y": {"z": "q"}}])
    session.stream("R", pa.table({"t": [1], "st": struct}), "t")
    return session


def columns(names: str) -> dict[str, str]:
    return dict.fromkeys(names, "BIGINT")


def rows(session: ms.Session, text: str, **parameters: object) -> list[tuple[object, ...]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = session.sql(text, **parameters).snapshot(1)
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # An aggregate below a form that is written in other words.
        ("SELECT CASE COUNT(*) WHEN 3 THEN 'a' ELSE 'b' END FROM A", [("a",)]),
        ("SELECT COUNT(*) IS DISTINCT FROM 3, isnotnull(MAX(x)) FROM A", [(False, True)]),
        ("SELECT COUNT(*) NOT IN (1, 2), MAX(x) NOT BETWEEN 1 AND 2 FROM A", [(True, False)]),
        # A comma binds less tightly than JOIN; CROSS JOIN does not.
        ("SELECT C.w FROM E, B RIGHT JOIN C ON B.x = C.x", []),
        ("SELECT C.w FROM E CROSS JOIN B RIGHT JOIN C ON B.x = C.x", [(7,), (8,)]),
        ("SELECT A.y FROM A, (SELECT x FROM B) q LEFT JOIN C ON q.x = C.x WHERE A.x = q.x",
         [(10,), (10,)]),
        ("SELECT C.x FROM E, (SELECT (1 + 2) AS k, x FROM B) q RIGHT JOIN C ON q.x = C.x", []),
        ("SELECT A.x FROM E, (SELECT CAST(1 AS BIGINT) AS k FROM B) b RIGHT JOIN A ON b.k = A.x",
         []),
        ("SELECT A.x FROM E, (SELECT TRUE FROM B) RIGHT JOIN A ON TRUE", []),
        ("SELECT A.x FROM E, ((SELECT TRUE FROM (B))) RIGHT JOIN A ON TRUE", []),
        ("SELECT q.x FROM (SELECT B.x FROM E CROSS JOIN A RIGHT JOIN B ON A.x = B.x) q, C",
         [(1,), (1,), (1,), (1,), (3,), (3,)]),
        # Inner names hide outer ones, however they are spelt.
        ("WITH K AS (SELECT x FROM A) "
         "SELECT * FROM (WITH k AS (SELECT z FROM B) SELECT * FROM k) AS q",
         [(100,), (101,), (102,)]),
        # Grouping by a subquery, and HAVING by an alias.
        ("SELECT (SELECT MAX(z) FROM B WHERE B.x = A.x) AS m, COUNT(*) FROM A GROUP BY 1",
         [(None, 2), (101, 1)]),
        ("SELECT (SELECT MAX(z) FROM B WHERE B.x = A.x) AS m, COUNT(*) FROM A GROUP BY m",
         [(None, 2), (101, 1)]),
        ("SELECT x, COUNT(*) AS n FROM B GROUP BY x HAVING n > 1", [(1, 2)]),
        # Brackets in FROM.
        ("SELECT A.y FROM ((A)), ((SELECT w FROM C)) c WHERE A.x = 1", [(10,), (10,)]),
        ("SELECT s.z FROM ((SELECT * FROM B) AS s JOIN A USING (x))", [(100,), (101,)]),
        ("SELECT A.y FROM A RIGHT JOIN (C JOIN B USING (x)) USING (x)", [(10,), (10,)]),
        # Correlated through outer joins.
        ("SELECT y FROM A WHERE 4 = (SELECT MAX(c.x) FROM B RIGHT JOIN C c ON B.x = A.x)",
         [(10,), (20,), (30,)]),
        ("SELECT y, (SELECT COUNT(B.z) FROM B RIGHT JOIN C c ON B.x = A.x) AS n FROM A",
         [(10, 4), (20, 0), (30, 0)]),
        ("SELECT y, (SELECT COUNT(*) FROM B FULL JOIN C ON B.x = C.x AND C.x = A.x) AS n FROM A",
         [(10, 4), (20, 5), (30, 5)]),
        # Fields of structs, strings side by side, and the order under a scalar subquery.
        ("SELECT st.y.z, R.st.x FROM R", [("q", 1)]),
        ("SELECT 'a' 'b' FROM C", [("ab",), ("ab",)]),
        ("SELECT LAST(y), FIRST(y) FROM A WHERE y > (SELECT MIN(w) FROM C)", [(30, 10)]),
        ("(SELECT y FROM A ORDER BY y LIMIT 2) ORDER BY y DESC LIMIT 1", [(20,)]),
        ("SELECT y FROM A ORDER BY y DESC FETCH FIRST 1 ROWS ONLY", [(30,)]),
        # A bracket with an alias has the merged column once.
        ("SELECT q.x FROM (A FULL JOIN B USING (x)) AS q", [(None,), (1,), (1,), (2,), (3,)]),
        ("SELECT x FROM A FULL JOIN (B FULL JOIN C USING (x)) AS q USING (x) WHERE x > 2",
         [(3,), (4,)]),
        # A join inside the right side of another.
        ("SELECT y, z, w FROM A LEFT JOIN B JOIN C ON B.x = C.x ON A.x = B.x",
         [(10, 100, 7), (10, 101, 7), (20, None, None), (30, None, None)]),
        # Keywords as names, and comments between two words of one keyword.
        ("SELECT q.limit FROM (SELECT w AS limit FROM C) AS q", [(7,), (8,)]),
        ("SELECT COUNT(*) FROM C GROUP /* by what? */ BY x > 100", [(2,)]),
    ],
)  # fmt: skip
def test_answer(session: ms.Session, text: str, expected: list[tuple[object, ...]]) -> None:
    assert rows(session, text) == expected


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT * FROM A JOIN B USING (x) JOIN C USING (x)", "x t y t_1 z t_2 w"),
        ("SELECT * FROM A FULL JOIN B USING (x) FULL JOIN C USING (x)", "x t y t_1 z t_2 w"),
        ("SELECT * FROM A NATURAL JOIN B NATURAL JOIN C", "t x y z w"),
        ("SELECT * FROM (A LEFT JOIN B ON A.x = B.x) AS ab", "t x y t_1 x_1 z"),
    ],
)
def test_columns_of_star(session: ms.Session, text: str, names: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert session.sql(text).schema.names == names.split()


@pytest.mark.parametrize(
    ("joined", "names"),
    [
        ("A JOIN B USING (k)", "k x a b j"),
        ("A JOIN B USING (k) JOIN C USING (j)", "j k x a b c k_1"),
        ("A JOIN B USING (k) JOIN C USING (k)", "k x a b j j_1 c"),
        ("A JOIN B USING (k) LEFT JOIN C USING (j)", "j k x a b c k_1"),
        ("A JOIN D USING (x) JOIN B USING (k)", "k x a d b j"),
        ("A NATURAL JOIN D NATURAL JOIN B NATURAL JOIN C", "k j x a d b c"),
        ("A JOIN (B JOIN C USING (j)) ON A.k = B.k", "x a k j b k_1 c k_2"),
        ("A LEFT SEMI JOIN B USING (k)", "k x a"),
        ("A JOIN B USING (k), C", "k x a b j j_1 c k_1"),
    ],
)
def test_columns_of_star_over_joins_in_a_chain(joined: str, names: str) -> None:
    """As in Spark: those of USING, then those of the left side, then those of the right."""
    session = ms.Session(engine="local")
    for stream, columns in (("A", "xak"), ("B", "bkj"), ("C", "jck"), ("D", "dx")):
        session.stream(stream, pa.table({c: [1] for c in columns}), time=columns[0])
    plan = session.sql(f"SELECT * FROM {joined}").plan
    assert " ".join(field.name for field in plan.schema) == names


def test_the_second_of_two_equal_names_has_its_own_values(session: ms.Session) -> None:
    found = rows(session, "SELECT x, x_1 FROM (A LEFT JOIN B ON A.x = B.x) AS ab")
    assert found == [(None, None), (1, 1), (1, 1), (2, None)]


def test_limit_takes_a_parameter(session: ms.Session) -> None:
    assert rows(session, "SELECT y FROM A ORDER BY y DESC LIMIT :n", n=2) == [(20,), (30,)]


def test_a_column_that_an_outer_join_pads_may_be_null() -> None:
    """NOT IN must count the padded NULL, although the column is declared NOT NULL."""
    session = ms.Session()
    data = {"l": [(1, 1)], "r": [(1, 1)], "c": [(1, 9)], "d": [(1, 5)]}
    session.source("memory", lambda name: data[name])
    for name in data:
        session.sql(
            f"CREATE STREAM {name} (t BIGINT, {'xxkd'['lrcd'.index(name)]} BIGINT NOT NULL) "
            f"SOURCE memory('{name}') ORDERED BY t"
        )
    text = (
        "SELECT x, k FROM l JOIN r USING (x) RIGHT JOIN c ON l.x = c.k "
        "WHERE x NOT IN (SELECT d FROM d)"
    )
    assert rows(session, text) == []


# --- messages ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT CORR(x, y) FROM A", 'function "corr" does not exist'),
        ("SELECT split('a', ',') FROM A", 'function "split" does not exist'),
        ("SELECT (SELECT SUM(A.y) FROM C) FROM A",
         "an aggregate in a subquery must use a column of the subquery"),
        ("SELECT * FROM A AS t(c, c, d)", 'the alias names column "c" twice'),
        ("WITH k(c, c, d) AS (SELECT * FROM A) SELECT * FROM k", 'WITH names column "c" twice'),
        ("SELECT x AS `$y` FROM A", 'the name of a column cannot begin with "$"'),
        ("SELECT y FROM A WINDOW(PARTITION BY zz.x ROWS 1)", '"zz" is not the name of stream "A"'),
        ("SELECT x FROM A, (B JOIN C USING (x))",
         'column "x" is ambiguous: USING or NATURAL merged two of them, and there are others'),
        ("SELECT (SELECT MAX(a.m) OVER () FROM A a) FROM A",
         "OVER is not supported: a window belongs to a stream"),
        ("SELECT y, (SELECT a.m FROM (SELECT MAX(x) AS m FROM A) a "
         "FULL JOIN (SELECT MAX(x) AS m FROM B) b ON a.m = b.m) FROM A",
         "a scalar subquery has at most one row, and this one might have more"),
        ("SELECT ISTREAM(DISTINCT x) FROM A", "DISTINCT must come before ISTREAM"),
        ("SELECT A.y FROM A NATURAL JOIN B ON A.x = 5",
         "a NATURAL JOIN takes no condition"),
        ("SELECT A.y FROM A JOIN B USING (A.x)", "USING takes unqualified columns"),
        ("SELECT A.y FROM A JOIN B USING ()", 'expected a column after USING, found ")"'),
        ("SELECT x AS, y FROM A", 'expected a name after AS, found ","'),
        ("SELECT x FROM A AS", "expected a name after AS, found the end of the statement"),
        ("SELECT x,, y FROM A", 'expected a column or an expression after ",", found ","'),
        ("SELECT , x FROM A", 'expected a column or an expression after SELECT, found ","'),
        ("SELECT ABS(x,) FROM A", 'expected a column or an expression after ",", found ")"'),
        ("SELECT x FROM A,, B", 'expected a stream after ",", found ","'),
        ("SELECT CAST(x AS INT FORMAT 'a') FROM A", "FORMAT is not supported in CAST"),
        ("SELECT ABS(A.*) FROM A", '"*" is not allowed in the select list'),
        ("SELECT INTERVAL x DAY FROM A", "an INTERVAL is a number and a unit"),
        ("SELECT INTERVAL '0.0000001' SECOND FROM A",
         "an INTERVAL is a whole number of microseconds"),
        (f"SELECT INTERVAL '{10**15}' DAY FROM A", "the INTERVAL is out of range"),
        ("SELECT 1e999 FROM A", "the number is too large for DOUBLE"),
        ("SELECT 1e FROM A", '"1e" is not a number'),
        (f"SELECT {10**70} FROM A", "a number has at most 38 digits"),
        ("SELECT x IN () FROM A", "IN takes a list of values or a subquery"),
        ("SELECT CAST(x AS MAP<INT, INT>) FROM A", 'type "MAP<INT, INT>" is not supported'),
        ("SELECT x + ANY (SELECT x FROM B) FROM A", "ANY and ALL follow a comparison"),
        ("SELECT * FROM LATERAL (SELECT 1 FROM A)", "LATERAL is not supported in FROM"),
        ("SELECT * FROM VALUES (1)", "VALUES is not supported in FROM"),
        ("SELECT st.w FROM R", '"st" has no field "w"'),
    ],
)  # fmt: skip
def test_refusal(session: ms.Session, text: str, message: str) -> None:
    with pytest.raises(ms.MillstreamError) as error:
        session.sql(text)
    assert error.value.diagnostic.message == message


def test_a_window_may_follow_a_column_list(session: ms.Session) -> None:
    assert rows(session, "SELECT c2 FROM A AS b (c1, c2, c3) WINDOW(RANGE 2)")[0] == (None,)


def test_nested_brackets_of_joins(session: ms.Session) -> None:
    text = "SELECT x FROM ((A JOIN B USING (x)) JOIN C USING (x))"
    assert rows(session, text) == [(1,), (1,)]


def test_what_was_drawn_stays(session: ms.Session) -> None:
    """A random value belongs to its row, however often the row is read."""
    query = session.sql(
        "WITH d AS (SELECT rand() AS r, y FROM A WINDOW(RANGE 2)) "
        "SELECT a.r = b.r AS same, a.r FROM d a JOIN d b ON a.y = b.y"
    )
    once = query.snapshot(1).to_pylist()
    assert [row["same"] for row in once] == [True] * 3
    assert query.snapshot(1).to_pylist() == once


@pytest.mark.parametrize(
    ("digits", "expected"),
    [("", (3, 0)), (", 0", (3, 0)), (", 2", (5, 2)), (", 7", (6, 3)), (", -5", (6, 0))],
)
def test_a_decimal_has_the_digits_that_it_is_rounded_to(
    digits: str, expected: tuple[int, int]
) -> None:
    session = ms.Session(engine="reference")
    session.feed("s", {"d": "DECIMAL(5, 3)"})
    type = session.sql(f"SELECT ROUND(d{digits}) AS r FROM s").schema.field("r").type
    assert (type.precision, type.scale) == expected
