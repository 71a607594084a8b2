"""Tables in plans: the place of joins with NON RETROACTIVE tables, and the time of tables.

A row of a stream at s joins the version of a NON RETROACTIVE table that is valid at s, and then
keeps its own validity (G5 §4.1). That is an ordinary join below the window, where the row is valid
only at s: W(S) joined with R becomes W(S ⋈ R). The rest of the algebra is unaware of such tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NoReturn

import pyarrow as pa

from millstream.logical.analysis import lives_one_instant
from millstream.logical.catalog import Catalog, ChangeMode, Table
from millstream.logical.evaluate import is_deterministic
from millstream.logical.expressions import (
    TRUE,
    Call,
    Cast,
    Column,
    Expression,
    conjuncts,
    rewrite,
    walk,
)
from millstream.logical.plan import (
    CountWindow,
    Filter,
    Join,
    JoinKind,
    Map,
    Named,
    PartitionedWindow,
    Plan,
    SetOperation,
    Source,
    TimeWindow,
)
from millstream.logical.uniqueness import Key, unique_columns
from millstream.model.errors import BindError, listed
from millstream.model.names import Name
from millstream.model.time import ANY_TIME, TIMESTAMP_TIME, TimeDomain

_MATCHED = "$matched"


def with_time(plan: Plan, named: TimeDomain = TIMESTAMP_TIME) -> Plan:
    """The plan with one time domain. Tables that declare no time use that of the streams; without
    streams, the one used by their changes, or else clock time."""
    if all(node.time != ANY_TIME for node in _sources(plan)):
        return plan
    domain = plan.domain if plan.domain != ANY_TIME else named

    def timed(node: Plan) -> Plan:
        if isinstance(node, Source):
            return replace(node, time=domain) if node.time == ANY_TIME else node
        return node.with_inputs(*map(timed, node.inputs))

    return timed(plan)


def _sources(plan: Plan) -> Iterator[Source]:
    return (node for node in plan.walk() if isinstance(node, Source))


@dataclass(frozen=True)
class Placement:
    """Moves joins with versions of tables down to where the rows of streams arrive."""

    catalog: Catalog

    def placed(self, plan: Plan) -> Plan:
        if not any(self._changes(s) is ChangeMode.NON_RETROACTIVE for s in _sources(plan)):
            return plan
        return self._placed(plan)

    def _placed(self, plan: Plan) -> Plan:
        inputs = tuple(map(self._placed, plan.inputs))
        if any(new is not old for new, old in zip(inputs, plan.inputs, strict=True)):
            plan = plan.with_inputs(*inputs)
        if isinstance(plan, SetOperation):
            self._check_set_operation(plan)
        if not isinstance(plan, Join):
            return plan
        stream_side = self._stream_side(plan)
        if stream_side is None:
            return plan
        return _with_columns(self._lowered(plan, stream_side), plan)

    # --- the sides of a join ---------------------------------------------------------------------

    def _changes(self, source: Source) -> ChangeMode | None:
        found = self.catalog.stream(Name(source.stream, quoted=True))
        return found.changes if isinstance(found, Table) else None

    def _versions(self, plan: Plan) -> list[str]:
        """The tables in a plan whose changes are not retroactive."""
        wanted = ChangeMode.NON_RETROACTIVE
        return [s.stream for s in _sources(plan) if self._changes(s) is wanted]

    def _has_stream(self, plan: Plan) -> bool:
        return any(not source.relation for source in _sources(plan))

    def _stream_side(self, plan: Join) -> str | None:
        """The side of a join whose rows look up versions on the other, if there is one."""
        left, right = (self._has_stream(side) for side in plan.inputs)
        if left == right:
            return None
        side, versions = ("left", plan.right) if left else ("right", plan.left)
        names = self._versions(versions)
        if not names:
            return None
        allowed = (ChangeMode.NON_RETROACTIVE, ChangeMode.NONE)
        others = [s.stream for s in _sources(versions) if self._changes(s) not in allowed]
        if others:
            raise BindError(
                f'table "{names[0]}" is NON RETROACTIVE, and "{others[0]}" is not: their versions '
                "cannot be joined",
                help="join each of them with the stream, not with each other",
            )
        return side

    def _check_set_operation(self, plan: SetOperation) -> None:
        for side, other in (plan.inputs, plan.inputs[::-1]):
            names = self._versions(side)
            if names and not self._has_stream(side) and self._has_stream(other):
                raise BindError(
                    f'table "{names[0]}" is NON RETROACTIVE: rows of streams look up its versions '
                    "in joins and subqueries, not in set operations",
                    help="write EXISTS or NOT EXISTS, or declare the table RETROACTIVE",
                )

    # --- the way down ----------------------------------------------------------------------------

    def _lowered(self, join: Join, side: str) -> Plan:
        """The same join, moved down to where the rows of its stream are valid for one instant."""
        plan: Plan = getattr(join, side)
        self._check_kind(join, side)
        if lives_one_instant(plan):
            return join
        match plan:
            case TimeWindow(granule=1) | Filter():
                lower = self._lowered(_with_side(join, side, plan.input), side)
                return replace(plan, input=lower)
            case CountWindow(granule=1) | PartitionedWindow(granule=1):
                return self._below_count(join, side, plan)
            case Map():
                return self._below_map(join, side, plan)
            case Join():
                return self._below_join(join, side, plan)
        return self._refuse(
            join, side, "it is joined with computed rows, not with rows of a stream"
        )

    def _check_kind(self, join: Join, side: str) -> None:
        kinds = [JoinKind.INNER, JoinKind.RIGHT]
        if side == "left":
            kinds = [JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI]
        if join.kind not in kinds:
            self._refuse(join, side, "rows of the table would be kept without a match")

    def _below_map(self, join: Join, side: str, plan: Map) -> Plan:
        """Compute the columns above the join, and substitute their expressions in the condition."""
        made = {output.field.key: output.expression for output in plan.outputs}

        def unmade(part: Expression) -> Expression:
            return made.get(part.key, part) if isinstance(part, Column) else part

        condition = None if join.condition is None else rewrite(join.condition, unmade)
        if condition is not None and not is_deterministic(condition):
            self._refuse(join, side, "its condition is not deterministic")
        above = _with_side(replace(join, condition=condition), side, plan.input)
        lower = self._lowered(above, side)
        kept = {output.field.key: output for output in plan.outputs}
        outputs = (kept.get(f.key) or Named(f.column, f.name, f.qualifier) for f in join.schema)
        return Map(lower, tuple(outputs))

    def _below_join(self, join: Join, side: str, plan: Join) -> Plan:
        """Move it to the input whose columns the condition reads, together with constant tables on
        the way."""
        wanted = _read_of(join, plan)
        for name, allowed in _THROUGH.items():
            below: Plan = getattr(plan, name)
            if not wanted or not wanted <= _keys(below) or plan.kind not in allowed:
                continue
            if self._has_stream(below):
                return _with_side(plan, name, self._lowered(_with_side(join, side, below), side))
        own = self._stream_side_of_constant(plan)
        if own is not None:
            lower = self._lowered(plan, own)
            if not isinstance(lower, Join):
                return self._lowered(_with_side(join, side, _with_columns(lower, plan)), side)
        return self._refuse(join, side, "it is joined with several streams")

    def _stream_side_of_constant(self, plan: Join) -> str | None:
        for side, other in (("left", plan.right), ("right", plan.left)):
            constant = all(self._changes(s) is ChangeMode.NONE for s in _sources(other))
            if constant and self._has_stream(getattr(plan, side)):
                return side
        return None

    def _below_count(self, join: Join, side: str, window: CountWindow | PartitionedWindow) -> Plan:
        """A count window must see each row of its stream once: with its one match, or with none."""
        versions = join.right if side == "left" else join.left
        if not _meets_one(versions, join.condition):
            self._refuse(
                join, side, "a row may match several rows of the table, below a count window",
                "join it on its whole PRIMARY KEY",
            )  # fmt: skip
        mark = Named(TRUE, _MATCHED, next(iter(_keys(versions)))[0])
        own = [Named(f.column, f.name, f.qualifier) for f in versions.schema]
        marked = Map(versions, (*own, mark))
        lower = self._lowered(Join(window.input, marked, JoinKind.LEFT, join.condition), "left")
        plan: Plan = replace(window, input=lower)
        missing: Expression = Call("is null", (mark.field.column,), pa.bool_())
        if join.kind is JoinKind.ANTI:
            return Filter(plan, missing)
        if join.kind in (JoinKind.INNER, JoinKind.SEMI):
            return Filter(plan, Call("not", (missing,), pa.bool_()))
        return plan

    def _refuse(self, join: Join, side: str, why: str, help: str | None = None) -> NoReturn:
        versions = join.right if side == "left" else join.left
        names = self._versions(versions)
        what = "is NON RETROACTIVE" if names else "leads to one that is NON RETROACTIVE"
        told = listed(dict.fromkeys(names or [source.stream for source in _sources(versions)]))
        raise BindError(
            f"table {told} {what} and is looked up by arriving rows of one stream: here {why}",
            help=help or "join it with a stream by a condition, or declare it RETROACTIVE",
        )


# The kinds of join in which each row of a side is kept or joined independently of the others.
_THROUGH = {
    "left": (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI),
    "right": (JoinKind.INNER, JoinKind.RIGHT),
}


def _with_side(join: Join, side: str, plan: Plan) -> Join:
    return replace(join, left=plan) if side == "left" else replace(join, right=plan)


def _keys(plan: Plan) -> set[Key]:
    return {field.key for field in plan.schema}


def _read_of(join: Join, plan: Plan) -> set[Key]:
    """The columns of an input that a join's condition reads."""
    if join.condition is None:
        return set()
    columns = {part.key for part in walk(join.condition) if isinstance(part, Column)}
    return columns & _keys(plan)


def _with_columns(plan: Plan, like: Plan) -> Plan:
    """The plan with the columns of another one, in their order."""
    if [field.key for field in plan.schema] == [field.key for field in like.schema]:
        return plan
    return Map(plan, tuple(Named(f.column, f.name, f.qualifier) for f in like.schema))


def _meets_one(versions: Plan, condition: Expression | None) -> bool:
    """Whether at every instant at most one row of a plan satisfies a condition, for any row on the
    other side."""
    fixed = set(_fixed(versions, condition))
    return any(key <= fixed for key in unique_columns(versions))


def _fixed(versions: Plan, condition: Expression | None) -> Iterator[Key]:
    """The columns that must equal an expression of the other side."""
    own = _keys(versions)
    for part in conjuncts(condition):
        if isinstance(part, Call) and part.function in ("=", "<=>"):
            for one, other in (part.arguments, part.arguments[::-1]):
                column = _uncast(one)
                reads = {p.key for p in walk(other) if isinstance(p, Column)}
                if isinstance(column, Column) and column.key in own and not reads & own:
                    yield column.key


def _uncast(expression: Expression) -> Expression:
    """The expression without casts to wider integers, which do not affect equality."""
    if isinstance(expression, Cast) and pa.types.is_integer(expression.type):
        inner = expression.operand.type
        if pa.types.is_integer(inner) and inner.bit_width <= expression.type.bit_width:
            return _uncast(expression.operand)
    return expression
