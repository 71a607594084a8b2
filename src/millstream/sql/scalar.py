"""Scalar expressions: from sqlglot's nodes to typed expressions, implicit casts made explicit."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from millstream.logical import aggregates, functions
from millstream.logical.catalog import Catalog
from millstream.logical.expression_facts import constant
from millstream.logical.expressions import (
    Call,
    Cast,
    Expression,
    Literal,
    chained,
    conjuncts,
)
from millstream.logical.functions import NoCommonTypeError, SignatureError
from millstream.logical.functions.arithmetic import unary_signature
from millstream.model import types
from millstream.model.errors import BindError, Span, did_you_mean, one_of
from millstream.model.names import Name
from millstream.sql import other_dialects
from millstream.sql.aggregation import is_aggregate
from millstream.sql.calls import call_of, written_name
from millstream.sql.clauses import parameter_value
from millstream.sql.intervals import bind_interval, units_of
from millstream.sql.literals import literal_of
from millstream.sql.operands import (
    ROUNDED,
    compared_as_integers,
    is_number,
    is_suffixed_number,
    with_own_digits,
    with_strings_cast,
)
from millstream.sql.parser import STREAM_FUNCTIONS
from millstream.sql.scope import Scope, name_of, name_span_of, refuse_others, span_of
from millstream.sql.type_syntax import from_sql
from millstream.sql.written import is_unary_plus, too_many

BOOLEAN = pa.bool_()

# Operators whose operands may be a decimal and an integer.
BINARY_OPERATORS = frozenset(
    ["+", "-", "*", "/", "%", "div", "=", "<>", "<", "<=", ">", ">=", "<=>"]
)

NO_FROM = "a SELECT without FROM"  # as a place

_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class ScalarBinder:
    """Binds expressions over the columns of a scope.

    Subclasses define the meaning of aggregates and subqueries; here they are errors. `place` names
    the clause in messages.
    """

    def __init__(
        self, catalog: Catalog, scope: Scope, parameters: Mapping[str, object], place: str
    ) -> None:
        self.catalog = catalog
        self.scope = scope
        self.parameters = parameters
        self.place = place

    # --- what depends on the place ---------------------------------------------------------------

    def aggregate(self, node: exp.Expression) -> Expression:
        remedies = {"WHERE": "write it in HAVING or in a subquery", "ON": "write it in a subquery"}
        raise BindError(
            f"an aggregate is not allowed in {self.place}", span_of(node), remedies.get(self.place)
        )

    def subquery(self, node: exp.Expression) -> Expression:
        from_query = "use a query with FROM: SELECT …, MAX(x) FROM …"
        remedies = {
            "ON": "write the condition in WHERE",
            "VALUES": from_query,
            NO_FROM: from_query,
        }
        raise BindError(
            f"a subquery is not allowed in {self.place}", span_of(node), remedies.get(self.place)
        )

    def nondeterministic(self, node: exp.Expression, name: str) -> None:
        """Called for functions that are not deterministic; refused by default."""
        raise BindError(
            f'function "{name}" is not deterministic and would make the answer depend on when it '
            "is computed",
            span_of(node),
            "use it in the first projection over a source stream, "
            "where it is evaluated once per row",
        )

    # --- binding ---------------------------------------------------------------------------------

    def bind(self, node: exp.Expression) -> Expression:
        if is_subquery(node):
            return self.subquery(node)
        match node:
            case exp.Paren():
                return self.bind(node.this)
            case exp.And() | exp.Or():
                return self._connected(node)
            case exp.Alias():
                raise BindError("an alias with AS is not allowed here", span_of(node))
            case exp.Column():
                return self.column(node)
            case exp.Literal():
                return self._literal(node)
            case exp.Boolean():
                return Literal(bool(node.this), BOOLEAN)
            case exp.Null():
                return Literal(None, pa.null())
            case exp.Placeholder() | exp.Parameter():
                return self._parameter(node)
            case exp.Interval():
                return bind_interval(node)
            case exp.HexString():
                return Literal(bytes.fromhex(_hex_digits(node)), types.BINARY)
            case exp.Neg() if is_number(node.this):
                return self._literal(node.this, negative=True)
            case exp.Neg() if is_suffixed_number(node.this):
                return self._cast(node.this, negative=True)
            case exp.Anonymous() if is_unary_plus(node):
                return self._positive(node)
            case exp.Add() | exp.Sub():
                return self._sum(node)
            case exp.Cast():  # also TryCast
                return self._cast(node)
            case exp.Between():
                return self._between(node)
            case exp.In():
                return self._in(node)
            case exp.Is():
                return self._is(node)
            case exp.Window() | exp.WithinGroup():
                called = str(node.this.meta.get("called") or "")
                raise BindError(
                    "OVER is not supported: a window belongs to a stream",
                    span_of(node),
                    other_dialects.FUNCTIONS.get(called)
                    or "write FROM stream WINDOW(RANGE 10 MINUTES), which every operator can use",
                )
            case exp.JSONExtract() | exp.JSONExtractScalar():
                raise BindError("JSON paths are not supported", span_of(node), other_dialects.JSON)
            case exp.Star():
                raise BindError(f'"*" is not allowed in {self.place}', span_of(node))
            case exp.Filter():
                return self.aggregate(node)
        return self._function(node)

    def _connected(self, node: exp.Expression) -> Expression:
        """AND and OR of any number of operands; a BETWEEN in an AND counts as two."""
        name = "and" if isinstance(node, exp.And) else "or"
        bound = [self.bind(part) for part in connected(node, type(node))]
        if name == "and":
            bound = [part for operand in bound for part in conjuncts(operand)]
        return chained(bound, lambda left, right: self.call(name, left, right, at=node))

    def predicate(self, node: exp.Expression) -> Expression:
        """An expression that must be BOOLEAN."""
        bound = self.bind(node)
        if not pa.types.is_boolean(bound.type) and not pa.types.is_null(bound.type):
            given = types.sql_name(bound.type)
            raise BindError(
                f"the condition of {self.place} must be BOOLEAN, not {given}", span_of(node)
            )
        return self.cast(bound, BOOLEAN)

    def column(self, node: exp.Column) -> Expression:
        if isinstance(node.this, exp.Star):
            raise BindError(f'"*" is not allowed in {self.place}', span_of(node))
        names = [name_of(part) for part in node.parts]
        error: BindError | None = None
        try:
            if len(names) <= 2:
                return self.scope.resolve(names[-1], names[-2] if len(names) == 2 else None)
        except BindError as unknown:
            error = unknown
        field = self._field_of_struct(names, node)
        if field is None:
            raise error or BindError("a column has at most one qualifier", span_of(node))
        return field

    def _field_of_struct(self, names: list[Name], node: exp.Column) -> Expression | None:
        """`column.field` or `stream.column.field`, where the column is a STRUCT."""
        for table, column, fields in (
            (None, names[0], names[1:]),
            (names[0], names[1] if len(names) > 1 else None, names[2:]),
        ):
            if column is None or not fields:
                continue
            try:
                value = self.scope.resolve(column, table)
            except BindError:
                continue
            if not pa.types.is_struct(value.type):
                continue
            for name in fields:
                declared = [f.name for f in value.type] if pa.types.is_struct(value.type) else []
                known = next((f for f in declared if name.matches(f)), None)
                if known is None:
                    raise BindError(
                        f'"{column.text}" has no field "{name.text}"',
                        name.span,
                        one_of(name.text, declared, "field"),
                    )
                value = self.call(f".{known}", value, at=node)
            return value
        return None

    def call(
        self,
        name: str,
        *arguments: Expression,
        at: exp.Expression | None = None,
        span: Span | None = None,
    ) -> Call:
        """The call of a built-in or user-defined function, its arguments cast as needed."""
        user = self.catalog.functions.get(name)
        if user is not None:
            return Call(name, arguments, user.returns)
        function = functions.lookup(name)
        if function is None:
            written = name if at is None else written_name(at, name)
            raise BindError(
                f'function "{written}" does not exist',
                None if at is None else name_span_of(at),
                other_dialects.FUNCTIONS.get(written)
                or did_you_mean(
                    written,
                    [*functions.names(), *aggregates.names(), *self.catalog.functions],
                ),
            )
        if not function.deterministic and at is not None:
            self.nondeterministic(at, name)
        if name in ("/", "-"):
            arguments = with_strings_cast(name, arguments)
        if name in ROUNDED:
            arguments = compared_as_integers(name, *arguments)
        try:
            signature = function.signature(tuple(argument.type for argument in arguments))
            result = signature.result
            if function.narrowed is not None:
                cast = map(self.cast, arguments, signature.arguments)
                result = function.narrowed(signature, *map(constant, cast))
        except NoCommonTypeError as error:
            place = span_of(at) if at is not None else span
            raise BindError(str(error), place, "cast one of them with CAST(… AS …)") from None
        except SignatureError as error:
            raise BindError(str(error), span_of(at) if at is not None else span) from None
        return Call(function.name, tuple(map(self.cast, arguments, signature.arguments)), result)

    @staticmethod
    def cast(expression: Expression, target: pa.DataType) -> Expression:
        return expression if expression.type == target else Cast(expression, target)

    # --- forms -----------------------------------------------------------------------------------

    def _function(self, node: exp.Expression) -> Expression:
        if is_aggregate(node, self.catalog):
            return self.aggregate(node)
        try:
            called = call_of(node)
        except ValueError as error:
            raise BindError(str(error), span_of(node)) from None
        if called is None:
            text = node.sql(dialect="spark")
            raise BindError(f"this expression is not supported: {text}", span_of(node))
        name, arguments = called
        if name.upper() in STREAM_FUNCTIONS:
            raise BindError(
                f"{name.upper()} belongs in FROM, or around the whole select list", span_of(node)
            )
        if name in BINARY_OPERATORS:
            return self.call(name, *self._operands(*arguments), at=node)
        return self.call(name, *map(self.bind, arguments), at=node)

    def _operands(self, *nodes: exp.Expression) -> list[Expression]:
        """The operands of an operator. An integer literal beside a decimal becomes a decimal with
        the digits of the literal: the range of its type would cost the result fractional digits."""
        bound = [self.bind(node) for node in nodes]
        if not any(types.is_decimal(operand.type) for operand in bound):
            return bound
        return [with_own_digits(*pair) for pair in zip(nodes, bound, strict=True)]

    def _literal(self, node: exp.Literal, negative: bool = False) -> Expression:
        text = node.this
        if node.is_string:
            return Literal(text, types.STRING)
        if len(text) > 60:
            raise BindError("a number has at most 38 digits", span_of(node))
        if text.isdecimal():
            value = -int(text) if negative else int(text)
            if -(2**31) <= value < 2**31:
                return Literal(value, types.INT)
            if -(2**63) <= value < 2**63:
                return Literal(value, types.BIGINT)
        if not _NUMBER.fullmatch(text):
            raise BindError(f'"{text}" is not a number', span_of(node))
        if "e" in text.lower():
            number = float(text)
            if not math.isfinite(number):
                raise BindError("the number is too large for DOUBLE", span_of(node))
            return Literal(-number if negative else number, types.DOUBLE)
        exact = Decimal(text)
        if negative and exact:  # there is no negative zero; unary minus would round to 28 digits
            exact = exact.copy_negate()
        _, digits, exponent = exact.as_tuple()
        scale = max(-int(exponent), 0)
        precision = max(len(digits), scale)
        if precision > 38:
            raise BindError("a number has at most 38 digits", span_of(node))
        return Literal(exact, pa.decimal128(precision, scale))

    def _parameter(self, node: exp.Expression) -> Expression:
        name = str(node.name or node.this or "")
        if not name.isidentifier():
            raise BindError(
                "a parameter has a name",
                span_of(node),
                "write :name and pass it by name: sql(text, name=…)",
            )
        value = parameter_value(name, self.parameters, span_of(node))
        try:
            return literal_of(value)
        except OverflowError:
            raise BindError(
                f'parameter ":{name}" has a value that is too large for BIGINT', span_of(node)
            ) from None
        except TypeError:
            raise BindError(
                f'parameter ":{name}" has a value of type {type(value).__name__}, which no '
                "column can have",
                span_of(node),
            ) from None

    def _positive(self, node: exp.Anonymous) -> Expression:
        """The operand as it is, or as a number if it is a string."""
        operand = self.bind(node.expressions[0])
        try:
            (wanted,) = unary_signature("+", operand.type).arguments
        except SignatureError as error:
            raise BindError(str(error), span_of(node)) from None
        return self.cast(operand, wanted)

    def _sum(self, node: exp.Add | exp.Sub) -> Expression:
        """A sum or a difference. A date plus an interval written in days is a date. The type
        INTERVAL does not record its units, so otherwise the result is a TIMESTAMP."""
        name = "+" if isinstance(node, exp.Add) else "-"
        left, right = self._operands(node.this, node.expression)
        if (left.type, right.type) == (types.DATE, types.INTERVAL):
            right = self._days(node.expression) or right
        elif (left.type, right.type) == (types.INTERVAL, types.DATE):
            left = self._days(node.this) or left
        return self.call(name, left, right, at=node)

    def _days(self, node: exp.Expression) -> Expression | None:
        """The number of days of an interval that is written in whole days."""
        match node:
            case exp.Paren():
                return self._days(node.this)
            case exp.Anonymous() if is_unary_plus(node):
                return self._days(node.expressions[0])
            case exp.Neg():
                days = self._days(node.this)
                return None if days is None else self.call("negate", days, at=node)
            case exp.Add() | exp.Sub():
                return self._days_of_sum(node)
            case exp.Interval() if units_of(node) <= {"DAY", "WEEK"}:
                interval = bind_interval(node)
                assert isinstance(interval.value, int)
                whole, rest = divmod(interval.value, types.MICROS_PER_DAY)
                return None if rest else Literal(whole, types.INT)
        return None

    def _days_of_sum(self, node: exp.Add | exp.Sub) -> Expression | None:
        name = "+" if isinstance(node, exp.Add) else "-"
        a, b = self._days(node.this), self._days(node.expression)
        if a is not None and b is not None:
            return self.call(name, a, b, at=node)
        if a is not None or b is not None or name == "+":
            return None
        left, right = self.bind(node.this), self.bind(node.expression)
        if left.type == right.type == types.DATE:
            return self.call("datediff", left, right, at=node)
        return None

    def _cast(self, node: exp.Cast, *, negative: bool = False) -> Expression:
        refuse_others(node, ("this", "to", "safe"), "CAST")
        if node.meta.get("arguments", 1) > 1:  # INT(x) is a CAST too
            given = node.meta["arguments"]
            raise BindError(too_many(node.meta["called"], 1, given), span_of(node))
        if node.this is None:  # sqlglot puts a CAST around arguments that may be missing
            raise BindError("arguments are missing", span_of(node))
        operand = self._literal(node.this, negative=True) if negative else self.bind(node.this)
        try:
            target = from_sql(node.to)
        except ValueError as error:
            raise BindError(str(error), span_of(node)) from None
        if not types.can_cast(operand.type, target):
            raise BindError(
                f"{types.sql_name(operand.type)} cannot be cast to {types.sql_name(target)}",
                span_of(node),
            )
        if node.args.get("safe"):  # TRY_CAST; the dialect parses CAST to the same class without it
            return Cast(operand, target, attempt=True)
        return self.cast(operand, target)

    def _between(self, node: exp.Between) -> Expression:
        if node.args.get("symmetric"):
            raise BindError("BETWEEN SYMMETRIC is not supported", span_of(node))
        value, low, high = self._operands(node.this, node.args["low"], node.args["high"])
        return self.call(
            "and", self.call(">=", value, low, at=node), self.call("<=", value, high, at=node)
        )

    def _in(self, node: exp.In) -> Expression:
        items = node.expressions
        if not items or node.args.get("unnest") or node.args.get("field"):
            raise BindError("IN takes a list of values or a subquery", span_of(node))
        return self.call("in", *map(self.bind, (node.this, *items)), at=node)

    def _is(self, node: exp.Is) -> Expression:
        value, what = self.bind(node.this), node.expression
        if isinstance(what, exp.Not):  # some versions of sqlglot put the NOT inside
            return self.call("not", self._is_what(value, what.this, node))
        return self._is_what(value, what, node)

    def _is_what(self, value: Expression, what: exp.Expression, node: exp.Is) -> Expression:
        if isinstance(what, exp.Null):
            return self.call("is null", value, at=node)
        if isinstance(what, exp.Boolean):
            return self.call("<=>", value, Literal(bool(what.this), BOOLEAN), at=node)
        raise BindError("expected NULL, TRUE or FALSE after IS", span_of(node))


def connected(node: exp.Expression, kind: type[exp.Expression]) -> list[exp.Expression]:
    """The operands of a chain of AND or OR, from left to right, ignoring brackets."""
    found, waiting = [], [node]
    while waiting:
        part = waiting.pop()
        inner = part
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if type(inner) is kind:
            waiting += [inner.expression, inner.this]
        else:
            found.append(part)
    return found


def is_subquery(node: exp.Expression) -> bool:
    """Whether a subquery computes the value of the node."""
    match node:
        case exp.Subquery() | exp.Exists() | exp.Query():
            return True
        case exp.In():
            return node.args.get("query") is not None
        case exp.Binary():
            return isinstance(node.expression, exp.Any | exp.All)
    return False


def _hex_digits(node: exp.HexString) -> str:
    digits = str(node.this)
    # Some versions of sqlglot keep X'0a' as a number, others as its digits.
    return digits if len(digits) % 2 == 0 else "0" + digits
