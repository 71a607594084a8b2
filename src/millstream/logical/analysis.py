"""Facts about plans, each one function of the plan (K §12.3).

`lives_one_instant`: every row is valid for one chronon (K table 12.1, right column).
`granule`: snapshots change only at multiples of it.
`exactly_one_row`: of every snapshot.
`only_now`: no window but NOW anywhere below.
`growing`: the operators whose state grows without bound, and why.

For an operator that a fact does not know, the answer is the most conservative one.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from millstream.logical import aggregates
from millstream.logical.expressions import AggregateCall
from millstream.logical.plan import (
    Aggregate,
    CountWindow,
    Difference,
    Distinct,
    Dstream,
    Filter,
    Granularity,
    Intersection,
    Istream,
    Join,
    JoinKind,
    Lifetime,
    Map,
    MaxUnion,
    PartitionedWindow,
    Plan,
    Rstream,
    SetOperation,
    Source,
    StrictDifference,
    TimeWindow,
    TopN,
    Union,
    is_known,
    is_unbounded,
)


def lives_one_instant(plan: Plan) -> bool:
    """Whether every row of every snapshot is provably valid for one chronon only."""
    match plan:
        case Source():
            return plan.lifetime is Lifetime.INSTANT
        case Filter() | Map() | Distinct() | TopN():
            return lives_one_instant(plan.input)
        case Union() | MaxUnion():
            return all(map(lives_one_instant, plan.inputs))
        case Difference() | StrictDifference():
            return lives_one_instant(plan.left)
        case Intersection():
            return any(map(lives_one_instant, plan.inputs))
        case Join():
            return _join_lives_one_instant(plan)
        case Aggregate():
            # Without keys there is a row at every instant.
            return bool(plan.keys) and lives_one_instant(plan.input)
        case TimeWindow():
            return plan.size == 1 and plan.slide == 1 and lives_one_instant(plan.input)
        case Istream() | Dstream():
            return True
        case Rstream():
            return plan.granule == 1 or lives_one_instant(plan.input)
    return False


def _join_lives_one_instant(plan: Join) -> bool:
    left, right = map(lives_one_instant, plan.inputs)
    match plan.kind:
        case JoinKind.INNER:
            return left or right
        case JoinKind.LEFT | JoinKind.SEMI | JoinKind.ANTI:
            return left
        case JoinKind.RIGHT:
            return right
        case JoinKind.FULL:
            return left and right


def granule(plan: Plan) -> int:
    """The granule of a plan: 1 where nothing is known."""
    match plan:
        case Granularity() | Rstream():
            return plan.granule
        case Source() | Istream() | Dstream():
            return 1
        case TimeWindow():
            return plan.granule
        case Filter() | Map() | Join() | SetOperation() | Distinct() | Aggregate() | TopN():
            return gcd(*map(granule, plan.inputs))
        case CountWindow() | PartitionedWindow():
            return granule(plan.input)
    return 1


def given_anew(plan: Plan) -> int | None:
    """The granule in which RSTREAM repeats rows; filters and maps over it keep it."""
    match plan:
        case Rstream():
            return plan.granule
        case Filter() | Map():
            return given_anew(plan.input)
    return None


def exactly_one_row(plan: Plan) -> bool:
    match plan:
        case Aggregate():
            return not plan.keys
        case Map() | Distinct():
            return exactly_one_row(plan.input)
        case Join(kind=JoinKind.INNER, condition=None):
            return all(map(exactly_one_row, plan.inputs))
    return False


def only_now(plan: Plan) -> bool:
    """Whether the plan sees only the current instant of its sources."""
    match plan:
        case Source():
            return plan.lifetime is Lifetime.INSTANT
        case Filter() | Map() | Join() | SetOperation() | Distinct() | Aggregate() | TopN():
            return all(map(only_now, plan.inputs))
        case Istream() | Dstream():
            return only_now(plan.input)
    return False


def seeing_only_now(plan: Plan) -> Iterator[Join | Distinct | Aggregate]:
    """The joins, DISTINCTs and aggregates that see only NOW windows; not the DISTINCTs of EXCEPT,
    which compares the current instant with another window."""
    compared = {
        id(child)
        for node in plan.walk()
        if isinstance(node, Difference) and not only_now(node)
        for child in node.inputs
    }
    for node in plan.walk():
        if id(node) in compared:
            continue
        if isinstance(node, Join | Distinct | Aggregate) and only_now(node):
            yield node


def growing(plan: Plan) -> Iterator[tuple[Plan, str, Source]]:
    """(operator, its name in messages, the live stream that feeds it) for state that grows with an
    UNBOUNDED window. Stateless operators and aggregates of constant size do not grow."""
    for node in plan.walk():
        for child in node.inputs:
            source = _held_for_ever(child)
            if source is not None and (what := _keeps(node)) is not None:
                yield node, what, source


def _keeps(node: Plan) -> str | None:
    """The name of a node that keeps every row without an end; None if it keeps none."""
    match node:
        case Join():
            return f"the {node.kind.value} join"
        case Distinct():
            return "DISTINCT"
        case Difference() | StrictDifference():
            return "EXCEPT"
        case Intersection():
            return "INTERSECT"
        case MaxUnion():
            return "the max-union"
        case TopN():
            return None  # rows that can never reach the top again are dropped
        case Aggregate():
            for named in node.aggregates:
                call = named.expression
                assert isinstance(call, AggregateCall)
                function = aggregates.lookup(call.function)
                if call.distinct and not (function and function.ignores_duplicates):
                    return f"{call.function.upper()}(DISTINCT …)"
                if function is None or not function.constant_state:
                    return call.function.upper()
    return None if is_known(node) else f"the operator {type(node).__name__}"


def _held_for_ever(plan: Plan) -> Source | None:
    """The live source whose rows never expire in `plan`."""
    match plan:
        case TimeWindow() | CountWindow() | PartitionedWindow() if is_unbounded(plan):
            for node in plan.walk():
                if isinstance(node, Source) and not node.bounded:
                    return node
            return None
        case Filter() | Map() | Granularity() | Distinct() | Rstream():
            return _held_for_ever(plan.input)
        case Aggregate() if plan.keys:  # the row of a group never expires
            return _held_for_ever(plan.input)
        case Difference() | StrictDifference():
            return _held_for_ever(plan.left)
        case Intersection():
            return _held_for_ever(plan.left) and _held_for_ever(plan.right)
        case Union() | MaxUnion():
            return _held_for_ever(plan.left) or _held_for_ever(plan.right)
        case Join():
            left, right = (_held_for_ever(side) for side in plan.inputs)
            match plan.kind:
                case JoinKind.INNER | JoinKind.SEMI:
                    return left if right else None
                case JoinKind.LEFT | JoinKind.ANTI:
                    return left
                case JoinKind.RIGHT:
                    return right
                case JoinKind.FULL:
                    return left or right
    if is_known(plan):
        return None
    return next(filter(None, map(_held_for_ever, plan.inputs)), None)
