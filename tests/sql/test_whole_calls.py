"""Nothing that is written in a call is ignored: it changes the meaning, or it is refused.

Every function of the tables, and every other name of one, is given an argument too many, and every
clause that a call may have elsewhere.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import millstream as ms
from millstream.logical import aggregates, functions
from millstream.sql.calls import _AGGREGATES, _NODES

OPERATORS = {
    *("%", "*", "+", "-", "/", "<", "<=", "<=>", "<>", "=", ">", ">=", "||", "and", "case", "div"),
    *("in", "is null", "negate", "not", "or", "element", "extract_second"),
}
SYNONYMS = {
    *("percentile", "mod", "locate", "instr", "nvl", "ifnull", "substr", "char", "ceiling", "pow"),
    *("signum", "char_length", "character_length", "date_diff", "dayofmonth", "cardinality", "now"),
    *("curdate", "isnull", "isnotnull", "date_part", "datepart", "trunc", "regexp_like", "ilike"),
    *("arg_max", "arg_min", "arrayagg", "array_has", "array_length", "countif", "ends_with", "len"),
    *("day_of_week", "is_nan", "logical_or", "stdev", "starts_with", "unicode", "week_of_year"),
    *("int", "double", "float", "string", "date", "timestamp", "boolean"),
    *(
        "try_element_at",
        "mean",
        "std",
        "every",
        "some",
        "any",
        "first_value",
        "last_value",
        "lcase",
    ),
    *("div", "charindex", "strpos", "str_position", "truncate", "leftpad", "ts_or_ds_to_date_str"),
    *("any_value", "collect_list", "variance", "stddev", "max_by", "min_by", "ucase", "positive"),
}
NAMES = sorted({*functions.names(), *aggregates.names()} - OPERATORS | SYNONYMS)

# Arguments that most functions take, in some order, and one that is too many for all but a few.
ARGUMENTS = ["a", "s", "b", "d", "n", "e", "'month'", "1", "0.5"]
EXTRA = ["a", "1", "'x'", "NULL", "TRUE", "a + 1"]


@pytest.fixture(scope="module")
def session() -> ms.Session:
    session = ms.Session(engine="local")
    columns = {
        "ts": pa.array([1], pa.int64()),
        "a": pa.array([1], pa.int32()),
        "s": pa.array(["x"]),
        "b": pa.array([True]),
        "d": pa.array([1.5]),
        "n": pa.array([[1]], pa.list_(pa.int32())),
        "e": pa.array([1], pa.date32()),
    }
    session.stream("S", pa.table(columns), time="ts")
    return session


def outcome(session: ms.Session, call: str) -> str | None:
    """The plan of a query with the call, or None if it is refused."""
    try:
        return str(session.sql(f"SELECT {call} AS x FROM S WINDOW(RANGE 5)").plan)
    except ms.MillstreamError:
        return None


def accepted(session: ms.Session, name: str, most: int = 3) -> list[str]:
    """Calls of a function that are accepted, the one with the most arguments last."""
    found = [f"{name}()"] if outcome(session, f"{name}()") else []
    tried = [""]
    for _ in range(most):
        tried = [f"{t}, {a}" if t else a for t in tried for a in ARGUMENTS]
        calls = [f"{name}({t})" for t in tried]
        fine = [call for call in calls if outcome(session, call) is not None]
        if fine:
            found.append(fine[0])
            tried = [call[len(name) + 1 : -1] for call in fine[:3]]
        elif len(tried) > 100:
            break
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_arguments_and_clauses(session: ms.Session, name: str) -> None:
    calls = accepted(session, name)
    assert calls, f"no call of {name} was accepted"
    for call in calls:
        plain = outcome(session, call)
        for more in EXTRA:
            longer = call[:-1] + (", " if call[-2] != "(" else "") + more + ")"
            assert outcome(session, longer) != plain, longer
        inside = call[len(name) + 1 : -1]
        for changed in with_clauses(name, inside):
            assert outcome(session, changed) != plain, changed


def with_clauses(name: str, inside: str) -> list[str]:
    call = f"{name}({inside})"
    found = [
        f"{call} FILTER (WHERE a > 1)",
        f"{call} OVER ()",
        f"{call} OVER (PARTITION BY a)",
        f"{call} IGNORE NULLS",
        f"{call} RESPECT NULLS",
        f"{call} WITHIN GROUP (ORDER BY a)",
    ]
    if inside:
        found += [
            f"{name}(DISTINCT {inside})",
            f"{name}({inside} ORDER BY a)",
            f"{name}({inside} LIMIT 1)",
            f"{name}({inside} IGNORE NULLS)",
            f"{name}({inside} USING utf8)",
            f"{name}({inside} FROM 1)",
            f"{name}({inside} FOR 1)",
            f"{name}({inside} FOR 1 FOR 2)",
        ]
    return found


def test_a_timestamp_is_not_moved_as_a_date(session: ms.Session) -> None:
    assert outcome(session, "TIMESTAMPADD(CAST('2026-01-01 12:00:00' AS TIMESTAMP), 1)") is None
    assert outcome(session, "DATEADD(e, 1)") == outcome(session, "DATE_ADD(e, 1)")


def test_every_class_of_sqlglot_is_named() -> None:
    """The tables of node classes name functions that are tried above."""
    named = {text.split()[0] for text in (*_NODES.values(), *_AGGREGATES.values())}
    assert named - OPERATORS <= set(NAMES)
