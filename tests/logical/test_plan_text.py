"""Plan text: parsing it returns the plan, and invalid text is an error."""

from __future__ import annotations

import datetime
import json
import math
import operator
import warnings
from decimal import Decimal

import pytest

import millstream as ms
from millstream.logical.plan import NODE_TYPES, Plan
from millstream.logical.text import plan_json, plan_text
from millstream.model.errors import MillstreamError, MillstreamWarning
from millstream.sql.plan_text import parse_plan

DECLARATIONS = """
CREATE STREAM R(k INT, v DOUBLE, s STRING, d DECIMAL(10, 2), b BOOLEAN, day DATE, a ARRAY<INT>,
                t TIMESTAMP)
    SOURCE none() ORDERED BY t;
CREATE STREAM V(k INT, x TIMESTAMP, y TIMESTAMP) SOURCE none() VALID FROM x TO y;
CREATE STREAM M(k INT, t BIGINT) SOURCE none() ORDERED BY t UNIT MILLISECONDS;
CREATE STREAM Raw(k INT, t BIGINT) SOURCE none() ORDERED BY t;
CREATE STREAM `odd one`(`a b` INT, `select` INT, `q``t` INT, t BIGINT) SOURCE none() ORDERED BY t;
CREATE STREAM Derived AS SELECT k FROM R;
"""


def _session() -> ms.Session:
    session = ms.Session()
    session.function("twice", lambda column: column, returns="INT")
    session.aggregate("product", float, operator.mul, lambda value: value, returns="DOUBLE")
    session.sql(DECLARATIONS)
    return session


SESSION = _session()


def read(text: str) -> Plan:
    return parse_plan(text, SESSION.catalog)


def bound(sql: str, **parameters: object) -> Plan:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MillstreamWarning)
        plan = SESSION.sql(sql, **parameters).plan
    assert isinstance(plan, Plan)
    return plan


# --- there and back -------------------------------------------------------------------------------

# Every operator, with each property it can have, in the form in which it is printed.
PRINTED = {
    "source": "Source stream=R",
    "source under an alias": "Source stream=R as=r1",
    "source with its order": "Source stream=R as=r1 arrival=yes",
    "source with odd names": "Source stream=`odd one` as=`select`",
    "filter": """
Filter where=R.k > 1 AND R.s = ' where=[x'
  Source stream=R""",
    "map": """
Map columns=[R.k, R.v AS v2, R.k + 1 AS q.k1, 'a, b] AS c' AS `x y`]
  Source stream=R""",
    "map of odd names": """
Map columns=[`odd one`.`a b`, `odd one`.`q``t` AS `and`.`x.y`]
  Source stream=`odd one`""",
    **{
        f"{kind} join": f"""
Join kind={kind} on=R.k = V.k
  Source stream=R
  Source stream=V"""
        for kind in ("inner", "left", "right", "full", "semi", "anti")
    },
    "product": """
Join kind=inner
  Source stream=R
  Source stream=V""",
    **{
        operator: f"""
{operator}
  Map columns=[R.k]
    Source stream=R
  Map columns=[V.k]
    Source stream=V"""
        for operator in ("Union", "MaxUnion", "Difference", "StrictDifference", "Intersection")
    },
    "distinct": """
Distinct
  Source stream=R""",
    "scalar aggregate": """
Aggregate compute=[count(*) AS n]
  Source stream=R""",
    "groups": """
Aggregate by=[R.k, R.s AS q.s, R.k % 2 AS odd] compute=[sum(R.v) AS total, count(DISTINCT R.s) AS x]
  Source stream=R""",
    "groups without aggregates": """
Aggregate by=[R.k] compute=[]
  Source stream=R""",
    "filtered and ordered aggregates": """
Aggregate compute=[max(R.v) FILTER (WHERE R.k > 1) AS m, `first`(R.s) ORDERED BY (R.t, R.k) AS f]
  Source stream=R""",
    "aggregate of the user's": """
Aggregate compute=[product(R.v) AS p]
  Source stream=R""",
    "top n": """
TopN limit=3 order=[R.k, R.v DESC, R.s NULLS LAST, R.t DESC NULLS FIRST]
  Source stream=R""",
    "top n of groups": """
TopN by=[R.s, R.k % 2] limit=3 order=[R.v DESC]
  Source stream=R""",
    "time window": """
TimeWindow range=10 MINUTES
  Source stream=R""",
    "time window in the smallest units": """
TimeWindow range=90000001 MICROSECONDS slide=1500 MILLISECONDS
  Source stream=R""",
    "time window in raw units": """
TimeWindow range=10 slide=5
  Source stream=Raw""",
    "unbounded time window": """
TimeWindow range=UNBOUNDED slide=1 HOUR
  Source stream=R""",
    "time window over granules": """
TimeWindow range=1 DAY granule=1 HOUR min=12 HOURS
  Granularity granule=1 HOUR
    Source stream=R""",
    "time window that slides over granules": """
TimeWindow range=1 DAY slide=2 HOURS granule=1 HOUR
  Granularity granule=1 HOUR
    Source stream=R""",
    "count window": """
CountWindow rows=3 order=[R.`$arrival`]
  Source stream=R arrival=yes""",
    "count window with everything": """
CountWindow rows=200 order=[M.k, M.t] slide=5 granule=2 SECONDS min=50
  Granularity granule=2 SECONDS
    Source stream=M""",
    "unbounded count window": """
CountWindow rows=UNBOUNDED order=[R.k]
  Source stream=R""",
    "partitioned window": """
PartitionedWindow by=[R.k, R.s] rows=3 order=[R.t] slide=2 min=1
  Source stream=R""",
    "partitioned window over granules": """
PartitionedWindow by=[R.k % 2] rows=UNBOUNDED order=[R.t] granule=1 SECOND
  Granularity granule=1 SECOND
    Source stream=R""",
    "granularity": """
Granularity granule=10 SECONDS coarsest=2 HOURS
  Source stream=R""",
    "istream": """
Istream
  Source stream=V""",
    "dstream": """
Dstream
  Source stream=V""",
    "rstream": """
Rstream
  Source stream=V""",
    "rstream of granules": """
Rstream granule=10 SECONDS
  Granularity granule=10 SECONDS
    Source stream=V""",
}


@pytest.mark.parametrize("text", PRINTED.values(), ids=PRINTED.keys())
def test_what_is_read_is_printed_again(text: str) -> None:
    plan = read(text)
    assert plan_text(plan) == text.strip("\n")
    assert read(plan_text(plan)) == plan


def test_every_operator_is_among_them() -> None:
    operators = {type(node).__name__ for text in PRINTED.values() for node in read(text).walk()}
    assert operators == set(NODE_TYPES)


EXPRESSIONS = [
    "-k",
    "-(-k)",
    "-5",
    "k - (k - 1)",
    "k - k - 1",
    "k + (k + 1)",
    "k * (k + 1)",
    "(k + 1) * k",
    "k / 2",
    "k % 2",
    "k DIV 2",
    "-(k + 1)",
    "NOT (b OR b)",
    "NOT b AND b",
    "(b OR b) AND b",
    "b OR b AND b",
    "(k = 1) = b",
    "k <=> 1",
    "k <> 1",
    "k IS NULL",
    "(k = 1) IS NOT NULL",
    "k IN (1, 2, k + 1)",
    "k NOT IN (1, 2)",
    "k BETWEEN 1 AND 2",
    "b AND k BETWEEN 1 AND 2",
    "b AND (b AND (k BETWEEN 1 AND 2 AND b))",
    "b OR (b OR b)",
    "s || 'x' || s",
    "s LIKE 'a%'",
    "s NOT LIKE 'a!%' ESCAPE '!'",
    "s RLIKE '^a.*'",
    "CASE WHEN k = 1 THEN 'a' END",
    "CASE k WHEN 1 THEN 2 ELSE 3 END",
    "IF(b, 1, 2)",
    "COALESCE(k, 0)",
    "CAST(k AS STRING)",
    "TRY_CAST(s AS INT)",
    "CAST(s AS DECIMAL(5, 1))",
    "CAST(NULL AS INT)",
    "a[0]",
    "ARRAY(1, 2)[k]",
    "EXTRACT(HOUR FROM t)",
    "DATE_TRUNC('HOUR', t)",
    "t + INTERVAL 90 SECONDS",
    "INTERVAL '-5' MINUTE",
    "TIMESTAMP '2020-01-01 00:00:00'",
    "DATE '2020-01-01'",
    "UPPER(s)",
    "SUBSTRING(s, 1, 2)",
    "POSITION('a' IN s)",
    "ROUND(v, 2)",
    "twice(k)",
    "NULL",
    "TRUE",
    "1.50",
    "1e3",
    "1e-7",
    "1e300",
    "9223372036854775807",
    "'it''s'",
    "'back\\\\slash'",
    "'line\\nbreak'",
    "'` ] ) AS x'",
    "X'ab'",
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions_are_read_back(expression: str) -> None:
    plan = bound(f"SELECT {expression} AS x FROM R")
    assert read(plan_text(plan)) == plan


PARAMETERS = [
    5,
    2**40,
    -3,
    1.5,
    -1.5,
    1e22,
    math.nan,
    math.inf,
    -math.inf,
    "it's \\ a\nline",
    True,
    None,
    Decimal("1.50"),
    Decimal("-1E+3"),
    b"\x00ab",
    datetime.datetime(2020, 1, 1, 12, 30),
    datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
    datetime.date(2020, 1, 1),
    datetime.timedelta(seconds=-5),
]


@pytest.mark.parametrize("value", PARAMETERS, ids=repr)
def test_parameters_are_read_back(value: object) -> None:
    plan = bound("SELECT :x AS x FROM R WHERE :x IS NOT NULL", x=value)
    assert read(plan_text(plan)) == plan


QUERIES = [
    "SELECT k, COUNT(*) AS n, AVG(d), FIRST(s), ARRAY_AGG(s) FROM R [RANGE 5 MINUTES] GROUP BY k",
    "SELECT k + 1 AS k1, COUNT(*) FROM R [ROWS 5] GROUP BY k + 1 HAVING COUNT(*) > 2",
    "SELECT DISTINCT k FROM R [RANGE 5 MINUTES] ORDER BY k DESC LIMIT 3",
    "SELECT * FROM R JOIN V USING (k)",
    "SELECT * FROM R r FULL JOIN V v ON r.k = v.k AND r.v > 0",
    "SELECT (SELECT MAX(v) FROM R [RANGE 1 HOUR] i WHERE i.k = o.k) AS m FROM R o",
    "SELECT k FROM R WHERE k NOT IN (SELECT k FROM V)",
    "SELECT k FROM R o WHERE v > ANY (SELECT v FROM R [RANGE 1 HOUR] i WHERE i.s <> o.s)",
    "SELECT k FROM R WHERE EXISTS (SELECT * FROM V WHERE V.k > R.k) OR b",
    "SELECT k FROM R UNION SELECT k FROM V INTERSECT SELECT k FROM V",
    "SELECT `a b` AS `x.y` FROM `odd one` [RANGE 5] `and` WHERE `and`.`select` = 1",
    "SELECT k, RAND() AS r FROM R",
]


@pytest.mark.parametrize("sql", QUERIES)
def test_the_plans_of_queries_are_read_back(sql: str) -> None:
    plan = bound(sql)
    assert read(plan_text(plan)) == plan


def test_blank_lines_and_any_indentation() -> None:
    loose = "\n\nDistinct\n\n      Filter where=R.k = 1\n         Source stream=R\n\n"
    strict = "Distinct\n  Filter where=R.k = 1\n    Source stream=R"
    assert read(loose) == read(strict)


def test_json() -> None:
    plan = read("Filter where=r.k > 1\n  Source stream=Raw as=r")
    assert json.loads(json.dumps(plan_json(plan))) == {
        "operator": "Filter",
        "properties": {"where": "r.k > 1"},
        "columns": [{"name": "k", "type": "INT"}, {"name": "t", "type": "BIGINT"}],
        "inputs": [
            {
                "operator": "Source",
                "properties": {"stream": "Raw", "as": "r"},
                "columns": [{"name": "k", "type": "INT"}, {"name": "t", "type": "BIGINT"}],
                "inputs": [],
            }
        ],
    }


# --- what cannot be read --------------------------------------------------------------------------

S = "\n  Source stream=R"

MISTAKES: list[tuple[str, str, int | None, str | None]] = [
    # text, message, the line that is underlined, help
    ("Filtre where=R.k = 1" + S, '"Filtre" is not an operator', 1, 'did you mean "Filter"?'),
    ("Frobnicate" + S, '"Frobnicate" is not an operator', 1, None),
    ("Filter where=R.k = 1", "Filter has 1 input, not 0", 1, None),
    ("Filter where=R.k = 1" + S + S, "Filter has 1 input, not 2", 1, None),
    ("Join kind=inner" + S, "Join has 2 inputs, not 1", 1, None),
    ("Source stream=R" + S, "Source has 0 inputs, not 1", 1, None),
    ("Filter" + S, "Filter needs where=…", 1, None),
    ("Source", "Source needs stream=…", 1, None),
    ("TopN limit=1" + S, "TopN needs order=…", 1, None),
    ("TopN order=[R.k]" + S, "TopN needs limit=…", 1, None),
    ("Join\n  Source stream=R\n  Source stream=V", "Join needs kind=…", 1, None),
    ("TimeWindow" + S, "TimeWindow needs range=…", 1, None),
    ("CountWindow order=[R.k]" + S, "CountWindow needs rows=…", 1, None),
    ("CountWindow rows=3" + S, "CountWindow needs order=…", 1, None),
    ("PartitionedWindow rows=3 order=[R.k]" + S, "PartitionedWindow needs by=…", 1, None),
    ("Granularity" + S, "Granularity needs granule=…", 1, None),
    ("Map" + S, "Map needs columns=…", 1, None),
    ("Aggregate by=[R.k]" + S, "Aggregate needs compute=…", 1, None),
    (
        "Filter where=R.kk = 1" + S,
        'no input has a column "R.kk"',
        1,
        'did you mean "R.k"?',
    ),
    (
        "Distinct\n  Filter where=R.day = Q.day\n    Source stream=R",
        'no input has a column "Q.day"',
        2,
        'did you mean "R.day"?',
    ),
    ("Distinct\n  Source stream=Raww", 'stream "Raww" does not exist', 2, 'did you mean "Raw"?'),
    (
        "Source stream=Derived",
        '"Derived" is a derived stream; a plan reads source streams',
        1,
        None,
    ),
    ("Filter where=nosuch(R.k)" + S, 'function "nosuch" does not exist', 1, None),
    ("Filter nonsense" + S, "expected key=value after the name of the operator", 1, None),
    ("Filter where=R.k +" + S, "cannot read the expression: R.k +", 1, None),
    ("Map columns=[R.k + 1]" + S, "R.k + 1 needs a name: R.k + 1 AS name", 1, None),
    (
        "Join kind=outer\n  Source stream=R\n  Source stream=V",
        '"outer" is not a kind of join',
        1,
        "kinds are inner, left, right, full, semi and anti",
    ),
    (
        "TimeWindow range=5 PARSECS" + S,
        '"5 PARSECS" is not a duration',
        1,
        "write a number and MICROSECONDS, MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS or WEEKS",
    ),
    ("TimeWindow range=-5 SECONDS" + S, "range must be positive", 1, None),
    ("TimeWindow range=5 SECONDS slide=0 SECONDS" + S, "slide must be positive", 1, None),
    (
        "TimeWindow range=5 SECONDS\n  Source stream=Raw",
        "range has a unit, but the stream's BIGINT time has none",
        1,
        "declare it with ORDERED BY column UNIT MILLISECONDS, or write a bare number",
    ),
    ("TopN limit=x order=[R.k]" + S, "limit=x is not a number", 1, None),
    (
        "CountWindow rows=0 order=[R.k]" + S,
        "rows=0: a number of rows must be 1 or more",
        1,
        None,
    ),
    (
        "TimeWindow range=5 SECONDS slid=1 SECOND" + S,
        'TimeWindow has no key "slid"',
        1,
        'did you mean "slide"?',
    ),
    ("Distinct color=red" + S, 'Distinct has no key "color"', 1, None),
    ("Filter where=R.k = 1 where=R.k = 2" + S, 'key "where" is given twice', 1, None),
    ("Source stream=R arrival=no", "arrival=no: write arrival=yes or leave it out", 1, None),
    ("Filter where=R.k" + S, "where=R.k must be BOOLEAN, not INT", 1, None),
    (
        "Union\n  Source stream=R\n  Source stream=V",
        "the inputs of Union have different columns",
        1,
        None,
    ),
    ("Aggregate by=[R.k] compute=[R.v]" + S, "R.v is not an aggregate", 1, None),
    ("Map columns=[sum(R.v) AS x]" + S, "sum(R.v) is allowed only in an Aggregate", 1, None),
    ("Map columns=[R.k AS a, R.v AS a]" + S, 'Map has two columns "a"', 1, None),
    ("Join kind=inner" + S + S, 'Join has two columns "R.k"', 1, None),
    (
        "Source stream=R\nSource stream=V",
        "a plan has one root: the first line; indent all others below it",
        None,
        None,
    ),
    ("", "a plan has one root: the first line; indent all others below it", None, None),
]


def _message(text: str, message: str, number: int | None, help: str | None) -> str:
    lines = [f"error: {message}"]
    if number is not None:
        line = text.split("\n")[number - 1]
        content = line.lstrip()
        indent = len(line) - len(content)
        lines += [
            f"  --> <plan>:{number}:{indent + 1}",
            f"{number} | {line}",
            f"  | {' ' * indent}{'^' * len(content)}",
        ]
    return "\n".join([*lines, *([] if help is None else [f"help: {help}"])])


@pytest.mark.parametrize(
    ("text", "message", "number", "help"), MISTAKES, ids=[mistake[1] for mistake in MISTAKES]
)
def test_mistakes(text: str, message: str, number: int | None, help: str | None) -> None:
    with pytest.raises(MillstreamError) as error:
        read(text)
    assert str(error.value) == _message(text, message, number, help)
