"""Every function's text is read back to its own name and arguments, whatever sqlglot does to it."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from millstream.logical import aggregates, functions
from millstream.sql.calls import aggregate_of, call_of

OPERATORS = {
    "%", "*", "+", "-", "/", "<", "<=", "<=>", "<>", "=", ">", ">=", "||", "and", "case", "div",
    "in", "is null", "like", "negate", "not", "or", "rlike",
}  # fmt: skip

# The numbers of arguments to try; every other function is tried with one.
ARITIES = {
    0: ["current_date", "current_timestamp", "pi", "rand", "uuid"],
    2: [
        "array", "array_contains", "atan2", "btrim", "coalesce", "concat", "concat_ws",
        "contains", "date_add", "date_sub", "datediff", "element", "element_at", "endswith",
        "greatest", "least", "left", "log", "lpad", "nanvl", "nullif", "position", "power",
        "repeat", "replace", "right", "round", "rpad", "sha2", "startswith", "substring",
        "try_element_at",
    ],
    3: [
        "array", "coalesce", "concat", "concat_ws", "greatest", "if", "least", "lpad", "nvl2",
        "instr_from", "position", "replace", "rpad", "split_part", "substring", "translate",
    ],
}  # fmt: skip
LISTED = {name for listed in ARITIES.values() for name in listed} - {"round"}
ONE = set(functions.names()) - OPERATORS - LISTED - {"date_trunc", "trunc"}
TEXTS = [(name, 1) for name in sorted(ONE)]
TEXTS += [(name, count) for count, listed in ARITIES.items() for name in listed]


def node_of(text: str) -> exp.Expression:
    select = parse_one(f"SELECT {text}", dialect="spark")
    node = select.expressions[0]
    assert isinstance(node, exp.Expression)
    return node


def shown(call: tuple[str, list[exp.Expression]] | None) -> str | None:
    if call is None:
        return None
    name, arguments = call
    return f"{name}({', '.join(a.sql(dialect='spark') for a in arguments)})"


@pytest.mark.parametrize(("name", "count"), TEXTS)
def test_functions_are_read_back(name: str, count: int) -> None:
    text = f"{name}({', '.join('abc'[:count])})"
    assert shown(call_of(node_of(text))) == text


CALLS = [
    ("a AND b", "and(a, b)"),
    ("NOT a", "not(a)"),
    ("a == b", "=(a, b)"),
    ("a != b", "<>(a, b)"),
    ("a <=> b", "<=>(a, b)"),
    ("a IS DISTINCT FROM b", "not(a IS NOT DISTINCT FROM b)"),
    ("a + b", "+(a, b)"),
    ("a / b", "/(a, b)"),
    ("a DIV b", "div(a, b)"),
    ("MOD(a, b)", "%(a, b)"),
    ("-a", "negate(a)"),
    ("a || b", "||(a, b)"),
    ("a LIKE b", "like(a, b)"),
    ("a NOT LIKE b", "not(a LIKE b)"),
    ("a LIKE b ESCAPE '/'", "like(a, b, '/')"),
    ("a NOT LIKE b ESCAPE '/'", "not(a LIKE b ESCAPE '/')"),
    ("a ILIKE b", "like(LOWER(a), LOWER(b))"),
    ("a RLIKE b", "rlike(a, b)"),
    ("regexp_like(a, b)", "rlike(a, b)"),
    ("CASE WHEN a THEN b WHEN c THEN d END", "case(a, b, c, d)"),
    ("CASE a WHEN b THEN c ELSE d END", "case(a = b, c, d)"),
    ("nvl(a, b)", "coalesce(a, b)"),
    ("ifnull(a, b)", "coalesce(a, b)"),
    ("pow(a, b)", "power(a, b)"),
    ("ceiling(a)", "ceil(a)"),
    ("signum(a)", "sign(a)"),
    ("log(a)", "ln(a)"),
    ("substr(a, b)", "substring(a, b)"),
    ("substring(a FROM b FOR c)", "substring(a, b, c)"),
    ("char_length(a)", "length(a)"),
    ("trim(BOTH FROM a)", "trim(a)"),
    ("trim(b FROM a)", "trim(b, a)"),
    ("trim(LEADING b FROM a)", "ltrim(b, a)"),
    ("trim(TRAILING b FROM a)", "rtrim(b, a)"),
    ("instr(a, b)", "position(b, a)"),
    ("locate(a, b)", "position(a, b)"),
    ("position(a IN b)", "position(a, b)"),
    ("char(a)", "chr(a)"),
    ("dayofmonth(a)", "day(a)"),
    ("year(to_date(a))", "year(TO_DATE(a))"),
    ("extract(YEAR FROM a)", "year(a)"),
    ("extract(dow FROM a)", "dayofweek(a)"),
    ("extract(SECOND FROM a)", "extract_second(a)"),
    ("date_part('week', a)", "weekofyear(a)"),
    ("date_trunc('HOUR', a)", "date_trunc('HOUR', a)"),
    ("trunc(a, 'MM')", "trunc(a, 'MM')"),
    ("date_diff(a, b)", "datediff(a, b)"),
    ("date_sub(a, b + 1)", "date_sub(a, b + 1)"),
    ("cardinality(a)", "size(a)"),
    ("a[b]", "element(a, b)"),
    ("(a).b", ".b((a))"),
    ("now()", "current_timestamp()"),
    ("current_date", "current_date()"),
    ("isnull(a)", "is null(a)"),
    ("isnotnull(a)", "not(a IS NULL)"),
    ("Foo(a, b)", "foo(a, b)"),
    ("soundex(a)", "soundex(a)"),
]


@pytest.mark.parametrize(("text", "call"), CALLS)
def test_calls(text: str, call: str) -> None:
    assert shown(call_of(node_of(text))) == call


@pytest.mark.parametrize(
    "text",
    ["a", "1", "(a)", "CAST(a AS INT)", "a IS NULL", "a IN (b)", "a BETWEEN b AND c", "sum(a)",
     "every(a)", "(SELECT a)", "EXISTS (SELECT a)", "INTERVAL '1' DAY"],
)  # fmt: skip
def test_nodes_that_are_no_calls(text: str) -> None:
    assert call_of(node_of(text)) is None


@pytest.mark.parametrize(
    "text",
    ["datediff(DAY, a, b)", "to_date(a, 'yyyy')", "extract(foo FROM a)", "date_trunc(a, b)"],
)
def test_arguments_that_are_not_understood(text: str) -> None:
    with pytest.raises(ValueError, match=r"not supported$|must be a known one"):
        call_of(node_of(text))


def shown_aggregate(text: str) -> str | None:
    found = aggregate_of(node_of(text))
    if found is None:
        return None
    name, arguments, distinct = found
    return f"{name}({'distinct ' * distinct}{', '.join(a.sql() for a in arguments)})"


@pytest.mark.parametrize("name", aggregates.names())
def test_aggregates_are_read_back(name: str) -> None:
    text = f"{name}(a, b)" if name in ("max_by", "min_by", "quantile") else f"{name}(a)"
    assert shown_aggregate(text) == text


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("count(*)", "count()"),
        ("count(a, b)", "count(a, b)"),
        ("count(DISTINCT a, b)", "count(distinct a, b)"),
        ("sum(DISTINCT a)", "sum(distinct a)"),
        ("mean(a)", "avg(a)"),
        ("variance(a)", "var_samp(a)"),
        ("stddev(a)", "stddev_samp(a)"),
        ("percentile(a, 0.5)", "quantile(a, 0.5)"),
        ("first_value(a)", "first(a)"),
        ("collect_list(a)", "array_agg(a)"),
        ("every(a)", "bool_and(a)"),
        ("some(a)", "bool_or(a)"),
        ("any(a)", "bool_or(a)"),
        ("upper(a)", None),
        ("foo(a)", None),
    ],
)
def test_aggregates(text: str, call: str | None) -> None:
    assert shown_aggregate(text) == call


@pytest.mark.parametrize(
    "text", ["first(a) IGNORE NULLS", "array_agg(a ORDER BY b)", "count(DISTINCT *)", "count()"]
)
def test_aggregates_that_are_not_understood(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not supported$"):
        aggregate_of(node_of(text))
