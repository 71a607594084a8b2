"""Windows, granularities and stream functions over a bound reference (K §9.1, §20.5, §17.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from millstream.logical.analysis import granule, lives_one_instant
from millstream.logical.expressions import Expression
from millstream.logical.plan import (
    ARRIVAL,
    CountWindow,
    Dstream,
    Field,
    Filter,
    Granularity,
    Istream,
    Join,
    JoinKind,
    Map,
    Named,
    PartitionedWindow,
    Plan,
    Rstream,
    Source,
    TimeWindow,
)
from millstream.logical.uniqueness import at_most_one_row
from millstream.model.durations import Duration, chronons
from millstream.model.errors import BindError, Diagnostic, Span
from millstream.model.names import Name, QualifiedName
from millstream.model.time import INFINITY
from millstream.sql import clauses as syntax
from millstream.sql.scope import Relation, Scope, visible


def apply_clauses(
    plan: Plan, clauses: syntax.Clauses, described: str, names: tuple[str, ...] = ()
) -> Plan:
    """`plan` under its window and granularity in FROM; `names` are its names."""
    if clauses.as_of is not None:
        raise BindError(f"AS OF reads a view, not {described}", clauses.as_of.span)
    if clauses.window is not None:
        for column in clauses.window.partition:
            table = column.table if isinstance(column, QualifiedName) else None
            if table is not None and not any(table.matches(name) for name in names if name):
                raise BindError(
                    f'"{table.text}" is not the name of {described}',
                    table.span,
                    "a window can only be partitioned by columns of its own stream",
                )
    coarser = clauses.granularity
    if clauses.window is not None and not _is_now(clauses.window):
        base = _granules_for(plan, clauses, described)
        plan = _apply_window(base, clauses.window)
    if coarser is not None:
        plan = _apply_granularity(plan, coarser)
    return plan


def ignored_bounds(clauses: syntax.Clauses) -> Iterator[Diagnostic]:
    """A warning for each bound for K's resource manager, which adapts sizes (K §21.2). Sizes are
    not adapted yet: the largest window and the finest granularity always apply."""
    window, granularity = clauses.window, clauses.granularity
    if window is not None and window.minimum is not None:
        yield Diagnostic(
            "MIN is ignored: windows are not adapted to the load yet",
            window.minimum.span,
            "the window always has its MAX size; write that size alone",
            severity="warning",
        )
    if granularity is not None and granularity.coarsest is not None:
        yield Diagnostic(
            "COARSEST is ignored: granularities are not adapted to the load yet",
            granularity.coarsest.span,
            "the granularity is always FINEST; write that duration alone",
            severity="warning",
        )


def _is_now(window: syntax.Window) -> bool:
    """A NOW window is the identity (10.7), so plans omit it."""
    return isinstance(window.size, syntax.Now) and window.slide is None


def _granules_for(plan: Plan, clauses: syntax.Clauses, described: str) -> Plan:
    """The input of a window: rows that are valid for one instant, or that are cut into granules."""
    assert clauses.window is not None
    if lives_one_instant(plan) or granule(plan) > 1:
        return plan
    if clauses.granularity is not None:
        return _apply_granularity(plan, clauses.granularity)
    raise BindError(
        f"a window over {described} needs a granularity: its rows are valid for longer than an "
        "instant",
        clauses.window.span,
        "write GRANULARITY(d) after the window, or use ISTREAM(…) for the inserted rows",
    )


def _apply_granularity(plan: Plan, clause: syntax.GranularityClause) -> Plan:
    size = chronons(clause.finest, plan.domain, "the granularity")
    coarsest = None
    if clause.coarsest is not None:
        coarsest = chronons(clause.coarsest, plan.domain, "the coarsest granularity")
        if coarsest < size:
            raise BindError("COARSEST is finer than FINEST", clause.coarsest.span)
    below = granule(plan)
    if size < below:
        raise BindError(
            f"the granularity is finer than the {plan.domain.format(below)} of its input",
            clause.finest.span,
            "a granularity can only become coarser",
        )
    if size % below:
        raise BindError(
            f"the granularity is not a multiple of the {plan.domain.format(below)} of its input",
            clause.finest.span,
        )
    if size == below and coarsest is None:
        return plan
    return Granularity(plan, size, coarsest)


def _apply_window(plan: Plan, window: syntax.Window) -> Plan:
    if window.frame == "RANGE":
        return _time_window(plan, window)
    slide = window.slide.rows if isinstance(window.slide, syntax.RowCount) else 1
    rows = window.size.rows if isinstance(window.size, syntax.RowCount) else INFINITY
    minimum = window.minimum.rows if isinstance(window.minimum, syntax.RowCount) else None
    if minimum is not None and minimum > rows:
        raise BindError("MIN is more than MAX", window.minimum.span if window.minimum else None)
    granules = 1 if lives_one_instant(plan) else granule(plan)
    keys = tuple(_partition_column(plan, column) for column in window.partition)
    plan, order = with_order(plan)
    if keys:
        return PartitionedWindow(plan, keys, rows, order, slide, granules, minimum)
    return CountWindow(plan, rows, order, slide, granules, minimum)


def _time_window(plan: Plan, window: syntax.Window) -> Plan:
    domain = plan.domain
    granules = 1 if lives_one_instant(plan) else granule(plan)
    for column in window.partition:  # PARTITION BY c RANGE d is RANGE d; c must still exist
        _partition_column(plan, column)

    def length(duration: Duration, what: str) -> int:
        size = chronons(duration, domain, what)
        if size % granules:
            raise BindError(
                f"{what} is not a multiple of the granularity {domain.format(granules)} of its "
                "input",
                duration.span,
            )
        return size

    match window.size:
        case syntax.Unbounded():
            size = INFINITY
        case syntax.Now():
            size = granules
        case Duration() as duration:
            size = length(duration, "the window")
        case syntax.RowCount():
            raise AssertionError("RANGE has a duration")
    slide = granules
    if isinstance(window.slide, Duration):
        slide = length(window.slide, "the slide")
    minimum = None
    if isinstance(window.minimum, Duration):
        minimum = length(window.minimum, "the smallest window")
        if minimum > size:
            raise BindError("MIN is longer than MAX", window.minimum.span)
    if size == slide == granules == 1 and minimum is None:
        return plan
    return TimeWindow(plan, size, slide, granules, minimum)


def _partition_column(plan: Plan, name: Name) -> Expression:
    qualifier = plan.schema[0].qualifier
    return Scope([Relation(qualifier, "stream", plan.schema)]).resolve(name, None)


# --- order ----------------------------------------------------------------------------------------


def with_order(plan: Plan) -> tuple[Plan, tuple[Expression, ...]]:
    """The plan and the order of rows of one instant: the position in the stream's order if it is
    available, else the columns from left to right."""
    carried = with_arrival(plan)
    if carried is not None:
        return carried, (_arrival_of(carried).column,)
    return plan, tuple(field.column for field in visible(plan.schema))


def with_arrival(plan: Plan) -> Plan | None:
    """The plan with the hidden column of its source's order. Filters, maps and windows pass it
    on, and so do the joins that a query's subqueries add."""
    match plan:
        case Source():
            return replace(plan, arrival=True) if plan.numbered else None
        case Filter() | TimeWindow() | CountWindow() | PartitionedWindow() | Granularity():
            inner = with_arrival(plan.input)
            return None if inner is None else plan.with_inputs(inner)
        case Map():
            inner = with_arrival(plan.input)
            if inner is None:
                return None
            if any(field.name == ARRIVAL for field in plan.schema):
                return plan
            hidden = _arrival_of(inner)
            return Map(inner, (*plan.outputs, Named(hidden.column, ARRIVAL, hidden.qualifier)))
        case Join(kind=JoinKind.SEMI | JoinKind.ANTI):
            left = with_arrival(plan.left)
            return None if left is None else replace(plan, left=left)
        case Join(kind=JoinKind.INNER | JoinKind.LEFT, condition=None):
            left = with_arrival(plan.left) if at_most_one_row(plan.right) else None
            return None if left is None else replace(plan, left=left)
    return None


def _arrival_of(plan: Plan) -> Field:
    return next(field for field in plan.schema if field.name == ARRIVAL)


def without_arrival(plan: Plan) -> Plan:
    """The plan without the hidden column."""
    shown = visible(plan.schema)
    if len(shown) == len(plan.schema):
        return plan
    return Map(plan, tuple(Named(f.column, f.name, f.qualifier) for f in shown))


# --- ISTREAM, DSTREAM, RSTREAM --------------------------------------------------------------------


def apply_stream_function(plan: Plan, function: str, span: Span | None) -> Plan:
    match function:
        case "ISTREAM":
            return _without_unbounded_window(plan) or Istream(plan)
        case "DSTREAM":
            return Dstream(plan)
    if lives_one_instant(plan):
        return plan
    size = granule(plan)
    if size == 1 and plan.domain.microseconds == 1:
        raise BindError(
            "RSTREAM repeats its input in every granule, and here a granule is a microsecond",
            span,
            "write GRANULARITY(d) after the window",
        )
    return Rstream(plan, size)


def _without_unbounded_window(plan: Plan) -> Plan | None:
    """CQL's rule (K §15.1.1): the rows inserted into an unbounded window are those that arrive now.
    This also applies through filters and maps."""
    match plan:
        case TimeWindow(size=size, slide=1, granule=1) if size == INFINITY:
            return plan.input
        case Filter() | Map():
            inner = _without_unbounded_window(plan.input)
            return None if inner is None else plan.with_inputs(inner)
    return None
