"""From a logical to a physical plan: the operators, their state and the form of their output.

The choice is bottom up: the update pattern of an input determines the state of the operators above
it. Equal parts of a plan become one part with several consumers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from millstream.logical import plan as logical
from millstream.logical.analysis import granule, lives_one_instant
from millstream.logical.expression_facts import can_fail
from millstream.logical.expressions import Column, operands
from millstream.logical.plan import JoinKind, Lifetime, Named, Plan, Schema
from millstream.logical.uniqueness import at_most_one_row
from millstream.model.modes import Emit
from millstream.model.time import INFINITY
from millstream.optimizer.conditions import join_keys
from millstream.optimizer.facts.sharing import Nodes
from millstream.physical.joins.areas.forms import AreaChoice
from millstream.physical.operator import Pattern, PhysicalPlan
from millstream.physical.operators.aggregate import Aggregate, Last
from millstream.physical.operators.changes import Changes
from millstream.physical.operators.count_window import CountWindow
from millstream.physical.operators.deltas import Deltas
from millstream.physical.operators.distinct import Distinct
from millstream.physical.operators.filter import Filter
from millstream.physical.operators.granularity import Granularity
from millstream.physical.operators.join import Join
from millstream.physical.operators.lookup_join import LookupJoin
from millstream.physical.operators.map import Map
from millstream.physical.operators.outer_join import OuterJoin
from millstream.physical.operators.pointwise import Form, Pointwise, PointwiseFunction
from millstream.physical.operators.semi_join import SemiJoin
from millstream.physical.operators.source import Source
from millstream.physical.operators.split import Split
from millstream.physical.operators.threshold_semi_join import compared
from millstream.physical.operators.time_window import TimeWindow
from millstream.physical.operators.top_n import TopN
from millstream.physical.operators.union import Union


class Approach(Enum):
    """The form of elements between operators; the papers compare the last two."""

    HYBRID = "hybrid"  # intervals where ends are known, signed elements where they are not
    INTERVALS = "intervals"  # K's time intervals: an operator waits until the end is known
    SIGNED = "signed"  # N's negative tuples: every end is an element of its own


@dataclass(frozen=True)
class Choices:
    """`disordered` names the streams whose rows arrive out of time order. `areas` overrides the
    sweep areas of joins, which otherwise follow from the patterns (the papers compare nested loops,
    hash tables and calendars of several sizes). `small` names the tables with few rows.
    `coalesced`: DISTINCT emits a row when it becomes valid and retracts it when it expires, instead
    of one piece per equal row."""

    disordered: frozenset[str] = frozenset()
    approach: Approach = Approach.HYBRID
    areas: AreaChoice = field(default_factory=AreaChoice)
    small: frozenset[str] = frozenset()
    coalesced: bool = False


def choose(plan: Plan, emit: Emit = Emit.FINAL, choices: Choices | None = None) -> PhysicalPlan:
    """The plan of a query that emits its answer FINAL, as CHANGES, or as a whole EVERY period; or,
    for internal use, as the ELEMENTS of its last operator."""
    plan = Nodes().plan(plan)
    begins = frozenset(source.stream for source in logical.beginners(plan))
    chosen = _Chooser(choices or Choices(), begins).node(plan)
    if emit == Emit.ELEMENTS:
        return chosen
    if emit == Emit.EVERY:
        return Split(chosen, granule(plan))
    return Changes(chosen) if emit == Emit.CHANGES else settled(chosen, final=True)


def settled(plan: PhysicalPlan, final: bool = False) -> PhysicalPlan:
    """The plan with elements that are never retracted, settled by the operator itself if possible.
    Maps and filters can be above it."""
    if plan.pattern is not Pattern.STRICT:
        return plan
    match plan:
        case Map() | Filter():
            return replace(plan, input=settled(plan.input, final))
        case Aggregate() | CountWindow() | Pointwise() | SemiJoin():
            return replace(plan, form=Form.INTERVALS, final=final)
    return Pointwise((plan,), PointwiseFunction.IDENTITY, plan.schema, Form.INTERVALS, final)


_FUNCTIONS: Mapping[type[Plan], PointwiseFunction] = {
    logical.Difference: PointwiseFunction.DIFFERENCE,
    logical.StrictDifference: PointwiseFunction.STRICT_DIFFERENCE,
    logical.Intersection: PointwiseFunction.INTERSECTION,
    logical.MaxUnion: PointwiseFunction.MAX_UNION,
}


class _Chooser:
    def __init__(self, choices: Choices, begins: frozenset[str]) -> None:
        self._choices = choices
        self._begins = begins  # the streams whose first row may determine when time begins
        self._chosen: dict[int, PhysicalPlan] = {}

    def node(self, plan: Plan) -> PhysicalPlan:
        if id(plan) not in self._chosen:
            self._chosen[id(plan)] = self._formed(plan, self._operator(plan))
        return self._chosen[id(plan)]

    def _formed(self, plan: Plan, chosen: PhysicalPlan) -> PhysicalPlan:
        """The operator's output in the form of the approach."""
        match self._choices.approach:
            case Approach.INTERVALS:
                return settled(chosen)
            case Approach.SIGNED if isinstance(plan, logical.TimeWindow | logical.Source):
                ends = isinstance(plan, logical.TimeWindow) or plan.lifetime is Lifetime.INTERVAL
                if ends and chosen.pattern not in (Pattern.STRICT, Pattern.MONOTONIC):
                    return Pointwise((chosen,), PointwiseFunction.IDENTITY, chosen.schema)
        return chosen

    def _operator(self, plan: Plan) -> PhysicalPlan:
        match plan:
            case logical.Source():
                ordered = plan.lifetime is Lifetime.INSTANT
                ordered = ordered and plan.stream not in self._choices.disordered
                begins, small = (plan.stream in s for s in (self._begins, self._choices.small))
                return Source(
                    plan.stream, plan.schema, ordered, plan.arrival, plan.lifetime, begins, small
                )
            case logical.Filter():
                return Filter(self.node(plan.input), plan.predicate)
            case logical.Map():
                return Map(self.node(plan.input), plan.outputs)
            case logical.Union():
                return Union(self.node(plan.left), self.node(plan.right), plan.schema)
            case logical.SetOperation():
                return self._set_operation(plan)
            case logical.Distinct():
                return self._distinct(plan)
            case logical.Join():
                return self._join(plan)
            case logical.Aggregate():
                return self._aggregate(plan)
            case logical.TopN():
                return TopN(self.node(plan.input), plan.limit, plan.order, plan.keys)
            case logical.TimeWindow():
                return TimeWindow(self._granules(plan), plan.size, plan.slide, plan.granule)
            case logical.CountWindow():
                rows, order = plan.rows, plan.order
                return CountWindow(self._granules(plan), rows, order, (), plan.slide, plan.granule)
            case logical.PartitionedWindow():
                return CountWindow(
                    self._granules(plan),
                    plan.rows,
                    plan.order,
                    plan.keys,
                    plan.slide,
                    plan.granule,
                )
            case logical.Granularity():
                return Granularity(self.node(plan.input), plan.granule)
            case logical.Istream():
                return Deltas(self.node(plan.input))
            case logical.Dstream():
                return Deltas(self.node(plan.input), gone=True)
            case logical.Rstream():
                return self.node(plan.input)
        raise AssertionError(plan)

    def _granules(
        self, plan: logical.TimeWindow | logical.CountWindow | logical.PartitionedWindow
    ) -> PhysicalPlan:
        """The input of a window, each element one granule (K §12.3.2 and §12.3.3)."""
        chosen = self.node(plan.input)
        if plan.granule == 1 and _comes_by_instants(plan.input, chosen):
            return chosen
        return Split(chosen, plan.granule)

    def _set_operation(self, plan: logical.SetOperation) -> PhysicalPlan:
        """EXCEPT and INTERSECT without ALL count a row once, so they need no separate DISTINCT."""
        once = tuple(isinstance(side, logical.Distinct) for side in plan.inputs)
        left, right = (
            self.node(side.input if isinstance(side, logical.Distinct) else side)
            for side in plan.inputs
        )
        return Pointwise((left, right), _FUNCTIONS[type(plan)], plan.schema, once=once)

    def _aggregate(self, plan: logical.Aggregate) -> PhysicalPlan:
        """Aggregates over a count window, or over that of each group, take the arriving rows
        directly: if the rows of the window are only aggregated, they need not be elements. Rows
        that cannot be evaluated still count in the window, so then the window stays."""
        chosen = self.node(plan.input)
        window = _unselected(chosen)
        own = [named.expression for named in plan.aggregates]
        if (
            self._choices.approach is Approach.HYBRID
            and isinstance(window, CountWindow)
            and window.rows < INFINITY
            and window.slide == window.granule == 1
            and {*window.keys} == {key.expression for key in plan.keys}
            and not isinstance(window.input, Split)
            and not any(can_fail(part) for call in own for part in operands(call))
        ):
            last = Last(window.rows, window.order)
            return Aggregate(window.input, plan.keys, plan.aggregates, last=last)
        return Aggregate(chosen, plan.keys, plan.aggregates)

    def _distinct(self, plan: logical.Distinct) -> PhysicalPlan:
        chosen = self.node(plan.input)
        if chosen.pattern is Pattern.STRICT or self._choices.coalesced:
            return Pointwise((chosen,), PointwiseFunction.DISTINCT, plan.schema)
        return Distinct(chosen)

    def _lookup(self, plan: logical.Join) -> PhysicalPlan | None:
        """A join of rows that are valid for one instant with a relation or an input that may be
        retracted, as lookups at that instant. If all ends are elements, so are those of the
        result."""
        if plan.kind in (JoinKind.RIGHT, JoinKind.FULL):
            return None
        left, right = self.node(plan.left), self.node(plan.right)
        signed = self._choices.approach is Approach.SIGNED
        changing = right.pattern is Pattern.STRICT and not signed
        changing = changing or _is_relation(plan.right)
        if not changing or not _comes_by_instants(plan.left, left):
            return None
        keys, condition = join_keys(plan)
        return LookupJoin(left, right, plan.schema, keys, condition, plan.kind)

    def _join(self, plan: logical.Join) -> PhysicalPlan:
        for turned in filter(None, (plan, _turned(plan))):
            lookup = self._lookup(turned)
            if lookup is not None:
                return lookup if turned is plan else Map(lookup, _columns(plan.schema))
        left, right = self.node(plan.left), self.node(plan.right)
        keys, condition = join_keys(plan)
        match plan.kind:
            case JoinKind.INNER:
                areas = self._choices.areas
                return Join(left, right, keys, condition, (areas, areas))
            case JoinKind.SEMI | JoinKind.ANTI:
                anti = plan.kind is JoinKind.ANTI
                threshold = not keys and _is_threshold(plan)
                return SemiJoin(left, right, keys, condition, anti, threshold=threshold)
        outer = (
            plan.kind in (JoinKind.LEFT, JoinKind.FULL),
            plan.kind
            in (
                JoinKind.RIGHT,
                JoinKind.FULL,
            ),
        )
        return OuterJoin(left, right, outer, plan.schema, keys, condition)


def _is_threshold(plan: logical.Join) -> bool:
    """Whether the condition compares rows of the left with the only row of the right."""
    parts = compared(plan.condition, plan.left.schema, plan.right.schema)
    if parts is None or any(can_fail(part) for part in (parts[0], parts[2])):
        return False
    return at_most_one_row(plan.right)


def _turned(plan: logical.Join) -> logical.Join | None:
    """The join with its inputs swapped, if there is such a join."""
    kind = {JoinKind.INNER: JoinKind.INNER, JoinKind.RIGHT: JoinKind.LEFT}.get(plan.kind)
    return None if kind is None else logical.Join(plan.right, plan.left, kind, plan.condition)


def _columns(schema: Schema) -> tuple[Named, ...]:
    return tuple(Named(field.column, field.name, field.qualifier) for field in schema)


def _is_relation(plan: Plan) -> bool:
    """Whether it reads only tables."""
    return all(node.relation for node in plan.walk() if isinstance(node, logical.Source))


def _comes_by_instants(plan: Plan, chosen: PhysicalPlan) -> bool:
    """Whether each row is one element per instant of its validity. In settled output adjacent
    instants are one element, and RSTREAM is just its input. ISTREAM and DSTREAM are always per
    instant."""
    settled = any(getattr(node, "form", None) is Form.INTERVALS for node in _told(chosen))
    whole = any(isinstance(node, logical.Rstream) for node in plan.walk())
    if settled or whole or chosen.pattern is Pattern.STRICT:
        return False
    return lives_one_instant(plan)


def _unselected(plan: PhysicalPlan) -> PhysicalPlan:
    """The plan without maps at its top that only drop columns."""
    while isinstance(plan, Map) and all(
        output.field.key == _key(output) for output in plan.outputs
    ):
        plan = plan.input
    return plan


def _key(output: Named) -> tuple[str, str] | None:
    return output.expression.key if isinstance(output.expression, Column) else None


def _told(plan: PhysicalPlan) -> Iterator[PhysicalPlan]:
    """The operators, down to ISTREAM and DSTREAM."""
    yield plan
    for child in plan.inputs if not isinstance(plan, Deltas) else ():
        yield from _told(child)
