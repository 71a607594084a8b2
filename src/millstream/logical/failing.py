"""Which operators can fail on some row.

A row that cannot be evaluated goes to the errors as the operator sees it. So an operator that can
fail reads all columns, and rewrites must not remove rows from its input or add others.
"""

from __future__ import annotations

from millstream.logical import aggregates
from millstream.logical.expression_facts import ExpressionFacts, can_fail
from millstream.logical.expressions import AggregateCall, Expression, operands
from millstream.logical.plan import Plan, is_known, own_expressions


def evaluated(plan: Plan) -> tuple[Expression, ...]:
    """The expressions that the operator evaluates on each row, or on pairs of rows."""
    parts = (
        operands(part) if isinstance(part, AggregateCall) else (part,)
        for part in own_expressions(plan)
    )
    return tuple(each for several in parts for each in several)


def rows_can_fail(plan: Plan) -> bool:
    """Whether some row, or pair of rows, may make the operator fail. An operator outside the
    algebra always may."""
    return not is_known(plan) or any(map(can_fail, evaluated(plan)))


def aggregate_can_fail(call: Expression) -> bool:
    """Whether a row, or the rows of a group together, may make it fail."""
    assert isinstance(call, AggregateCall)
    function = aggregates.lookup(call.function)
    if function is None or any(map(can_fail, operands(call))):
        return True
    return not function.is_total(call.type, map(ExpressionFacts, call.arguments))
