"""Which operators can fail on some row.

A row that cannot be evaluated goes to the errors as the operator sees it. So an operator that can
fail reads all columns, and nothing may keep rows from it, nor give it others.
"""

from __future__ import annotations

from millstream.logical import aggregates
from millstream.logical.expression_facts import ExpressionFacts, can_fail
from millstream.logical.expressions import AggregateCall, Expression, operands
from millstream.logical.plan import Plan, is_known, own_expressions


def evaluated(plan: Plan) -> tuple[Expression, ...]:
    """What the operator computes of each of its rows, or of pairs of them."""
    parts = (
        operands(part) if isinstance(part, AggregateCall) else (part,)
        for part in own_expressions(plan)
    )
    return tuple(each for several in parts for each in several)


def rows_can_fail(plan: Plan) -> bool:
    """Whether some row, or pair of rows, may make the operator fail. One that does not belong to
    the algebra may do so whatever it computes."""
    return not is_known(plan) or any(map(can_fail, evaluated(plan)))


def aggregate_can_fail(call: Expression) -> bool:
    """Whether the rows of some group may make it fail, or one of them."""
    assert isinstance(call, AggregateCall)
    function = aggregates.lookup(call.function)
    if function is None or any(map(can_fail, operands(call))):
        return True
    return not function.is_total(call.type, map(ExpressionFacts, call.arguments))
