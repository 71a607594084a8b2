"""What is known about an expression before there are rows: constants, ranges, whether it fails.

Facts come from the functions that it calls (`functions.facts`). Nothing is known about a function
without facts, such as a user-defined function.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import pyarrow as pa

from millstream.logical import functions
from millstream.logical.evaluate import evaluator
from millstream.logical.expressions import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    OuterColumn,
    operands,
)
from millstream.logical.functions import EvaluationError, Function, cast_facts
from millstream.logical.functions.facts import NOTHING, FunctionFacts
from millstream.logical.functions.ranges import Range, has_range, range_of_type


class ExpressionFacts:
    """Facts about one expression, each derived on demand."""

    def __init__(self, expression: Expression) -> None:
        self._expression = expression

    @property
    def type(self) -> pa.DataType:
        return self._expression.type

    @cached_property
    def _operands(self) -> tuple[ExpressionFacts, ...]:
        return tuple(map(ExpressionFacts, operands(self._expression)))

    @cached_property
    def _function(self) -> Function | None:
        call = self._expression
        return functions.lookup(call.function) if isinstance(call, Call) else None

    @property
    def _facts(self) -> FunctionFacts:
        return NOTHING if self._function is None else self._function.facts

    @cached_property
    def is_constant(self) -> bool:
        """Whether it is the same for all rows, if it does not fail."""
        match self._expression:
            case Literal():
                return True
            case Cast():
                return self._operands[0].is_constant
            case Call():
                same = self._function is not None and self._function.deterministic
                return same and all(operand.is_constant for operand in self._operands)
        return False

    @cached_property
    def value(self) -> object:
        """The value of a constant expression; `...` for others, or if it fails."""
        if isinstance(self._expression, Literal):
            return self._expression.value
        if not self.is_constant:
            return ...
        try:
            return evaluator(self._simplified(), (), {})(())
        except EvaluationError:
            return ...

    def _simplified(self) -> Expression:
        """The expression with its constant operands replaced by their values, unless they fail."""
        parts = tuple(part._literal() for part in self._operands)
        match self._expression:
            case Cast():
                return replace(self._expression, operand=parts[0])
            case Call():
                return replace(self._expression, arguments=parts)
        return self._expression

    def _literal(self) -> Expression:
        return self._expression if self.value is ... else Literal(self.value, self.type)

    @cached_property
    def range(self) -> Range | None:
        """The range of integer values; rows for which it fails do not count."""
        if not has_range(self.type):
            return None
        if isinstance(self.value, int):
            return Range(self.value, self.value)
        match self._expression:
            case Cast(type=target):
                found = cast_facts.range_of(self._operands[0], target)
            case _:
                found = self._facts.range_of(operand.range for operand in self._operands)
        possible = range_of_type(self.type)
        return found if found is not None and found.within(possible) else possible

    @cached_property
    def can_fail(self) -> bool:
        """Whether some row may make its evaluation fail."""
        match self._expression:
            case Column() | Literal():
                return False
            case Cast(type=target, attempt=attempt):
                total = attempt or cast_facts.is_total(self._operands[0], target)
            case _:
                total = self._facts.is_total(self.type, self._operands)
        if total and not any(operand.can_fail for operand in self._operands):
            return False
        return self.value is ...

    @property
    def tells_equals_apart(self) -> bool:
        """Whether it may differ for values that are equal, such as 0.0 and -0.0."""
        match self._expression:
            case Column() | OuterColumn() | Literal():
                return False
            case Cast(type=target):
                steady = cast_facts.is_steady(self._operands[0].type, target)
            case _:
                has_zeros = any(cast_facts.has_zeros(operand.type) for operand in self._operands)
                steady = self._facts.steady or not has_zeros
        return not steady or any(operand.tells_equals_apart for operand in self._operands)


def can_fail(expression: Expression) -> bool:
    """Whether some row may make its evaluation fail; False only where that is known."""
    return ExpressionFacts(expression).can_fail


def tells_equals_apart(expression: Expression) -> bool:
    """Whether it may differ for values that are equal, such as 0.0 and -0.0."""
    return ExpressionFacts(expression).tells_equals_apart


def constant(expression: Expression) -> object:
    """The value that an expression has for all rows; `...` if there is none, or if it fails."""
    return ExpressionFacts(expression).value
