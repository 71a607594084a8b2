"""If an operator is always empty, its inputs need not produce rows.

    ∅ ⋈ S = ∅ ⋈ ∅      ∅ − S = ∅ − ∅      S ⋉ ∅ = ∅ ⋉ ∅

A part is always empty if it is below a filter that is FALSE. The other inputs get the same filter,
which `push_filters` moves to their sources. Sources stay, since time begins with the smallest time
of any of them.

Conditions: none. Operators below that can fail still see their rows, since filters do not move past
them.
"""

from __future__ import annotations

from millstream.logical.expressions import TRUE, Literal
from millstream.logical.plan import (
    Aggregate,
    Difference,
    Filter,
    Intersection,
    Join,
    JoinKind,
    Plan,
    Source,
    StrictDifference,
    is_known,
)
from millstream.optimizer.facts.sharing import Consumers, with_inputs
from millstream.optimizer.rewriting import rewritten

_FALSE = Literal(False, TRUE.type)


def spread_emptiness(plan: Plan, consumers: Consumers) -> Plan:
    def change(node: Plan) -> Plan:
        if len(node.inputs) < 2 or not is_empty(node):
            return node
        return with_inputs(
            node,
            *(child if is_empty(child) else Filter(child, _FALSE) for child in node.inputs),
        )

    return rewritten(plan, change)


def is_empty(plan: Plan) -> bool:
    """Whether the plan never has a row."""
    match plan:
        case Source():
            return False
        case Filter(predicate=Literal(value=value)) if value is not True:
            return True
        case Aggregate():
            return bool(plan.keys) and is_empty(plan.input)
        case Join():
            left, right = map(is_empty, plan.inputs)
            match plan.kind:
                case JoinKind.INNER | JoinKind.SEMI:
                    return left or right
                case JoinKind.LEFT | JoinKind.ANTI:
                    return left
                case JoinKind.RIGHT:
                    return right
                case JoinKind.FULL:
                    return left and right
        case Difference() | StrictDifference():
            return is_empty(plan.left)
        case Intersection():
            return any(map(is_empty, plan.inputs))
    return is_known(plan) and all(map(is_empty, plan.inputs))
