"""Every construct of the language is read as what it says, in every spelling."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pytest
from sqlglot import exp

from millstream.model.durations import Duration
from millstream.model.errors import ParseError
from millstream.model.names import Name
from millstream.sql.clauses import Clauses, GranularityClause, Now, RowCount, Unbounded, Window
from millstream.sql.parser import parse
from millstream.sql.statements import (
    ColumnDefinition,
    Connector,
    CreateDerivedStream,
    CreateStream,
    Drop,
    InsertInto,
    Ordering,
    QueryStatement,
    Select,
    Show,
    Statement,
    Statistic,
    Stop,
    Validity,
    clauses_of,
)


def one(text: str, **parameters: object) -> Statement:
    statements = parse(text, parameters)
    assert len(statements) == 1
    return statements[0]


def query(text: str, **parameters: object) -> QueryStatement:
    statement = one(text, **parameters)
    assert isinstance(statement, Select)
    return statement.query


def clauses(text: str, **parameters: object) -> dict[str, Clauses]:
    """The clauses of every reference that has some, by its alias, name or text."""
    found = {}
    for node in query(text, **parameters).tree.walk():
        if clauses_of(node) != Clauses():
            found[node.alias_or_name or type(node).__name__] = clauses_of(node)
    return found


def seconds(amount: int) -> Duration:
    return Duration(Fraction(amount), "SECOND")


RANGE_5 = Clauses(Window("RANGE", seconds(5)))
ROWS_3 = Clauses(Window("ROWS", RowCount(3)))
SECOND = GranularityClause(seconds(1))
BOTH = Clauses(Window("RANGE", seconds(5)), SECOND)


# --- where clauses may stand ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a FROM s", {}),
        ("SELECT a FROM s WINDOW(RANGE 5 SECONDS)", {"s": RANGE_5}),
        ("SELECT a FROM s [RANGE 5 SECONDS]", {"s": RANGE_5}),
        ("SELECT a FROM s[RANGE 5 SECONDS]", {"s": RANGE_5}),
        ("SELECT a FROM s WINDOW(RANGE 5 SECONDS) AS t", {"t": RANGE_5}),
        ("SELECT a FROM s WINDOW(RANGE 5 SECONDS) t", {"t": RANGE_5}),
        ("SELECT a FROM s AS t WINDOW(RANGE 5 SECONDS)", {"t": RANGE_5}),
        ("SELECT a FROM s t WINDOW(RANGE 5 SECONDS)", {"t": RANGE_5}),
        ("SELECT a FROM s t [RANGE 5 SECONDS]", {"t": RANGE_5}),
        ("SELECT a FROM s [RANGE 5 SECONDS] t", {"t": RANGE_5}),
        ("SELECT a FROM s [RANGE 5 SECONDS] AS t", {"t": RANGE_5}),
        ("SELECT a FROM s GRANULARITY(1 SECOND)", {"s": Clauses(None, SECOND)}),
        ("SELECT a FROM s WINDOW(RANGE 5 SECONDS) GRANULARITY(1 SECOND)", {"s": BOTH}),
        ("SELECT a FROM s GRANULARITY(1 SECOND) WINDOW(RANGE 5 SECONDS)", {"s": BOTH}),
        ("SELECT a FROM s WINDOW(RANGE 5 SECONDS) GRANULARITY(1 SECOND) AS t", {"t": BOTH}),
        ("SELECT a FROM s AS t WINDOW(RANGE 5 SECONDS) GRANULARITY(1 SECOND)", {"t": BOTH}),
        ("SELECT a FROM s WINDOW(RANGE 5 SECONDS) AS t GRANULARITY(1 SECOND)", {"t": BOTH}),
        ("SELECT a FROM s [RANGE 5 SECONDS] GRANULARITY(1 SECOND) t", {"t": BOTH}),
        ("SELECT a FROM `s` WINDOW(RANGE 5 SECONDS)", {"s": RANGE_5}),
        ("SELECT a FROM s AS `t u` WINDOW(ROWS 3)", {"t u": ROWS_3}),
        (
            "SELECT a FROM s WINDOW(RANGE 5 SECONDS), t WINDOW(ROWS 3)",
            {"s": RANGE_5, "t": ROWS_3},
        ),
        (
            "SELECT a FROM s WINDOW(RANGE 5 SECONDS) JOIN t WINDOW(ROWS 3) ON s.a = t.a",
            {"s": RANGE_5, "t": ROWS_3},
        ),
        ("SELECT a FROM s JOIN t ON s.a = t.a, u WINDOW(ROWS 3)", {"u": ROWS_3}),
        ("SELECT a FROM s JOIN t USING (a) JOIN u WINDOW(ROWS 3) USING (b)", {"u": ROWS_3}),
        (
            "SELECT a FROM s LEFT OUTER JOIN t x WINDOW(ROWS 3) ON TRUE CROSS JOIN u [ROWS 3]",
            {"x": ROWS_3, "u": ROWS_3},
        ),
        ("SELECT a FROM (SELECT a FROM s) WINDOW(ROWS 3) AS q", {"q": ROWS_3}),
        ("SELECT a FROM (SELECT a FROM s) AS q WINDOW(ROWS 3)", {"q": ROWS_3}),
        ("SELECT a FROM (SELECT a FROM s) WINDOW(ROWS 3)", {"Subquery": ROWS_3}),
        ("SELECT a FROM (SELECT a FROM s) [ROWS 3] WHERE a > 1", {"Subquery": ROWS_3}),
        (
            "SELECT a FROM (SELECT a FROM s WINDOW(RANGE 5 SECONDS)) WINDOW(ROWS 3) q",
            {"s": RANGE_5, "q": ROWS_3},
        ),
        ("SELECT a FROM (s WINDOW(ROWS 3) JOIN t ON TRUE)", {"s": ROWS_3}),
        ("SELECT a FROM ((SELECT a FROM s WINDOW(ROWS 3)))", {"s": ROWS_3}),
        ("SELECT a FROM s WINDOW(ROWS 3) WHERE a IN (SELECT a FROM t [RANGE 5 SECONDS])",
         {"s": ROWS_3, "t": RANGE_5}),
        ("SELECT a FROM s WHERE EXISTS (SELECT 1 FROM t WINDOW(ROWS 3))", {"t": ROWS_3}),
        ("SELECT (SELECT MAX(a) FROM t WINDOW(ROWS 3)) AS m FROM s", {"t": ROWS_3}),
        ("SELECT a FROM s GROUP BY a HAVING MAX(a) > (SELECT MAX(b) FROM t [ROWS 3])",
         {"t": ROWS_3}),
        ("WITH w AS (SELECT a FROM s WINDOW(ROWS 3)) SELECT a FROM w WINDOW(RANGE 5 SECONDS)",
         {"s": ROWS_3, "w": RANGE_5}),
        ("SELECT a FROM s WINDOW(ROWS 3) UNION ALL SELECT a FROM t WINDOW(RANGE 5 SECONDS)",
         {"s": ROWS_3, "t": RANGE_5}),
        ("(SELECT a FROM s WINDOW(ROWS 3)) EXCEPT (SELECT a FROM t)", {"s": ROWS_3}),
        ("SELECT a FROM ISTREAM(s WINDOW(ROWS 3))", {"s": ROWS_3}),
        ("SELECT a FROM istream(s [ROWS 3]) AS t", {"s": ROWS_3}),
        ("SELECT a FROM DSTREAM(SELECT a FROM s WINDOW(ROWS 3))", {"s": ROWS_3}),
        ("SELECT a FROM RSTREAM((SELECT a FROM s WINDOW(ROWS 3)))", {"s": ROWS_3}),
        ("SELECT ISTREAM(a) FROM s [ROWS 3]", {"s": ROWS_3}),
        ("SELECT a FROM s WINDOW(ROWS 3) EMIT CHANGES", {"s": ROWS_3}),
        ("SELECT a FROM s WINDOW(ROWS 3) ORDER BY a LIMIT 5", {"s": ROWS_3}),
    ],
)  # fmt: skip
def test_clauses_belong_to_the_reference_before_them(
    text: str, expected: dict[str, Clauses]
) -> None:
    assert clauses(text) == expected


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ("WINDOW(NOW)", Window("RANGE", Now())),
        ("[NOW]", Window("RANGE", Now())),
        ("[RANGE NOW]", Window("RANGE", Now())),
        ("[RANGE UNBOUNDED]", Window("RANGE", Unbounded())),
        ("[UNBOUNDED]", Window("RANGE", Unbounded())),
        ("[ROWS UNBOUNDED]", Window("ROWS", Unbounded())),
        ("[PARTITION BY c ROWS 3]", Window("ROWS", RowCount(3), None, (Name("c"),))),
        ("[RANGE 5 SECONDS SLIDE 1 SECOND]", Window("RANGE", seconds(5), seconds(1))),
        ("WINDOW(RANGE :d)", Window("RANGE", seconds(5))),
        ("[ROWS :n]", Window("ROWS", RowCount(3))),
    ],
)
def test_windows_of_a_query(window: str, expected: Window) -> None:
    found = clauses(f"SELECT a FROM s {window} AS t", d="5 seconds", n=3)
    assert found == {"t": Clauses(expected)}


def test_an_array_index_is_no_window() -> None:
    tree = query("SELECT a[0], range[rows], b[now] FROM s WHERE a[rows] > 1").tree
    assert all(clauses_of(node) == Clauses() for node in tree.walk())
    assert len(list(tree.find_all(exp.Bracket))) == 4


def test_the_words_of_the_clauses_are_names_elsewhere() -> None:
    text = (
        "SELECT range, rows, slide, now, window, granularity, emit, delay, source, t.valid FROM t"
    )
    names = [column.name for column in query(text).tree.find_all(exp.Column)]
    assert " ".join(names) == "range rows slide now window granularity emit delay source valid"


def test_a_stream_may_be_called_like_a_clause() -> None:
    assert clauses("SELECT a FROM `window` WINDOW(ROWS 3)") == {"window": ROWS_3}
    assert clauses("SELECT a FROM stream WINDOW(ROWS 3)") == {"stream": ROWS_3}


def test_comments_in_odd_places() -> None:
    text = """-- first
    SELECT /* list */ a -- WINDOW(ROWS 1)
    FROM /* from */ s /* before */ WINDOW /* in */ ( -- eh
      ROWS /* count */ 3 /* closing */ ) /* after */ AS -- alias
      t /* WINDOW(ROWS 9) */
    EMIT /* how */ CHANGES -- done
    """
    assert clauses(text) == {"t": ROWS_3}
    assert query(text).emit == "CHANGES"


def test_strings_are_no_clauses() -> None:
    text = "SELECT 'FROM s WINDOW(ROWS 1)', \"[ROWS 2]\", `WINDOW(ROWS 4)` FROM s [ROWS 3]"
    assert clauses(text) == {"s": ROWS_3}


def test_names_and_words_in_any_case() -> None:
    text = "select A from S window(Rows 3) as T where t.A > 1 emit Final"
    assert clauses(text) == {"T": ROWS_3}
    assert query(text).emit == "FINAL"


def test_positions_stay_true_behind_a_window() -> None:
    text = "SELECT a FROM s WINDOW(RANGE\n 5 SECONDS) AS tt WHERE tt.colour > 3"
    column = next(c for c in query(text).tree.find_all(exp.Column) if c.name == "colour")
    start = column.this.meta["start"]
    assert text[start : start + 6] == "colour"


# --- EMIT -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a FROM s", None),
        ("SELECT a FROM s EMIT FINAL", "FINAL"),
        ("SELECT a FROM s EMIT CHANGES", "CHANGES"),
        ("SELECT a FROM s emit changes;", "CHANGES"),
        ("SELECT a FROM s UNION ALL SELECT a FROM t EMIT CHANGES", "CHANGES"),
        ("(SELECT a FROM s) EMIT CHANGES", "CHANGES"),
        ("WITH w AS (SELECT a FROM s) SELECT a FROM w EMIT CHANGES", "CHANGES"),
        ("SELECT emit FROM s", None),
    ],
)
def test_emit(text: str, expected: str | None) -> None:
    assert query(text).emit == expected


def test_emit_of_an_insert() -> None:
    statement = one("INSERT INTO console() SELECT a FROM s EMIT CHANGES")
    assert isinstance(statement, InsertInto)
    assert statement.query.emit == "CHANGES"


# --- several statements ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("", []),
        (";", []),
        (" ;; \n;", []),
        ("-- nothing", []),
        ("SHOW STREAMS", [Show]),
        ("SHOW STREAMS;", [Show]),
        (";SHOW STREAMS;;SHOW QUERIES;", [Show, Show]),
        ("SELECT a FROM s; SELECT ';' AS b FROM s; -- end;", [Select, Select]),
        ("SHOW STREAMS /* ; */; DROP QUERY q", [Show, Drop]),
    ],
)
def test_semicolons(text: str, kinds: list[type]) -> None:
    assert [type(statement) for statement in parse(text)] == kinds


# --- definitions ----------------------------------------------------------------------------------


def test_create_stream_with_every_clause() -> None:
    statement = one(
        """CREATE STREAM `My Bids` (
            id INT NOT NULL, price DECIMAL(10, 2), tags ARRAY<STRUCT<a: INT, b: STRING>>,
            `at time` BIGINT
        ) SOURCE kafka('host:9092', topic => 'bids', retries => 3, rate => -1.5, loud => TRUE,
                       quiet => false, nothing => NULL, key => :key)
        ORDERED BY `at time` UNIT MILLISECONDS DELAY 5 SECONDS IDLE AFTER 1 MINUTE
        WITH (rate = 100, distinct(id) = 2.5e3)""",
        key="k",
    )
    element = pa.struct([("a", pa.int32()), ("b", pa.string())])
    assert statement == CreateStream(
        Name("My Bids", quoted=True),
        (
            ColumnDefinition(Name("id"), pa.int32(), nullable=False),
            ColumnDefinition(Name("price"), pa.decimal128(10, 2)),
            ColumnDefinition(Name("tags"), pa.list_(element)),
            ColumnDefinition(Name("at time", quoted=True), pa.int64()),
        ),
        Connector(
            Name("kafka"),
            ("host:9092",),
            (
                ("topic", "bids"),
                ("retries", 3),
                ("rate", -1.5),
                ("loud", True),
                ("quiet", False),
                ("nothing", None),
                ("key", "k"),
            ),
        ),
        Ordering(
            Name("at time", quoted=True),
            "MILLISECOND",
            seconds(5),
            Duration(Fraction(1), "MINUTE"),
        ),
        None,
        (Statistic("rate", None, 100.0), Statistic("distinct", Name("id"), 2500.0)),
    )


def test_create_stream_with_little() -> None:
    assert one("create stream s (a int) source f()") == CreateStream(
        Name("s"), (ColumnDefinition(Name("a"), pa.int32()),), Connector(Name("f"))
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ORDERED BY a", Ordering(Name("a"))),
        ("ORDERED BY a UNIT second", Ordering(Name("a"), "SECOND")),
        ("ORDERED BY a DELAY 10", Ordering(Name("a"), None, Duration(Fraction(10), None))),
        ("ORDERED BY a DELAY 10 IDLE AFTER 5", Ordering(
            Name("a"), None, Duration(Fraction(10), None), Duration(Fraction(5), None))),
        ("ORDERED BY a IDLE AFTER 5 SECONDS", Ordering(Name("a"), None, None, seconds(5))),
        ("ORDERED BY a DELAY :d", Ordering(Name("a"), None, seconds(5))),
        ("ORDERED BY unit", Ordering(Name("unit"))),
    ],
)  # fmt: skip
def test_ordering(text: str, expected: Ordering) -> None:
    statement = one(f"CREATE STREAM s (a BIGINT, unit BIGINT) SOURCE f() {text}", d="5 seconds")
    assert isinstance(statement, CreateStream)
    assert statement.ordering == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("VALID FROM a TO b", Validity(Name("a"), Name("b"))),
        ("valid from `a` to b unit seconds", Validity(Name("a", True), Name("b"), "SECOND")),
    ],
)
def test_validity(text: str, expected: Validity) -> None:
    statement = one(f"CREATE STREAM s (a BIGINT, b BIGINT) SOURCE f() {text} WITH (rate = 1)")
    assert isinstance(statement, CreateStream)
    assert statement.validity == expected
    assert statement.statistics == (Statistic("rate", None, 1.0),)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("BOOLEAN", pa.bool_()),
        ("INT", pa.int32()),
        ("integer", pa.int32()),
        ("BIGINT", pa.int64()),
        ("DOUBLE", pa.float64()),
        ("STRING", pa.string()),
        ("DATE", pa.date32()),
        ("TIMESTAMP", pa.timestamp("us")),
        ("BINARY", pa.binary()),
        ("DECIMAL(5, 1)", pa.decimal128(5, 1)),
        ("ARRAY<ARRAY<INT>>", pa.list_(pa.list_(pa.int32()))),
        ("STRUCT<a: INT, b: DECIMAL(3, 1)>",
         pa.struct([("a", pa.int32()), ("b", pa.decimal128(3, 1))])),
    ],
)  # fmt: skip
def test_types_of_columns(written: str, expected: pa.DataType) -> None:
    statement = one(f"CREATE STREAM s (a {written}, b {written} NOT NULL) SOURCE f()")
    assert isinstance(statement, CreateStream)
    assert [column.type for column in statement.columns] == [expected, expected]
    assert [column.nullable for column in statement.columns] == [True, False]


def test_create_derived_stream() -> None:
    statement = one("CREATE STREAM d AS WITH w AS (SELECT a FROM s [ROWS 3]) SELECT a FROM w")
    assert isinstance(statement, CreateDerivedStream)
    assert statement.name == Name("d")
    assert statement.query == query("WITH w AS (SELECT a FROM s WINDOW(ROWS 3)) SELECT a FROM w")


def test_insert_into() -> None:
    statement = one("INSERT INTO parquet('out', mode => 'append') (SELECT a FROM s)")
    assert isinstance(statement, InsertInto)
    assert statement.sink == Connector(Name("parquet"), ("out",), (("mode", "append"),))
    assert statement.query == query("(SELECT a FROM s)")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DROP STREAM s", Drop("STREAM", Name("s"))),
        ("drop stream `s t`", Drop("STREAM", Name("s t", quoted=True))),
        ("DROP QUERY q", Drop("QUERY", Name("q"))),
        ("STOP QUERY q", Stop(Name("q"))),
        ("stop query q;", Stop(Name("q"))),
        ("SHOW STREAMS", Show("STREAMS")),
        ("show streams", Show("STREAMS")),
        ("SHOW QUERIES;", Show("QUERIES")),
        ("SHOW\n  STREAMS ;", Show("STREAMS")),
        ("SHOW /* all */ STREAMS -- yes", Show("STREAMS")),
    ],
)
def test_small_statements(text: str, expected: Statement) -> None:
    assert one(text) == expected


def test_a_quoted_name_may_have_a_backtick() -> None:
    assert one("DROP STREAM `a``b`") == Drop("STREAM", Name("a`b", quoted=True))


# --- SQL ------------------------------------------------------------------------------------------

SQL = """
SELECT 1 AS a FROM s
SELECT * FROM s
SELECT s.*, t.a FROM s, t
SELECT DISTINCT a FROM s
SELECT a AS b, `c d` FROM s
SELECT a FROM s WHERE a > 1 AND NOT b < 2 OR c IS NULL
SELECT a FROM s WHERE a IN (1, 2) AND b NOT IN ('x') AND c BETWEEN 1 AND 2 AND d LIKE 'x%'
SELECT a FROM s WHERE a = ANY (SELECT b FROM t)
SELECT a FROM s WHERE a > ALL (SELECT b FROM t)
SELECT a FROM s WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.a = s.a)
SELECT a FROM s WHERE (a, b) IN (SELECT a, b FROM t)
SELECT a, COUNT(*), COUNT(DISTINCT b), SUM(c) FILTER (WHERE c > 1) FROM s GROUP BY a HAVING TRUE
SELECT CASE a WHEN 1 THEN 'x' ELSE 'y' END, CASE WHEN a THEN 1 END FROM s
SELECT CAST(a AS BIGINT), a::INT, TRY_CAST(a AS INT) FROM s
SELECT -a, +a, a + b * c - d / e % f, a || b, ~a FROM s
SELECT a[0], b.c FROM s
SELECT DATE '2024-01-01', TIMESTAMP '2024-01-01 00:00:00', INTERVAL '5' MINUTES FROM s
SELECT a FROM s JOIN t ON s.a = t.a
SELECT a FROM s INNER JOIN t USING (a, b)
SELECT a FROM s LEFT JOIN t ON TRUE RIGHT JOIN u ON TRUE FULL OUTER JOIN v ON TRUE
SELECT a FROM s CROSS JOIN t NATURAL JOIN u
SELECT a FROM s LEFT SEMI JOIN t ON TRUE LEFT ANTI JOIN u ON TRUE
SELECT a FROM s UNION SELECT a FROM t UNION ALL SELECT a FROM u
SELECT a FROM s EXCEPT ALL SELECT a FROM t INTERSECT SELECT a FROM u
(SELECT a FROM s) INTERSECT ALL (SELECT a FROM t)
SELECT a FROM s ORDER BY a DESC NULLS LAST, b LIMIT 5
WITH w AS (SELECT a FROM s), v(x) AS (SELECT a FROM w) SELECT x FROM v
SELECT a FROM (SELECT a FROM s) AS q(b)
SELECT (SELECT MAX(a) FROM t) AS m FROM s
SELECT ISTREAM(a, b) FROM s
SELECT a FROM ISTREAM(s), DSTREAM(t) AS d, RSTREAM(SELECT a FROM u) AS r
SELECT :p AS p FROM s WHERE a > :q
""".strip().splitlines()


@pytest.mark.parametrize("text", SQL)
def test_sql_parses(text: str) -> None:
    assert isinstance(one(text, p=1, q=2), Select)


@pytest.mark.parametrize("text", [text for text in SQL if not set(text) & {"'", "`"}])
def test_sql_on_many_lines_is_the_same(text: str) -> None:
    broken = "\r\n\t".join(text.split(" "))
    assert query(broken, p=1, q=2) == query(text, p=1, q=2)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM s WHERE a > 3 WINDOW(ROWS 3)",
        "SELECT a FROM s GROUP BY a WINDOW(ROWS 3)",
        "SELECT a, WINDOW(ROWS 3) FROM s",
        "SELECT a FROM s WINDOW(ROWS 3) WINDOW(ROWS 4)",
        "SELECT a FROM s GRANULARITY(3) GRANULARITY(4)",
        "SELECT a FROM s WINDOW(ROWS 3) AS t WINDOW(ROWS 4)",
        "SELECT a FROM WINDOW(ROWS 3) s",
        "SELECT a FROM s JOIN t ON TRUE WINDOW(ROWS 3)",
        "WINDOW(ROWS 3)",
        "SELECT a FROM s EMIT",
        "SELECT a FROM s EMIT FINAL EMIT CHANGES",
        "EMIT CHANGES",
        "CREATE",
        "CREATE STREAM",
        "CREATE STREAM s",
        "CREATE STREAM s (a INT",
        "CREATE STREAM s (a INT) SOURCE",
        "CREATE STREAM s (a INT) SOURCE f",
        "CREATE STREAM s (a INT) SOURCE f(",
        "CREATE STREAM s (a INT) SOURCE f(1,)",
        "CREATE STREAM s (a INT,) SOURCE f()",
        "CREATE STREAM s (a INT) SOURCE f() ORDERED a",
        "CREATE STREAM s (a INT) SOURCE f() ORDERED BY",
        "CREATE STREAM s (a INT) SOURCE f() WITH ()",
        "CREATE STREAM s AS DROP STREAM t",
        "CREATE STREAM 's' AS SELECT a FROM t",
        "INSERT INTO f()",
        "DROP",
        "DROP STREAM",
        "DROP STREAM s, t",
        "STOP",
        "STOP QUERY",
        "SHOW",
    ],
)
def test_what_is_not_a_statement(text: str) -> None:
    with pytest.raises(ParseError):
        parse(text)


@pytest.mark.parametrize(
    ("text", "parameters", "message"),
    [
        ("SELECT '\ud800'", {}, "the statement has an unpaired surrogate at character 9"),
        ("SELECT :p", {"p": "a\udfff"}, 'parameter ":p" has an unpaired surrogate at character 2'),
    ],
)
def test_text_that_is_not_unicode(text: str, parameters: dict[str, object], message: str) -> None:
    with pytest.raises(ParseError) as raised:
        parse(text, parameters)
    assert str(raised.value) == f"error: {message}, which is not UTF-8"
