"""Whatever is written, a statement works or is refused with a message: never a traceback."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import millstream as ms
from effort import examples
from millstream.logical.text import plan_text
from millstream.sql.plan_text import parse_plan

EXAMPLES = examples(150)

fuzz = settings(max_examples=EXAMPLES)

STREAMS = """
CREATE STREAM Bid (auction INT, price DOUBLE, bidder STRING, tags ARRAY<STRING>, ts TIMESTAMP)
    SOURCE file('bids.csv') ORDERED BY ts;
CREATE STREAM Auction (id INT, seller STRING, reserve DECIMAL(10, 2), ts TIMESTAMP)
    SOURCE file('auctions.csv') ORDERED BY ts DELAY 5 SECONDS;
CREATE STREAM Raw (t BIGINT, x INT, y STRING) SOURCE file('raw.csv') ORDERED BY t;
CREATE STREAM Best AS SELECT MAX(price) AS price FROM Bid WINDOW(RANGE 10 MINUTES);
"""

VALID = [
    "SELECT price FROM Bid",
    "SELECT DISTINCT auction, price * 2 AS p FROM Bid WINDOW(RANGE 10 MINUTES SLIDE 1 MINUTE) b "
    "WHERE b.price > 3 AND NOT bidder LIKE 'a%' OR auction IN (1, 2) EMIT CHANGES",
    "SELECT auction, COUNT(*), AVG(price) FROM Bid [ROWS 10 SLIDE 2] GROUP BY auction "
    "HAVING COUNT(*) > 1 ORDER BY 2 DESC LIMIT 3;",
    "WITH w AS (SELECT id FROM Auction WINDOW(RANGE UNBOUNDED)) SELECT b.price, w.id FROM Bid "
    "WINDOW(PARTITION BY auction ROWS 5) AS b LEFT JOIN w ON b.auction = w.id",
    "SELECT price FROM Bid WINDOW(RANGE 1 HOUR) GRANULARITY(1 MINUTE) UNION ALL "
    "SELECT CAST(id AS DOUBLE) FROM Auction EXCEPT SELECT price FROM Best",
    "SELECT x FROM ISTREAM(Raw WINDOW(RANGE MIN 5, MAX 10)) WHERE x = ANY (SELECT x FROM Raw)",
    "SELECT RSTREAM(x, y) FROM Raw WINDOW(ROWS 3) WHERE EXISTS (SELECT 1 FROM Raw AS r WHERE "
    "r.x = Raw.x) AND x BETWEEN -1 AND 1e3",
    "SELECT CASE WHEN x > 1 THEN 'a' ELSE y END, (SELECT MAX(x) FROM Raw [RANGE 5]) FROM Raw",
    "CREATE STREAM S (a INT NOT NULL, b DECIMAL(10, 2), c ARRAY<STRUCT<d: INT>>, ts BIGINT) "
    "SOURCE kafka('host', topic => 'x', n => -1.5) ORDERED BY ts UNIT MILLISECONDS DELAY 5 "
    "SECONDS IDLE AFTER 1 MINUTE WITH (rate = 100, distinct(a) = 5)",
    "CREATE STREAM V (a TIMESTAMP, b TIMESTAMP) SOURCE file() VALID FROM a TO b",
    "CREATE STREAM D AS SELECT x FROM Raw WINDOW(NOW)",
    "INSERT INTO parquet(path => 'x') SELECT y FROM Raw EMIT FINAL",
    "SHOW STREAMS; SHOW QUERIES; DROP STREAM Best; SELECT 1 AS a FROM Raw; DROP QUERY query_1",
    "SELECT -- comment\n /* another */ `price` FROM `Bid` WHERE ts > TIMESTAMP '2024-01-01' "
    "AND ts + INTERVAL '5' MINUTES < DATE '2024-02-03'",
]

KEYWORDS = """
SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT WITH AS ON USING JOIN LEFT FULL OUTER CROSS NATURAL
SEMI ANTI UNION EXCEPT INTERSECT ALL DISTINCT CASE WHEN THEN ELSE END CAST IN EXISTS ANY BETWEEN
AND OR NOT NULL IS LIKE TRUE INTERVAL WINDOW GRANULARITY RANGE ROWS SLIDE NOW UNBOUNDED PARTITION
MIN MAX COARSEST FINEST ISTREAM RSTREAM EMIT FINAL CHANGES CREATE STREAM SOURCE ORDERED UNIT DELAY
IDLE AFTER VALID TO INSERT INTO DROP SHOW STOP QUERY STREAMS QUERIES COUNT SUM LATERAL PIVOT VALUES
TABLE OVER EXPLODE UNNEST SECONDS MINUTES TIMESTAMP DATE ARRAY STRUCT MAP INT Bid Auction Raw Best
price auction x y t ts b
"""
MARKS = "( ) [ ] { } , . ; * + - / % = <> < > <= >= => -> :: : ? || & | ^ ~ ! @ $ # \\ ` ' \""
ODDITIES = [
    *["1", "0", "-1", "1.5", "1e400", "9" * 40, "0x1F", "1L", "'a'", "''", "`q`", ":p", "/*", "*/"],
    *["--", "\n", "\t", "\x00", "é", "∞", "\ud800", "\ufeff", "N''", "X'0g'", "R'x'", "$$"],
]
WORDS = [*KEYWORDS.split(), *MARKS.split(), *ODDITIES]


def new_session() -> ms.Session:
    session = ms.Session()
    session.sql(STREAMS)
    return session


CATALOG = new_session().catalog


def refused_or_fine(run: Callable[[], object]) -> None:
    """Only our own errors leave, and each can be shown."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run()
    except ms.MillstreamError as error:
        text = str(error)
        assert text.startswith("error: ")
        assert "<Token" not in text
        assert "sqlglot" not in text.lower()


def check(text: str) -> None:
    refused_or_fine(lambda: new_session().sql(text, p=5))


def check_plan(text: str) -> None:
    refused_or_fine(lambda: parse_plan(text, CATALOG))


# --- text of no kind ------------------------------------------------------------------------------


@fuzz
@given(st.one_of(st.binary(max_size=60).map(lambda b: b.decode("latin-1")), st.text(max_size=60)))
@example("")
@example(";;;")
@example("SELECT x FROM Raw WHERE x > 1e")
@example("\x00")
@example("SELECT \x00 FROM Bid")
@example("\ud800")
@example("SELECT '\ud800' FROM Bid")
@example("SELECT `\udfff` FROM Bid")
@example("\ufeffSELECT price FROM Bid")
def test_any_text(text: str) -> None:
    check(text)


@fuzz
@given(st.binary(max_size=60))
def test_any_bytes_read_as_utf8(data: bytes) -> None:
    check(data.decode("utf-8", errors="replace"))
    check(data.decode("utf-8", errors="surrogateescape"))


@fuzz
@given(st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join))
def test_words_in_any_order(text: str) -> None:
    check(text)


@fuzz
@given(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
def test_words_in_any_order_after_a_beginning(text: str) -> None:
    check("SELECT " + text)
    check("SELECT price FROM Bid " + text)
    check("CREATE STREAM S " + text)


# --- statements that were nearly right ------------------------------------------------------------


def _pieces(text: str) -> list[str]:
    """Words, and single characters of anything else."""
    pieces: list[str] = []
    for character in text:
        if pieces and character.isalnum() and pieces[-1][-1].isalnum():
            pieces[-1] += character
        else:
            pieces.append(character)
    return pieces


@st.composite
def mutated(draw: st.DrawFn, texts: list[str], words: list[str]) -> str:
    pieces = _pieces(draw(st.sampled_from(texts)))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(len(pieces) - 1, 0)))
        match draw(st.sampled_from(["delete", "repeat", "swap", "insert", "replace"])):
            case "delete":
                del pieces[place : place + draw(st.integers(1, 5))]
            case "repeat":
                pieces[place:place] = pieces[place : place + draw(st.integers(1, 5))]
            case "swap":
                other = draw(st.integers(0, max(len(pieces) - 1, 0)))
                if pieces:
                    pieces[place], pieces[other] = pieces[other], pieces[place]
            case "insert":
                pieces.insert(place, f" {draw(st.sampled_from(words))} ")
            case "replace":
                pieces[place : place + 1] = [draw(st.sampled_from(words))]
    return "".join(pieces)


@fuzz
@given(mutated(VALID, WORDS))
def test_mutated_statements(text: str) -> None:
    check(text)


@pytest.mark.parametrize("statement", VALID, ids=range(len(VALID)))
def test_valid_statements_are_valid(statement: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        new_session().sql(statement, p=5)


@pytest.mark.parametrize("statement", VALID, ids=range(len(VALID)))
def test_truncated_statements(statement: str) -> None:
    step = 1 if EXAMPLES > 1000 else 3
    for end in range(0, len(statement), step):
        check(statement[:end])


# --- plan text ------------------------------------------------------------------------------------

OPERATORS = """
Source Filter Map Join Aggregate TopN TimeWindow CountWindow PartitionedWindow Union Granularity
Istream Dstream Rstream Distinct MaxUnion stream= as= where= columns=[ kind=inner kind=wrong on=
by=[ compute=[ limit=3 order=[ range=5 slide= rows=2 granule= UNBOUNDED ] ) ( , . 'a ` Bid Raw
price x COUNT(*) AS NULL DESC MINUTE = == -1 arrival=true ∞
"""
PLAN_WORDS = [*OPERATORS.split(), "\n", "\n  ", "\n    ", "\x00", "9" * 30]


def _plans() -> list[str]:
    plans = []
    for statement in VALID[:8]:
        session = new_session()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plans.append(plan_text(session.sql(statement).plan))
    return plans


PLANS = _plans()


@pytest.mark.parametrize("plan", PLANS, ids=range(len(PLANS)))
def test_valid_plans_are_valid(plan: str) -> None:
    assert plan_text(parse_plan(plan, CATALOG)) == plan


@fuzz
@given(mutated(PLANS, PLAN_WORDS))
def test_mutated_plans(text: str) -> None:
    check_plan(text)


@fuzz
@given(st.lists(st.sampled_from(PLAN_WORDS), max_size=20).map(" ".join))
@example("")
@example("  \n\n")
@example("Source")
@example("Source stream=")
@example("Source stream=Best")
@example("Filter where=x\n  Source stream=Raw")
@example("Filter where=x > 'a'\n  Source stream=Raw")
@example("Join kind=wrong\n  Source stream=Raw\n  Source stream=Raw")
@example("TopN limit=0 order=[Raw.x]\n  Source stream=Raw")
@example("Granularity granule=0\n  Source stream=Raw")
@example("Union\n  Source stream=Raw\n  Source stream=Bid")
@example("Join on=Raw.x > 1\n  Source stream=Raw\n  Source stream=Bid")
@example("Map columns=[Raw.x, Raw.x]\n  Source stream=Raw")
@example("Map columns=[]\n  Source stream=Raw")
def test_any_plan(text: str) -> None:
    check_plan(text)


@fuzz
@given(st.text(max_size=60))
def test_any_text_as_a_plan(text: str) -> None:
    check_plan(text)


@pytest.mark.parametrize("plan", PLANS, ids=range(len(PLANS)))
def test_truncated_plans(plan: str) -> None:
    for end in range(0, len(plan), 1 if EXAMPLES > 1000 else 3):
        check_plan(plan[:end])


# --- size -----------------------------------------------------------------------------------------

DEEP = {
    "parentheses": "SELECT " + "(" * 5000 + "1" + ")" * 5000 + " AS a FROM Raw",
    "open parentheses": "SELECT " + "(" * 5000,
    "closing parentheses": "SELECT " + ")" * 5000,
    "open brackets": "SELECT a" + "[" * 5000,
    "brackets in FROM": "SELECT x FROM " + "(" * 3000 + "Raw" + ")" * 3000,
    "AND": "SELECT x FROM Raw WHERE " + " AND ".join(["x > 1"] * 2000),
    "OR": "SELECT x FROM Raw WHERE " + " OR ".join(["x > 1"] * 2000),
    "AND and OR": "SELECT x FROM Raw WHERE " + " AND x = 2 OR ".join(["x > 1"] * 1000),
    "plus": "SELECT " + " + ".join(["x"] * 3000) + " AS a FROM Raw",
    "minus": "SELECT " + "- " * 3000 + "x AS a FROM Raw",
    "NOT": "SELECT " + "NOT " * 3000 + "TRUE AS a FROM Raw",
    "CASE": "SELECT " + "CASE WHEN TRUE THEN " * 500 + "1" + " END" * 500 + " AS a FROM Raw",
    "calls": "SELECT " + "ABS(" * 1000 + "x" + ")" * 1000 + " AS a FROM Raw",
    "subqueries": "SELECT x FROM (" * 300 + "SELECT x FROM Raw" + ")" * 300,
    "subqueries of IN": "SELECT x FROM Raw WHERE x IN (" * 300 + "SELECT x FROM Raw" + ")" * 300,
    "scalar subqueries": "SELECT (SELECT MAX(x) FROM Raw WHERE x = " * 100 + "1" + ")" * 100,
    "unions": " UNION ALL ".join(["SELECT x FROM Raw"] * 1000),
    "joins": "SELECT 1 AS a FROM Raw r0" + "".join(f" CROSS JOIN Raw r{i}" for i in range(1, 300)),
    "WITH": "WITH w0 AS (SELECT x FROM Raw)"
    + "".join(f", w{i} AS (SELECT x FROM w{i - 1})" for i in range(1, 500))
    + " SELECT x FROM w499",
    "columns": "SELECT " + ", ".join(["x"] * 1500) + " FROM Raw",
    "IN": "SELECT x FROM Raw WHERE x IN (" + ", ".join(map(str, range(5000))) + ")",
    "types": "CREATE STREAM S (a " + "ARRAY<" * 1000 + "INT" + ">" * 1000 + ") SOURCE f()",
    "casts": "SELECT x" + "::INT" * 2000 + " AS a FROM Raw",
    "comments": "SELECT " + "/* " * 2000 + "*/" * 2000 + " x FROM Raw",
    "semicolons": ";" * 20000,
    "statements": "SHOW STREAMS;" * 200,
    "a long name": "SELECT " + "a" * 1_000_000 + " FROM Raw",
    "a long word": "a" * 1_000_000,
    "a long string": "SELECT '" + "a" * 1_000_000 + "' AS a FROM Raw",
    "a long open string": "SELECT '" + "a" * 1_000_000,
    "a long number": "SELECT " + "9" * 10_000 + " AS a FROM Raw",
    "a long fraction": "SELECT 0." + "9" * 10_000 + " AS a FROM Raw",
    "a large exponent": "SELECT 1e999999999 AS a FROM Raw",
    "a large exponent of a decimal": "SELECT 1.5e-999999999 AS a FROM Raw",
    "a large window": f"SELECT x FROM Raw WINDOW(RANGE {'9' * 5000})",
    "a window with an exponent": "SELECT x FROM Raw WINDOW(RANGE 1e99999999)",
    "a window with a tiny exponent": "SELECT x FROM Raw WINDOW(RANGE 1e-99999999)",
    "a large count": f"SELECT x FROM Raw WINDOW(ROWS {'9' * 5000})",
    "a large limit": f"SELECT x FROM Raw ORDER BY x LIMIT {'9' * 5000}",
    "a large place": f"SELECT x FROM Raw ORDER BY {'9' * 5000} LIMIT 1",
    "a large group": f"SELECT x FROM Raw GROUP BY {'9' * 5000}",
    "a large rate": "CREATE STREAM S (a INT) SOURCE f() WITH (rate = 1e999)",
    "a large option": f"CREATE STREAM S (a INT) SOURCE f({'9' * 5000})",
    "a large decimal": f"CREATE STREAM S (a DECIMAL({'9' * 5000}, 2)) SOURCE f()",
    "a large interval": f"SELECT x FROM Bid WHERE ts > ts + INTERVAL '{'9' * 30}' DAYS",
    "digits that are no digits": "SELECT x FROM Raw WINDOW(ROWS ²) ORDER BY ² LIMIT ²",
    "arabic digits": "SELECT x FROM Raw ORDER BY x LIMIT ٣",
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_and_long(name: str) -> None:
    check(DEEP[name])


DEEP_PLANS = {
    "filters": "\n".join(" " * 2 * i + "Distinct" for i in range(3000)) + "\n" + " " * 6000
    + "Source stream=Raw",
    "parentheses": "Filter where=" + "(" * 5000 + "Raw.x > 1" + ")" * 5000
    + "\n  Source stream=Raw",
    "a long name": "a" * 1_000_000,
    "a large number": f"TopN limit={'9' * 5000} order=[Raw.x]\n  Source stream=Raw",
    "digits that are no digits": "TopN limit=² order=[Raw.x]\n  Source stream=Raw",
}  # fmt: skip


@pytest.mark.parametrize("name", DEEP_PLANS)
def test_deep_and_long_plans(name: str) -> None:
    check_plan(DEEP_PLANS[name])
