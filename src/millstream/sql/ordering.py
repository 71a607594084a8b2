"""ORDER BY … LIMIT n: the sort keys and the number of rows."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from millstream.logical.expressions import Column
from millstream.logical.plan import SortKey
from millstream.model.errors import BindError
from millstream.sql.clauses import parameter_value
from millstream.sql.scope import name_of, refuse_others, span_of


def limit_of(node: exp.Expression, parameters: Mapping[str, object]) -> int | None:
    """The n of ORDER BY … LIMIT n; each clause needs the other."""
    order, limit = node.args.get("order"), node.args.get("limit")
    if order is None and limit is None:
        return None
    if limit is None:
        raise BindError(
            "ORDER BY without LIMIT has no meaning for an answer that changes",
            span_of(order),
            "add LIMIT n for the first n rows of every instant, or sort where you read the answer",
        )
    if order is None:
        raise BindError(
            "LIMIT without ORDER BY would pick arbitrary rows", span_of(limit), "add ORDER BY"
        )
    _check_plain(limit)
    value = limit.expression
    number = whole_number(value)
    if isinstance(value, exp.Placeholder):
        given = parameter_value(value.name, parameters, span_of(value))
        number = given if isinstance(given, int) and not isinstance(given, bool) else None
    if number is None or number < 1:
        raise BindError("LIMIT takes a whole number of 1 or more", span_of(limit))
    return number


def _check_plain(limit: exp.Expression) -> None:
    """Refuse WITH TIES, PERCENT and BY in LIMIT and FETCH."""
    options = limit.args.get("limit_options") or limit
    if options.args.get("with_ties"):
        raise BindError(
            "WITH TIES is not supported",
            span_of(limit),
            "compare with the n-th value instead: WHERE x >= (SELECT MIN(x) FROM (… LIMIT n))",
        )
    if options.args.get("percent"):
        raise BindError("PERCENT is not supported in LIMIT", span_of(limit), "write LIMIT n")
    if limit.args.get("expressions"):
        raise BindError(
            "LIMIT n BY is not supported",
            span_of(limit),
            "for the last n rows of each key write WINDOW(PARTITION BY key ROWS n) in FROM",
        )
    if not isinstance(limit, exp.Limit):
        raise BindError("FETCH is not supported", span_of(limit), "write LIMIT n")
    refuse_others(limit, ("expression", "limit_options"), "LIMIT")


def whole_number(node: exp.Expression | None) -> int | None:
    """The value of a literal that is a whole number of at most 18 digits."""
    if isinstance(node, exp.Literal) and not node.is_string:
        text = str(node.this)
        return int(text) if text.isdecimal() and len(text) <= 18 else None
    return None


def output_named(node: exp.Expression, columns: list[Column]) -> Column | None:
    """The output that ORDER BY names, by position or name; None if it is an expression."""
    if isinstance(node, exp.Literal) and not node.is_string:
        number = whole_number(node) or 0
        if not 1 <= number <= len(columns):
            raise BindError(
                f"ORDER BY {node.this} is not a position in the select list", span_of(node)
            )
        return columns[number - 1]
    if isinstance(node, exp.Column) and not node.args.get("table"):
        name = name_of(node.this)
        return next((column for column in columns if name.matches(column.name)), None)
    return None


def sort_key(item: exp.Expression, column: Column) -> SortKey:
    refuse_others(item, ("this", "desc", "nulls_first"), "ORDER BY")
    descending = bool(item.args.get("desc"))
    nulls_first = item.args.get("nulls_first")
    return SortKey(column, descending, not descending if nulls_first is None else bool(nulls_first))


def complete_order(keys: list[SortKey], columns: list[Column]) -> tuple[SortKey, ...]:
    """The remaining output columns break ties, from left to right."""
    named = {key.expression for key in keys}
    return (*keys, *(SortKey(column) for column in columns if column not in named))
