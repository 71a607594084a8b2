"""From sqlglot's syntax nodes to calls of our functions.

sqlglot has a node class for most functions, one class for all synonyms, wraps and reorders
arguments, and knows different functions in different versions. `call_of` and `aggregate_of` undo
this: they return the canonical name of the function and its arguments in the function's order. An
unknown argument raises ValueError; it is never dropped.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from millstream.logical import aggregates, functions
from millstream.sql.written import too_many

Call = tuple[str, list[exp.Expression]]

# Node class: canonical name, then the keys of its arguments in our order. Classes are named by
# text because older versions of sqlglot lack some; the rest is Anonymous there.
_NODES = {
    "And": "and this expression",
    "Or": "or this expression",
    "Not": "not this",
    "EQ": "= this expression",
    "NEQ": "<> this expression",
    "LT": "< this expression",
    "LTE": "<= this expression",
    "GT": "> this expression",
    "GTE": ">= this expression",
    "NullSafeEQ": "<=> this expression",
    "Add": "+ this expression",
    "Sub": "- this expression",
    "Mul": "* this expression",
    "Div": "/ this expression",
    "Mod": "% this expression",
    "IntDiv": "div this expression",
    "Neg": "negate this",
    "DPipe": "|| this expression",
    "Like": "like this expression",
    "RegexpLike": "rlike this expression",
    "If": "if this true false",
    "Coalesce": "coalesce this expressions",
    "Nullif": "nullif this expression",
    "Nvl2": "nvl2 this true false",
    "Greatest": "greatest this expressions",
    "Least": "least this expressions",
    "Abs": "abs this",
    "Ceil": "ceil this decimals",
    "Floor": "floor this decimals",
    "Round": "round this decimals",
    "Sqrt": "sqrt this",
    "Exp": "exp this",
    "Ln": "ln this",
    "Pow": "power this expression",
    "Sign": "sign this",
    "Sin": "sin this",
    "Cos": "cos this",
    "Tan": "tan this",
    "Asin": "asin this",
    "Acos": "acos this",
    "Atan": "atan this",
    "Atan2": "atan2 this expression",
    "Pi": "pi",
    "Degrees": "degrees this",
    "Radians": "radians this",
    "IsNan": "isnan this",
    "Nanvl": "nanvl this expression",
    "Rand": "rand this",
    "Upper": "upper this",
    "Lower": "lower this",
    "Length": "length this",
    "Substring": "substring this start length",
    "Left": "left this expression",
    "Right": "right this expression",
    "Concat": "concat expressions",
    "ConcatWs": "concat_ws expressions",
    "Replace": "replace this expression replacement",
    "StartsWith": "startswith this expression",
    "EndsWith": "endswith this expression",
    "Contains": "contains this expression",
    "Reverse": "reverse this",
    "Repeat": "repeat this times",
    "Translate": "translate this from_ to",
    "SplitPart": "split_part this delimiter part_index",
    "Ascii": "ascii this",
    "Unicode": "ascii this",
    "Chr": "chr expressions",
    "MD5": "md5 this",
    "SHA2": "sha2 this length",
    "Uuid": "uuid",
    "Year": "year this",
    "Quarter": "quarter this",
    "Month": "month this",
    "Day": "day this",
    "DayOfMonth": "day this",
    "DayOfWeek": "dayofweek this",
    "DayOfYear": "dayofyear this",
    "WeekOfYear": "weekofyear this",
    "Hour": "hour this",
    "Minute": "minute this",
    "Second": "second this",
    "DateDiff": "datediff this expression",
    "TsOrDsToDate": "to_date this",
    "UnixSeconds": "unix_seconds this",
    "UnixMillis": "unix_millis this",
    "UnixMicros": "unix_micros this",
    "CurrentTimestamp": "current_timestamp this",
    "CurrentDate": "current_date this",
    "Array": "array expressions",
    "ArraySize": "size this",
    "ArrayContains": "array_contains this expression",
}

# Notes that sqlglot makes for other dialects; they do not change the meaning of Spark's text.
_NOTES = {
    "big_int",
    "bracket_notation",
    "coalesce",
    "flatten",
    "ignore_nulls",
    "nulls_excluded",
    "safe",
    "typed",
}

# These wrap their argument in a conversion to DATE, which our functions do themselves.
_OF_DATES = {
    "Year", "Month", "Day", "DayOfMonth", "DayOfWeek", "DayOfYear", "WeekOfYear", "DateDiff",
}  # fmt: skip

_SYNONYMS = {
    "cardinality": "size",
    "curdate": "current_date",
    "isnull": "is null",
    "now": "current_timestamp",
}

_EXTRACTS = {
    **dict.fromkeys(("YEAR", "Y", "YEARS", "YR", "YRS"), "year"),
    **dict.fromkeys(("QUARTER", "QTR"), "quarter"),
    **dict.fromkeys(("MONTH", "MON", "MONS", "MONTHS"), "month"),
    **dict.fromkeys(("WEEK", "W", "WEEKS"), "weekofyear"),
    **dict.fromkeys(("DAY", "D", "DAYS"), "day"),
    **dict.fromkeys(("DAYOFWEEK", "DOW"), "dayofweek"),
    "DOY": "dayofyear",
    **dict.fromkeys(("HOUR", "H", "HOURS", "HR", "HRS"), "hour"),
    **dict.fromkeys(("MINUTE", "M", "MIN", "MINS", "MINUTES"), "minute"),
    **dict.fromkeys(("SECOND", "S", "SEC", "SECONDS", "SECS"), "extract_second"),
}

_TRUNCATIONS = {
    "YEAR", "YYYY", "YY", "QUARTER", "MONTH", "MON", "MM", "WEEK", "DAY", "DD",
    "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND",
}  # fmt: skip
_DATE_TRUNCATIONS = {"YEAR", "YYYY", "YY", "QUARTER", "MONTH", "MON", "MM", "WEEK"}


def call_of(node: exp.Expression) -> Call | None:
    """The scalar function or operator that a node calls, and its arguments; None for others.

    CAST, IS, BETWEEN, IN, intervals, subqueries and aggregates are not calls.
    """
    call = _call_of(node)
    if call is not None:
        _refuse_dropped(node, len(call[1]))
    return call


def _call_of(node: exp.Expression) -> Call | None:
    if node.args.get("negate"):
        return "not", [_without(node, "negate")]
    kind = type(node).__name__
    if kind in _SPECIAL:
        return _SPECIAL[kind](node)
    if kind in _NODES:
        name, *keys = _NODES[kind].split()
        return name, _arguments(node, keys, unwrap=kind in _OF_DATES)
    if isinstance(node, exp.Func) and not isinstance(node, (exp.AggFunc, *_NO_CALLS)):
        return node.sql_name().lower(), _arguments(node, list(node.arg_types))
    return None


_NO_CALLS = (exp.Cast, exp.Exists, exp.Case, exp.Any, exp.All)


def _arguments(
    node: exp.Expression, keys: list[str], *, unwrap: bool = False
) -> list[exp.Expression]:
    """The arguments under these keys in order; raises ValueError if the node has others."""
    known = {*keys, *_NOTES}
    for key, value in node.args.items():
        if key not in known and value not in (None, False, [], ""):
            raise ValueError(f'"{node.sql(dialect="spark")}" is not supported')
    found: list[exp.Expression] = []
    for key in keys:
        value = node.args.get(key)
        values = value if isinstance(value, list) else [value]
        found.extend(v for v in values if isinstance(v, exp.Expression))
    if not unwrap:
        return found
    inner = (_unwrapped(argument) for argument in found)
    return [argument for argument in inner if argument is not None]


def _refuse_dropped(node: exp.Expression, used: int) -> None:
    """Raise ValueError if a call has more arguments than are used: sqlglot dropped the others."""
    given = node.meta.get("arguments", 0)
    if given > used and not _reads_all(node):
        raise ValueError(too_many(node.meta["called"], used, given))


def _reads_all(node: exp.Expression) -> bool:
    """sqlglot keeps all arguments of functions that it does not know."""
    return isinstance(node, exp.Anonymous)


def _unwrapped(node: exp.Expression) -> exp.Expression | None:
    """The argument itself; None if sqlglot added it."""
    wrapped = isinstance(node, exp.TsOrDsToDate) and not node.args.get("format")
    inner: exp.Expression | None = node.this if wrapped else node
    return inner


def _without(node: exp.Expression, key: str) -> exp.Expression:
    return _over(node, type(node), **{k: v for k, v in node.args.items() if k != key})


def _over(original: exp.Expression, made: type[exp.Expression], **args: object) -> exp.Expression:
    """A node that replaces `original`, over the same operand objects: the binder identifies
    aggregates and subqueries by identity, so nothing is copied."""
    node = made(**args)
    node.parent = original
    return node


def _unsupported(node: exp.Expression) -> ValueError:
    return ValueError(f'"{node.sql(dialect="spark")}" is not supported')


def written_name(node: exp.Expression, name: str) -> str:
    """The name of a call in Spark, where sqlglot's name differs."""
    if isinstance(node, exp.Anonymous):
        return name
    written: exp.Expression | None = node
    while written is not None and isinstance(written, exp.Func):
        if "called" in written.meta:  # an inner node may be one that sqlglot added
            return str(written.meta["called"])
        written = written.parent
    return str(node.sql(dialect="spark")).split("(")[0].lower()


def is_free_name(name: str) -> bool:
    """Whether a user-defined function may have this name: it has no meaning in SQL."""
    try:
        node = sqlglot.parse_one(f"{name}(x)", dialect="spark")
    except SqlglotError:  # it knows the name, and how many arguments it takes
        return False
    if not isinstance(node, exp.Anonymous) or aggregate_of(node) is not None:
        return False
    called = call_of(node)
    known = functions.lookup(name.lower()) or aggregates.lookup(name.lower())
    reserved = name.upper() in ("ISTREAM", "DSTREAM", "RSTREAM", "POSITIVE")
    return called is not None and called[0] == name.lower() and not known and not reserved


# --- nodes that need more than a reordering ---------------------------------------------------


def _anonymous(node: exp.Expression) -> Call | None:
    name = node.name.lower()
    if _aggregate_named(name) is not None:
        return None
    arguments = list(node.expressions)
    if name == "isnotnull" and len(arguments) == 1:
        return "not", [_over(node, exp.Is, this=arguments[0], expression=exp.Null())]
    if name in ("date_part", "datepart") and len(arguments) == 2:
        part, moment = arguments
        if not isinstance(part, exp.Literal):
            raise ValueError(f'the unit of "{name}" must be a known one in quotes, not "{part}"')
        return _part_of(node, part.name, moment)
    return _SYNONYMS.get(name, name), arguments


def _extract(node: exp.Expression) -> Call:
    return _part_of(node, node.this.name, node.expression)


def _part_of(node: exp.Expression, part: str, argument: exp.Expression) -> Call:
    name = _EXTRACTS.get(part.upper())
    if name is None:
        raise _unsupported(node)
    return name, [argument]


def _case(node: exp.Expression) -> Call:
    operand = node.args.get("this")
    found: list[exp.Expression] = []
    for branch in node.args["ifs"]:
        condition = branch.this
        if operand is not None:
            condition = _over(node, exp.EQ, this=operand, expression=condition)
        found += [condition, branch.args["true"]]
    default = node.args.get("default")
    return "case", found if default is None else [*found, default]


def _escape(node: exp.Expression) -> Call:
    if not isinstance(node.this, exp.Like):
        raise _unsupported(node)
    if node.this.args.get("negate"):
        positive = _without(node.this, "negate")
        return "not", [_over(node, exp.Escape, this=positive, expression=node.expression)]
    return "like", [node.this.this, node.this.expression, node.expression]


def _ilike(node: exp.Expression) -> Call:
    return "like", [_over(node, exp.Lower, this=side) for side in (node.this, node.expression)]


def _distinct_from(node: exp.Expression) -> Call:
    return "not", [_over(node, exp.NullSafeEQ, this=node.this, expression=node.expression)]


def _log(node: exp.Expression) -> Call:
    """sqlglot parses LOG10 and LOG2 as LOG with a base."""
    base, *rest = arguments = _arguments(node, ["this", "expression"])
    if not rest:
        return "ln", arguments
    if node.meta.get("called") == "log":
        return "log", arguments
    if isinstance(base, exp.Literal) and base.name in ("2", "10"):
        return f"log{base.name}", rest
    return "log", arguments


def _trim(node: exp.Expression) -> Call:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(node.args.get("position") or "", "trim")
    return name, _arguments(_without(node, "position"), ["expression", "this"])


def _pad(node: exp.Expression) -> Call:
    name = "lpad" if node.args.get("is_left") else "rpad"
    return name, _arguments(_without(node, "is_left"), ["this", "expression", "fill_pattern"])


def _initcap(node: exp.Expression) -> Call:
    delimiters = node.args.get("expression")
    if delimiters is not None and delimiters.name != " ":
        raise _unsupported(node)
    return "initcap", _arguments(_without(node, "expression"), ["this"])


def _add_days(node: exp.Expression) -> Call:
    """DATE_ADD; sqlglot parses DATE_SUB as the addition of a count times minus one."""
    unit = node.args.get("unit")
    other_unit = unit is not None and unit.name.upper() != "DAY"
    if other_unit or node.meta.get("called") == "timestampadd":  # of a timestamp, no date
        raise _unsupported(node)
    days = node.expression
    if isinstance(days, exp.Mul) and days.expression.sql() == "-1":
        return "date_sub", [node.this, days.this.unnest()]
    return "date_add", [node.this, days]


def _truncate(node: exp.Expression) -> Call:
    """DATE_TRUNC, and TRUNC of a date. sqlglot takes a column for the unit of that name."""
    name, place, known = ("date_trunc", 0, _TRUNCATIONS)
    if isinstance(node, exp.DateTrunc):
        name, place, known = ("trunc", 1, _DATE_TRUNCATIONS)
    unit = node.args["unit"].name
    quoted = node.meta.get("quoted", (True, True))[place]
    if unit.upper() not in known or not quoted or node.args.get("zone"):
        raise ValueError(f'the unit of "{name}" must be a known one in quotes, not "{unit}"')
    arguments = [exp.Literal.string(unit), node.this]
    return name, arguments if name == "date_trunc" else arguments[::-1]


def _position(node: exp.Expression) -> Call:
    """LOCATE and POSITION; INSTR is another function, whose first argument is the text."""
    if node.meta.get("called") == "instr":
        return "instr_from", _arguments(node, ["this", "substr", "position", "occurrence"])
    return "position", _arguments(node, ["substr", "this", "position"])


def _bracket(node: exp.Expression) -> Call:
    if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Slice):
        raise _unsupported(node)
    name = "element_at" if node.args.get("offset") == 1 else "element"
    if name == "element_at" and node.args.get("safe"):
        name = "try_element_at"
    return name, [node.this, node.expressions[0]]


def _dot(node: exp.Expression) -> Call | None:
    if not isinstance(node.expression, exp.Identifier):
        return None
    return f".{node.expression.name}", [node.this]


_SPECIAL: dict[str, Callable[[exp.Expression], Call | None]] = {
    "Anonymous": _anonymous,
    "Bracket": _bracket,
    "Case": _case,
    "Dot": _dot,
    "Escape": _escape,
    "Extract": _extract,
    "ILike": _ilike,
    "Initcap": _initcap,
    "Log": _log,
    "NullSafeNEQ": _distinct_from,
    "DateTrunc": _truncate,
    "Pad": _pad,
    "StrPosition": _position,
    "TimestampTrunc": _truncate,
    "Trim": _trim,
    "TsOrDsAdd": _add_days,
}

# --- aggregates -------------------------------------------------------------------------------

_AGGREGATES = {
    "AnyValue": "first this",
    "ArgMax": "max_by this expression",
    "ArgMin": "min_by this expression",
    "ArrayAgg": "array_agg this",
    "Avg": "avg this",
    "Count": "count this expressions",
    "CountIf": "count_if this",
    "First": "first this",
    "FirstValue": "first this",
    "Last": "last this",
    "LastValue": "last this",
    "LogicalAnd": "bool_and this",
    "LogicalOr": "bool_or this",
    "Max": "max this expressions",
    "Median": "median this",
    "Min": "min this expressions",
    "Quantile": "quantile this quantile",
    "Stddev": "stddev_samp this",
    "StddevPop": "stddev_pop this",
    "StddevSamp": "stddev_samp this",
    "Sum": "sum this",
    "Variance": "var_samp this",
    "VariancePop": "var_pop this",
}

# Other names of aggregates that sqlglot does not know.
_OTHER_NAMES = {
    "every": "bool_and",
    "mean": "avg",
    "some": "bool_or",
    "std": "stddev_samp",
}


def aggregate_of(node: exp.Expression) -> tuple[str, list[exp.Expression], bool] | None:
    """The aggregate function that a node calls, its arguments, and whether it has DISTINCT.

    COUNT(*) has no arguments. FILTER, OVER and WITHIN GROUP are nodes around the call and are not
    handled here.
    """
    if isinstance(node, exp.IgnoreNulls):
        raise _unsupported(node)
    call = _aggregate_call(node)
    if call is None:
        return None
    name, arguments = call
    distinct = len(arguments) > 0 and isinstance(arguments[0], exp.Distinct)
    if distinct:
        first, *rest = arguments
        arguments = [*_arguments(first, ["expressions"]), *rest]
    _refuse_dropped(node, len(arguments))
    if name == "count" and not distinct and _is_star(arguments):
        return "count", [], False
    if not arguments or any(isinstance(a, exp.Star | exp.Order | exp.Limit) for a in arguments):
        raise _unsupported(node)
    return name, arguments, distinct


def _aggregate_call(node: exp.Expression) -> Call | None:
    kind = type(node).__name__
    if kind in _AGGREGATES:
        name, *keys = _AGGREGATES[kind].split()
        return name, _arguments(node, keys)
    if isinstance(node, exp.Anonymous):
        known = _aggregate_named(node.name.lower())
        return None if known is None else (known, list(node.expressions))
    if isinstance(node, exp.Any) and not isinstance(node.parent, exp.Predicate):
        operand = node.this.unnest()
        return None if isinstance(operand, exp.Query) else ("bool_or", [operand])
    if isinstance(node, exp.AggFunc):
        return node.sql_name().lower(), _arguments(node, list(node.arg_types))
    return None


def _aggregate_named(name: str) -> str | None:
    """The canonical name of an aggregate that sqlglot does not know."""
    name = _OTHER_NAMES.get(name, name)
    return None if aggregates.lookup(name) is None else name


def _is_star(arguments: list[exp.Expression]) -> bool:
    return len(arguments) == 1 and isinstance(arguments[0], exp.Star)
