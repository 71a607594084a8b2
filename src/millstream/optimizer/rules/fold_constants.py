"""Constant expressions are evaluated when planning.

    f(1, 2) = its value        f(NULL, x) = NULL for strict f
    TRUE AND p = p             FALSE AND p = FALSE        (and so for OR)

Conditions: an expression that fails on constants stays, to fail on rows. In AND and OR, which are
evaluated from left to right, an operand that can fail is dropped only if it would not be evaluated;
an operand of a strict function that can fail is never dropped.
"""

from __future__ import annotations

from collections.abc import Iterator

from millstream.logical import functions
from millstream.logical.evaluate import is_deterministic
from millstream.logical.expression_facts import can_fail, constant
from millstream.logical.expressions import Call, Cast, Expression, Literal, operands, rewrite
from millstream.logical.plan import Plan, expressions, map_expressions
from millstream.model.masking import Secret
from millstream.optimizer.facts.sharing import Consumers
from millstream.optimizer.rewriting import rewritten


def fold_constants(plan: Plan, consumers: Consumers) -> Plan:
    return rewritten(plan, _with_values)


def _with_values(node: Plan) -> Plan:
    """Expressions that are not deterministic stay the same."""
    own = expressions(node)
    if not any(isinstance(part, Literal) for part in own) or not all(map(is_deterministic, own)):
        return node
    return map_expressions(node, _folded)


def folded(expression: Expression) -> Expression:
    return rewrite(expression, _folded)


def _folded(part: Expression) -> Expression:
    match part:
        case Call(function="and" | "or"):
            return _decided(part, decisive=part.function == "or")
        case Call():
            function = functions.lookup(part.function)
            if function is None or not function.deterministic:
                return part
            if function.strict and _is_null_for_sure(part):
                return Literal(None, part.type)
            return _value(part)
        case Cast():
            return _value(part)
    return part


def _value(part: Call | Cast) -> Expression:
    if not all(isinstance(operand, Literal) for operand in operands(part)):
        return part
    if any(isinstance(o, Literal) and isinstance(o.value, Secret) for o in operands(part)):
        return part  # a value computed from a secret would be shown
    value = constant(part)
    return part if value is ... else Literal(value, part.type)


def _is_null_for_sure(part: Call) -> bool:
    nothing = any(isinstance(a, Literal) and a.value is None for a in part.arguments)
    return nothing and not any(map(can_fail, part.arguments))


def _decided(part: Call, decisive: bool) -> Expression:
    """Fold AND, which FALSE decides, or OR, which TRUE decides."""
    kept: list[Expression] = []
    arguments = list(_flat(part, part.function))
    for argument in arguments:
        if isinstance(argument, Literal) and argument.value is decisive:
            if not any(map(can_fail, kept)):
                return argument
            kept.append(argument)
            break
        if not isinstance(argument, Literal) or argument.value is None:
            kept.append(argument)
    if len(kept) == len(arguments):
        return part
    if not kept:
        return Literal(not decisive, part.type)
    return kept[0] if len(kept) == 1 else Call(part.function, tuple(kept), part.type)


def _flat(part: Expression, function: str) -> Iterator[Expression]:
    """The operands of nested ANDs, or of nested ORs."""
    if isinstance(part, Call) and part.function == function:
        for argument in part.arguments:
            yield from _flat(argument, function)
    else:
        yield part
