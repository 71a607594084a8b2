"""The meaning of every plan, instant by instant.

`snapshot(plan, t)` is the multiset of rows that are valid at t. One function here defines each
operator, as short as the paper's formula: S(t) is the snapshot of the input at t, n the
multiplicity of a row e in it. Formula numbers are those of the thesis (K). A comment "ours" marks a
deviation; `docs/semantics.md` gives the reasons.

Time has a beginning, which K calls 0: the smallest start accepted from any stream of the plan, or
from any table if there are only tables. Windows reach back to it, and a query's answer begins
there. Windows over ISTREAM or DSTREAM of a table reach back to its first change.

The code is slow and obviously correct: nothing is incremental. Engines are tested against it.
"""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any

from millstream.logical.aggregates import lookup as aggregate_function
from millstream.logical.evaluate import (
    Evaluator,
    UserAggregate,
    UserFunction,
    evaluator,
    is_deterministic,
)
from millstream.logical.expressions import TRUE, AggregateCall, Expression, conjuncts
from millstream.logical.functions import EvaluationError, Signature
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
    Map,
    MaxUnion,
    PartitionedWindow,
    Plan,
    Rstream,
    Schema,
    Source,
    StrictDifference,
    TimeWindow,
    TopN,
    Union,
    beginners,
    is_unbounded,
)
from millstream.model.elements import Element, Row, Snapshot, elements_of, row_key, shown
from millstream.model.errors import QueryError
from millstream.model.time import ALWAYS, INFINITY
from millstream.model.values import order_key


class Reference:
    """Evaluates plans over finite inputs: the elements of every stream, in the stream's order."""

    def __init__(
        self,
        plan: Plan,
        inputs: Mapping[str, Sequence[Element]],
        functions: Mapping[str, UserFunction] | None = None,
        aggregates: Mapping[str, UserAggregate] | None = None,
        draws: dict[tuple[int, Row], object] | None = None,
    ) -> None:
        self.plan = plan
        self.inputs = inputs
        self.functions = functions or {}
        self.aggregates = aggregates or {}
        # The values of functions that are not deterministic, by expression and row: each is
        # computed once.
        self.draws = draws if draws is not None else {}
        self.errors: dict[tuple[Row, str], None] = {}  # rows that could not be evaluated
        starts = [e.start for node in beginners(plan) for e in inputs[node.stream]]
        self.beginning = min((start for start in starts if start > ALWAYS), default=INFINITY)
        self._snapshots: dict[tuple[int, int], Snapshot] = {}
        self._changes: dict[int, list[int]] = {}
        self._evaluators: dict[tuple[int, int], Evaluator] = {}

    # --- the answer ------------------------------------------------------------------------------

    def answer(self, instant: int) -> Snapshot:
        """The answer of the query at an instant; it begins with its first input."""
        if instant < self.beginning:
            return Counter()
        try:  # what holds there has held since the last change
            changes = self.changes(self.plan)
            instant = max((c for c in changes if c <= instant), default=instant)
        except QueryError:
            pass  # it never stops changing
        bag = self.snapshot(self.plan, max(instant, self.beginning))
        return Counter({shown(row): n for row, n in bag.items()})

    def result(self) -> list[Element]:
        """The whole answer in normal form."""
        if self.beginning == INFINITY:
            return []
        instants = {self.beginning, *self.changes(self.plan)}
        return elements_of({t: self.answer(t) for t in instants if t >= self.beginning})

    # --- the meaning of a plan -------------------------------------------------------------------

    def snapshot(self, plan: Plan, t: int) -> Snapshot:
        key = id(plan), t
        if key not in self._snapshots:
            self._snapshots[key] = self._definition(plan, t)
        return self._snapshots[key]

    def _definition(self, plan: Plan, t: int) -> Snapshot:
        match plan:
            case Source():
                return self._source(plan, t)
            case Filter():
                return self._filter(plan, t)
            case Map():
                return self._map(plan, t)
            case Union():  # 8.3: n₁ + n₂
                return self._pointwise(plan, t, operator.add)
            case Difference():  # 8.6: n₁ - n₂ where that is positive
                return self._pointwise(plan, t, lambda n1, n2: max(n1 - n2, 0))
            case Intersection():  # 8.12: S₁ - (S₁ - S₂)
                return self._pointwise(plan, t, min)
            case MaxUnion():  # 8.13
                return self._pointwise(plan, t, max)
            case StrictDifference():  # 8.14: S₁ without the rows that S₂ has
                return self._pointwise(plan, t, lambda n1, n2: 0 if n2 else n1)
            case Distinct():  # 8.5: every row once
                return Counter(dict.fromkeys(self.snapshot(plan.input, t), 1))
            case Join():
                return self._join(plan, t)
            case Aggregate():
                return self._aggregate(plan, t)
            case TopN():
                return self._top(plan, t)
            case TimeWindow():
                return self._time_window(plan, t)
            case CountWindow():
                return self._count_window(plan, t)
            case PartitionedWindow():
                return self._partitioned_window(plan, t)
            case Granularity():  # algorithm 24: between instants of the grid, the last one holds
                return self.snapshot(plan.input, t // plan.granule * plan.granule)
            case Istream():  # ours, as CQL: S(t) - S(t-1)
                return self.snapshot(plan.input, t) - self.snapshot(plan.input, t - 1)
            case Dstream():  # ours, as CQL: S(t-1) - S(t)
                return self.snapshot(plan.input, t - 1) - self.snapshot(plan.input, t)
            case Rstream():  # the input itself; only its elements are cut at the granules
                return self.snapshot(plan.input, t)
        raise AssertionError(plan)

    # --- standard operators (K §8.1) -------------------------------------------------------------

    def _source(self, plan: Source, t: int) -> Snapshot:
        """6.2: the rows whose interval contains t. A row deleted from a table has the arrival
        number of the row that was inserted."""
        bag: Snapshot = Counter()
        for position, element in enumerate(self.inputs[plan.stream]):
            if element.start <= t < element.end:
                number = position if element.number is None else element.number
                row = (*element.row, number) if plan.arrival else element.row
                bag[row] += element.weight
        return Counter({row: n for row, n in bag.items() if n})

    def _filter(self, plan: Filter, t: int) -> Snapshot:
        """8.1: { (e, n) ∈ S(t) | p(e) }"""
        holds = self._compiled(plan.predicate, plan.input.schema)
        rows = self.snapshot(plan.input, t).items()
        return Counter({e: n for e, n in rows if self._value(holds, e) is True})

    def _map(self, plan: Map, t: int) -> Snapshot:
        """8.2: (f(e), n), equal images added up."""
        outputs = [self._compiled(output.expression, plan.input.schema) for output in plan.outputs]
        bag: Snapshot = Counter()
        for e, n in self.snapshot(plan.input, t).items():
            image = self._row(outputs, e)
            if image is not None:
                bag[image] += n
        return bag

    def _pointwise(self, plan: Plan, t: int, combine: Callable[[int, int], int]) -> Snapshot:
        left, right = (self.snapshot(side, t) for side in plan.inputs)
        return +Counter({e: combine(left[e], right[e]) for e in {*left, *right}})

    def _join(self, plan: Join, t: int) -> Snapshot:
        """8.4 and 8.10: (e₁∘e₂, n₁·n₂) of the pairs that satisfy θ. Outer joins pad rows without a
        partner. The semi-join keeps a row once, however many partners it has (ours, as SQL); the
        anti-join (8.16) keeps the rest."""
        left, right = self.snapshot(plan.left, t), self.snapshot(plan.right, t)
        pairs: list[tuple[Row, Row]] = []
        failed: list[tuple[Row, Row]] = []
        for e1 in left:
            for e2 in right:
                matches = self._matches(plan, e1, e2)
                if matches is not False:
                    (failed if matches is None else pairs).append((e1, e2))
        if plan.kind is JoinKind.SEMI:
            partnered = {e1 for e1, _ in pairs}
            return Counter({e: n for e, n in left.items() if e in partnered})
        # A row has no partner if all its pairs were evaluated and none matched.
        alone_left = left.keys() - {e1 for e1, _ in pairs + failed}
        alone_right = right.keys() - {e2 for _, e2 in pairs + failed}
        if plan.kind is JoinKind.ANTI:
            return Counter({e: left[e] for e in alone_left})
        bag: Snapshot = Counter()
        for e1, e2 in pairs:
            bag[e1 + e2] += left[e1] * right[e2]
        if plan.kind in (JoinKind.LEFT, JoinKind.FULL):
            nothing: Row = (None,) * len(plan.right.schema)
            bag.update({e + nothing: left[e] for e in alone_left})
        if plan.kind in (JoinKind.RIGHT, JoinKind.FULL):
            nothing = (None,) * len(plan.left.schema)
            bag.update({nothing + e: right[e] for e in alone_right})
        return bag

    def _matches(self, plan: Join, e1: Row, e2: Row) -> bool | None:
        """Whether a pair satisfies the condition, evaluated from left to right up to the first part
        that is not true; None if evaluation fails."""
        for part in conjuncts(plan.condition):
            value = self._row([self._compiled(part, plan.pairs)], e1 + e2)
            if value is None or value[0] is not True:
                return None if value is None else False
        return True

    def _aggregate(self, plan: Aggregate, t: int) -> Snapshot:
        """8.15: the aggregates of every group; 8.9 without keys, with a row even over no rows
        (ours, as SQL)."""
        schema = plan.input.schema
        keys = [self._compiled(key.expression, schema) for key in plan.keys]
        calls = [self._compiled_aggregate(named.expression, schema) for named in plan.aggregates]
        groups: dict[Row, list[Row]] = {} if plan.keys else {(): []}
        for e, n in self.snapshot(plan.input, t).items():
            key, arguments = self._row(keys, e), self._row(calls, e)
            if key is not None and arguments is not None:
                groups.setdefault(shown(key), []).extend([arguments] * n)
        bag: Snapshot = Counter()
        for key, rows in groups.items():
            columns = zip(*rows, strict=True) if rows else [()] * len(calls)
            try:
                pairs = zip(plan.aggregates, columns, strict=True)
                values = tuple(self._aggregated(a.expression, list(column)) for a, column in pairs)
            except EvaluationError as error:
                self.errors[key, str(error)] = None
            else:
                bag[key + values] += 1
        return bag

    def _compiled_aggregate(self, call: Expression, schema: Schema) -> Evaluator:
        """The input of an aggregate from a row: (order, arguments), or NULL if its filter drops
        the row."""
        assert isinstance(call, AggregateCall)
        wanted = self._compiled(call.filter or TRUE, schema)
        order = [self._compiled(expression, schema) for expression in call.order]
        arguments = [self._compiled(argument, schema) for argument in call.arguments]

        def taken(row: Row) -> object:
            if wanted(row) is not True:
                return None
            place = [order_key(column(row)) for column in order]
            return place, tuple(argument(row) for argument in arguments)

        return taken

    def _aggregated(self, call: Expression, taken: list[Any]) -> object:
        """The value of an aggregate over its inputs from the rows of a group."""
        assert isinstance(call, AggregateCall)
        kept = sorted((item for item in taken if item is not None), key=lambda item: item[0])
        values: list[Row] = [arguments for _, arguments in kept]
        if call.distinct:
            values = list(dict.fromkeys(values))
        if call.function in self.aggregates:
            return self.aggregates[call.function].evaluate(sorted(values, key=row_key))
        function = aggregate_function(call.function)
        assert function is not None, f"the binder knows {call.function}"
        signature = Signature(tuple(a.type for a in call.arguments), call.type)
        return function.evaluate(signature, values)

    def _top(self, plan: TopN, t: int) -> Snapshot:
        """The first rows of each group in the given order, duplicates counted."""
        keys = [self._compiled(key, plan.input.schema) for key in plan.keys]
        rows = list(self.snapshot(plan.input, t).elements())
        for sort in reversed(plan.order):  # stable, so the first key is sorted by last
            value = self._compiled(sort.expression, plan.input.schema)
            ranked = {row: self._value(value, row) for row in rows}
            nulls = [row for row in rows if ranked[row] is None]
            rows = sorted(
                (row for row in rows if ranked[row] is not None),
                key=lambda row: order_key(ranked[row]),
                reverse=sort.descending,
            )
            rows = nulls + rows if sort.nulls_first else rows + nulls
        groups: dict[Row | None, list[Row]] = defaultdict(list)
        for row in rows:
            groups[self._row(keys, row)].append(row)
        return Counter(row for group in groups.values() for row in group[: plan.limit])

    # --- window operators (K §8.2 and §17.1) -----------------------------------------------------
    #
    # A window is over the granules of its input; a stream without a granularity has granules of
    # one chronon. Instants and sizes are counted in granules, so that each formula is K's.

    def _time_window(self, plan: TimeWindow, t: int) -> Snapshot:
        """17.1: everything in the `size` granules that end with the last one, before or at t, at
        which the window slides; 8.17 with a slide of one."""
        g, a = plan.granule, plan.slide // plan.granule
        end = (t // g + 1) // a * a  # exclusive
        first = _up(self._reach(plan.input), g) // g
        if not is_unbounded(plan):
            first = max(first, end - plan.size // g)
        return self._sum(plan.input, first * g, end * g - 1, g)

    def _count_window(self, plan: CountWindow, t: int) -> Snapshot:
        """17.2: the last `rows` of the first ⌊n(t) / slide⌋ · slide arrivals; 8.18 with a slide of
        one."""
        return Counter(_last(self._arrivals(plan, t), plan.rows, plan.slide))

    def _partitioned_window(self, plan: PartitionedWindow, t: int) -> Snapshot:
        """8.19: the union of the count windows over every partition."""
        keys = [self._compiled(key, plan.input.schema) for key in plan.keys]
        partitions: dict[Row | None, list[Row]] = defaultdict(list)
        for row in self._arrivals(plan, t):
            partitions[self._row(keys, row)].append(row)
        windows = (Counter(_last(p, plan.rows, plan.slide)) for p in partitions.values())
        return reduce(operator.add, windows, Counter())

    def _arrivals(self, plan: CountWindow | PartitionedWindow, t: int) -> list[Row]:
        """The rows of every granule up to t, one after the other; ties by the window's order."""
        order = [self._compiled(expression, plan.input.schema) for expression in plan.order]
        arrivals: list[Row] = []
        for start, stop in self._pieces(plan.input, self._reach(plan.input), t):
            rows = sorted(
                self.snapshot(plan.input, start).elements(),
                key=lambda row: [order_key(column(row)) for column in order],
            )
            if rows:
                arrivals += rows * len(range(_up(start, plan.granule), stop, plan.granule))
        return arrivals

    def _sum(self, plan: Plan, first: int, last: int, granule: int) -> Snapshot:
        """Σ S(u) over the instants u of the grid in [first, last]."""
        bag: Snapshot = Counter()
        for start, stop in self._pieces(plan, first, last):
            times = max(0, -((_up(start, granule) - stop) // granule))
            for e, n in self.snapshot(plan, start).items() if times else ():
                bag[e] += n * times
        return bag

    def _reach(self, plan: Plan) -> int:
        """How far a window over the plan looks back: initial rows of a table were not inserted."""
        table = _table_changing(plan)
        if table is None:
            return self.beginning
        starts = (element.start for element in self.inputs[table.stream])
        return min([self.beginning, *(start for start in starts if start > ALWAYS)])

    def _pieces(self, plan: Plan, first: int, last: int) -> Iterator[tuple[int, int]]:
        """The pieces [start, stop) of [first, last] in which the snapshot does not change."""
        if first <= last:
            inner = (c for c in self.changes(plan) if first < c <= last)
            yield from pairwise([first, *inner, last + 1])

    # --- where snapshots can change --------------------------------------------------------------

    def changes(self, plan: Plan) -> list[int]:
        """Instants in ascending order that include all at which the snapshot changes."""
        if id(plan) not in self._changes:
            candidates = set(self._change_candidates(plan))
            self._changes[id(plan)] = sorted(c for c in candidates if c < INFINITY)
        return self._changes[id(plan)]

    def _change_candidates(self, plan: Plan) -> Iterator[int]:
        match plan:
            case Source():
                for element in self.inputs[plan.stream]:
                    yield from (element.start, element.end)
            case Istream() | Dstream():
                for c in self.changes(plan.input):
                    yield from (c, c + 1)
            case Granularity():
                for c in self.changes(plan.input):
                    yield _up(c, plan.granule)
            case TimeWindow():
                yield from self._time_window_changes(plan)
            case CountWindow() | PartitionedWindow():
                yield from self._count_window_changes(plan)
            case _:
                for child in plan.inputs:
                    yield from self.changes(child)

    def _time_window_changes(self, plan: TimeWindow) -> Iterator[int]:
        """Algorithm 18: when the row of an instant enters the window and when it leaves."""
        g, a = plan.granule, plan.slide // plan.granule
        w = INFINITY if is_unbounded(plan) else plan.size // g
        for instant in self._occupied(plan, w + 2 * a):
            k = instant // g
            yield ((k + a) // a * a - 1) * g
            if not is_unbounded(plan):
                yield min(((k + w + a) // a * a - 1) * g, INFINITY)

    def _count_window_changes(self, plan: CountWindow | PartitionedWindow) -> Iterator[int]:
        """The window moves with arrivals only."""
        instants = list(self._occupied(plan, plan.rows + 2 * plan.slide))
        yield from instants
        settled = max([self.beginning, *self.changes(plan.input)])
        if instants and self.snapshot(plan.input, settled):
            last = instants[-1]
            after = [self._definition(plan, last + i * plan.granule) for i in range(plan.slide + 1)]
            if any(window != after[0] for window in after):
                raise _unsettled()

    def _occupied(
        self, plan: TimeWindow | CountWindow | PartitionedWindow, memory: int
    ) -> Iterator[int]:
        """The instants of the grid at which the window's input has rows. If it always has rows,
        the number of granules that the window holds is enough: then the answer has settled."""
        g = plan.granule
        for start, stop in self._pieces(plan.input, self._reach(plan.input), INFINITY - 1):
            if self.snapshot(plan.input, start):
                if stop == INFINITY:
                    if memory >= INFINITY:
                        raise _unsettled()
                    stop = start + (memory + 1) * g
                yield from range(_up(start, g), stop, g)

    # --- expressions -----------------------------------------------------------------------------

    def _compiled(self, expression: Expression, schema: Schema) -> Evaluator:
        key = id(expression), id(schema)
        if key not in self._evaluators:
            evaluate = evaluator(expression, schema, self.functions)
            draws = not is_deterministic(expression)
            self._evaluators[key] = self._drawn(expression, evaluate) if draws else evaluate
        return self._evaluators[key]

    def _drawn(self, expression: Expression, evaluate: Evaluator) -> Evaluator:
        def once(row: Row) -> object:
            key = id(expression), row
            if key not in self.draws:
                self.draws[key] = evaluate(row)
            return self.draws[key]

        return once

    def _value(self, column: Evaluator, row: Row) -> object:
        """The value, or NULL and an entry in `errors` if evaluation fails."""
        try:
            return column(row)
        except EvaluationError as error:
            self.errors[row, str(error)] = None
            return None

    def _row(self, columns: Sequence[Evaluator], row: Row) -> Row | None:
        """The values of several expressions; None where one of them fails."""
        try:
            return tuple(column(row) for column in columns)
        except EvaluationError as error:
            self.errors[row, str(error)] = None
            return None


def _last(rows: list[Row], count: int, slide: int) -> list[Row]:
    end = len(rows) // slide * slide
    return rows[max(end - count, 0) : end]


def _up(instant: int, granule: int) -> int:
    """The first instant of the grid at or after this one."""
    return instant if instant == INFINITY else -(-instant // granule) * granule


def _unsettled() -> QueryError:
    return QueryError(
        "the answer never settles: a window keeps moving over rows that are valid forever",
        help="ask for a snapshot at an instant, or bound the window below",
    )


def _table_changing(plan: Plan) -> Source | None:
    """The table whose inserted or deleted rows are those of the plan."""
    is_stream = False
    while isinstance(plan, Map | Filter | Istream | Dstream):
        is_stream = is_stream or isinstance(plan, Istream | Dstream)
        plan = plan.input
    return plan if is_stream and isinstance(plan, Source) and plan.relation else None
