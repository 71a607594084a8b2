"""Plans and expressions as text.

A plan is printed one node per line, two spaces per level, `Name key=value key=[a, b]`, with
expressions in SQL. The text is deterministic, and `sql.plan_text.parse_plan` parses it to an equal
plan.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal

import pyarrow as pa

from millstream.logical import functions
from millstream.logical.expressions import (
    AggregateCall,
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    OuterColumn,
)
from millstream.logical.plan import (
    Aggregate,
    CountWindow,
    Filter,
    Granularity,
    Join,
    Map,
    Named,
    PartitionedWindow,
    Plan,
    Rstream,
    SortKey,
    Source,
    TimeWindow,
    TopN,
)
from millstream.model import types
from millstream.model.masking import MASK, Secret
from millstream.model.time import INFINITY, MICROSECONDS, TimeDomain

# --- expressions ----------------------------------------------------------------------------------

# The precedence of operators; everything else is an atom. Operands that do not bind more tightly
# than their operator are printed in brackets.
_STRENGTH = {"or": 1, "and": 2, "not": 3} | dict.fromkeys(
    ["=", "<>", "<", "<=", ">", ">=", "<=>", "is null", "in", "like", "rlike"], 4
) | {"+": 6, "-": 6, "*": 7, "/": 7, "%": 7, "div": 7, "||": 5, "negate": 8}  # fmt: skip
_ATOM = 9

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

# Words that sqlglot or Spark would not parse as a column name.
_KEYWORDS = frozenset(
    """
    all and any anti array as asc between both by case cast create cross current_date
    current_timestamp desc distinct div else end except exists extract false fetch filter first
    for from full group having if in inner intersect interval into is join last lateral leading
    left like limit map minus natural not null on or order outer over position range right rlike
    row rows select semi set some struct substring table then trim true try_cast union unnest
    using values when where window with within
    """.split()  # noqa: SIM905 - a list of strings would be ten times as long
)


def name_text(name: str) -> str:
    """A name in SQL, quoted if necessary."""
    if _PLAIN_NAME.match(name) and name.lower() not in _KEYWORDS:
        return name
    return "`" + name.replace("`", "``") + "`"


def column_text(qualifier: str, name: str) -> str:
    return f"{name_text(qualifier)}.{name_text(name)}" if qualifier else name_text(name)


def expression_text(expression: Expression) -> str:
    match expression:
        case Column(qualifier=qualifier, name=name):
            return column_text(qualifier, name)
        case OuterColumn(qualifier=qualifier, name=name):
            return f"outer({column_text(qualifier, name)})"
        case Literal(value=value, type=type_):
            return literal_text(value, type_)
        case Cast(operand=operand, type=target, attempt=attempt):
            word = "TRY_CAST" if attempt else "CAST"
            return f"{word}({expression_text(operand)} AS {types.sql_name(target)})"
        case Call():
            return _call_text(expression)
        case AggregateCall():
            return _aggregate_text(expression)


def literal_text(value: object, type_: pa.DataType) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case Secret():
            return f"'{MASK}'"
        case str():
            for mark, escaped in (("\\", "\\\\"), ("'", "\\'"), ("\n", "\\n"), ("\r", "\\r")):
                value = value.replace(mark, escaped)
            return f"'{value}'"
        case bytes():
            return f"X'{value.hex()}'"
        case float():
            if math.isfinite(value):
                return f"{value!r}E0" if "e" not in repr(value) else repr(value)
            return f"CAST('{functions.to_string(value, type_)}' AS {types.sql_name(type_)})"
        case int() if pa.types.is_duration(type_):
            return _interval_text(value)
        case Decimal():
            text = format(value, "f")
            return text if "." in text else f"{text}."  # without a point it is an integer
    return str(value)


def _interval_text(microseconds: int) -> str:
    for unit, size in reversed(MICROSECONDS.items()):
        if microseconds % size == 0:
            return f"INTERVAL '{microseconds // size}' {unit}"
    raise AssertionError("a microsecond divides everything")


def _strength(expression: Expression) -> int:
    if isinstance(expression, Call):
        return _STRENGTH.get(expression.function, _ATOM)
    negative = isinstance(expression, Literal) and str(expression.value).startswith("-")
    return _STRENGTH["negate"] if negative else _ATOM


def _operand(expression: Expression, strength: int) -> str:
    text = expression_text(expression)
    return text if _strength(expression) > strength else f"({text})"


def _call_text(call: Call) -> str:
    name, arguments = call.function, call.arguments
    strength = _STRENGTH.get(name, _ATOM)
    match name:
        case "not":
            return f"NOT {_operand(arguments[0], strength)}"
        case "negate":
            return f"-{_operand(arguments[0], strength)}"
        case "is null":
            return f"{_operand(arguments[0], strength)} IS NULL"
        case "in":
            items = ", ".join(map(expression_text, arguments[1:]))
            return f"{_operand(arguments[0], strength)} IN ({items})"
        case "case":
            return _case_text(arguments)
        case "element":
            return f"{_operand(arguments[0], _ATOM - 1)}[{expression_text(arguments[1])}]"
        case "like" if len(arguments) == 3:
            value, pattern, escape = (_operand(argument, strength) for argument in arguments)
            return f"{value} LIKE {pattern} ESCAPE {escape}"
        case "and" | "or" | "+" | "*":  # these associate: no brackets on the left
            left = _operand(arguments[0], strength - 1)
            return f"{left} {name.upper()} {_operand(arguments[1], strength)}"
    if name.startswith("."):  # a field of a struct
        return f"{_operand(arguments[0], _ATOM - 1)}.{name_text(name[1:])}"
    if name in _STRENGTH:
        left, right = (_operand(argument, strength) for argument in arguments)
        return f"{left} {name.upper()} {right}"
    return f"{name_text(name)}({', '.join(map(expression_text, arguments))})"


def _case_text(arguments: tuple[Expression, ...]) -> str:
    texts = list(map(expression_text, arguments))
    branches = "".join(f" WHEN {texts[i]} THEN {texts[i + 1]}" for i in range(0, len(texts) - 1, 2))
    otherwise = f" ELSE {texts[-1]}" if len(texts) % 2 else ""
    return f"CASE{branches}{otherwise} END"


def _aggregate_text(call: AggregateCall) -> str:
    arguments = ", ".join(map(expression_text, call.arguments))
    if call.function == "count" and not call.arguments:
        arguments = "*"
    text = f"{name_text(call.function)}({'DISTINCT ' if call.distinct else ''}{arguments})"
    if call.filter is not None:
        text += f" FILTER (WHERE {expression_text(call.filter)})"
    if call.order:
        text += f" ORDERED BY ({', '.join(map(expression_text, call.order))})"
    return text


def named_text(named: Named, qualifier: str = "") -> str:
    """`expression AS name`; a column that keeps its name and qualifier needs no AS."""
    text = expression_text(named.expression)
    same = isinstance(named.expression, Column) and named.expression.name == named.name
    if same and named.qualifier == qualifier:
        return text
    return f"{text} AS {column_text(named.qualifier, named.name)}"


def key_text(named: Named) -> str:
    """A grouping key; a column that keeps its name and qualifier needs no AS."""
    column = named.expression
    return named_text(named, column.qualifier if isinstance(column, Column) else "")


def sort_key_text(key: SortKey) -> str:
    text = expression_text(key.expression) + (" DESC" if key.descending else "")
    if key.nulls_first is key.descending:  # not the default
        text += " NULLS FIRST" if key.nulls_first else " NULLS LAST"
    return text


# --- plans ----------------------------------------------------------------------------------------


def plan_text(plan: Plan) -> str:
    return "\n".join(_lines(plan, 0))


def _lines(plan: Plan, level: int) -> Iterator[str]:
    yield "  " * level + " ".join([type(plan).__name__, *_properties(plan)])
    for child in plan.inputs:
        yield from _lines(child, level + 1)


def _properties(plan: Plan) -> list[str]:
    return [f"{key}={value}" for key, value in properties(plan).items()]


def properties(plan: Plan) -> dict[str, str]:
    """The properties of a node, without defaults."""
    time = plan.domain
    match plan:
        case Source():
            own = {"stream": name_text(plan.stream)}
            if plan.alias != plan.stream:
                own["as"] = name_text(plan.alias)
            return own | ({"arrival": "yes"} if plan.arrival else {})
        case Filter():
            return {"where": expression_text(plan.predicate)}
        case Map():
            return {"columns": _list(map(named_text, plan.outputs))}
        case Join():
            on = {} if plan.condition is None else {"on": expression_text(plan.condition)}
            return {"kind": plan.kind.value} | on
        case Aggregate():
            by = {"by": _list(map(key_text, plan.keys))} if plan.keys else {}
            return by | {"compute": _list(map(named_text, plan.aggregates))}
        case TopN():
            by = {"by": _list(map(expression_text, plan.keys))} if plan.keys else {}
            order = _list(map(sort_key_text, plan.order))
            return by | {"limit": str(plan.limit), "order": order}
        case TimeWindow():
            return {"range": _size(plan.size, time)} | _window_properties(plan, time)
        case CountWindow():
            order = _list(map(expression_text, plan.order))
            return {"rows": _rows(plan.rows), "order": order} | _window_properties(plan, time)
        case PartitionedWindow():
            own = {
                "by": _list(map(expression_text, plan.keys)),
                "rows": _rows(plan.rows),
                "order": _list(map(expression_text, plan.order)),
            }
            return own | _window_properties(plan, time)
        case Granularity():
            coarsest = {} if plan.coarsest is None else {"coarsest": time.format(plan.coarsest)}
            return {"granule": time.format(plan.granule)} | coarsest
        case Rstream() if plan.granule != 1:
            return {"granule": time.format(plan.granule)}
    return {}


def _window_properties(
    plan: TimeWindow | CountWindow | PartitionedWindow, time: TimeDomain
) -> dict[str, str]:
    in_time = isinstance(plan, TimeWindow)
    own = {}
    if plan.slide != (plan.granule if in_time else 1):
        own["slide"] = time.format(plan.slide) if in_time else str(plan.slide)
    if plan.granule != 1:
        own["granule"] = time.format(plan.granule)
    if plan.minimum is not None:
        own["min"] = time.format(plan.minimum) if in_time else str(plan.minimum)
    return own


def _size(chronons: int, time: TimeDomain) -> str:
    return "UNBOUNDED" if chronons == INFINITY else time.format(chronons)


def _rows(rows: int) -> str:
    return "UNBOUNDED" if rows == INFINITY else str(rows)


def _list(items: Iterable[str]) -> str:
    return f"[{', '.join(items)}]"


def plan_json(plan: Plan) -> dict[str, object]:
    """The plan as plain data, for `explain(format="json")`."""
    return {
        "operator": type(plan).__name__,
        "properties": properties(plan),
        "columns": [
            {"name": field.name, "type": types.sql_name(field.type)} for field in plan.schema
        ],
        "inputs": [plan_json(child) for child in plan.inputs],
    }
