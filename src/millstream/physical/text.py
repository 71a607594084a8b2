"""Physical plans as text: the operators, and the facts about the edges between them.

One node per line, two spaces per level, `Name key=value key=[a, b]`, expressions in SQL, as logical
plans are printed. A line ends with the facts of the edge above it: the update pattern, whether
elements are only added (`[+]`) or also retracted (`[+,-]`), and the kind of state if there is one.
A node with several consumers is printed once, marked `shared=#1`, and then referred to as
`Shared #1`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from millstream.logical.expressions import Call
from millstream.logical.text import (
    expression_text,
    key_text,
    name_text,
    named_text,
    sort_key_text,
)
from millstream.model import types
from millstream.model.time import INFINITY, RAW_TIME, TimeDomain
from millstream.physical.joins.areas.area import Probing
from millstream.physical.joins.areas.forms import AreaChoice
from millstream.physical.joins.steps import new_first
from millstream.physical.operator import Pattern, PhysicalPlan
from millstream.physical.operators.aggregate import Aggregate
from millstream.physical.operators.coalesce import Coalesce
from millstream.physical.operators.count_window import CountWindow
from millstream.physical.operators.cut import Cut
from millstream.physical.operators.deltas import Deltas
from millstream.physical.operators.filter import Filter
from millstream.physical.operators.granularity import Granularity
from millstream.physical.operators.join import Join, JoinKey
from millstream.physical.operators.lookup_join import LookupJoin
from millstream.physical.operators.map import Map
from millstream.physical.operators.multi_join import MultiJoin
from millstream.physical.operators.outer_join import OuterJoin
from millstream.physical.operators.pointwise import Form, Pointwise
from millstream.physical.operators.semi_join import SemiJoin
from millstream.physical.operators.source import Source
from millstream.physical.operators.split import Split
from millstream.physical.operators.time_window import TimeWindow
from millstream.physical.operators.top_n import TopN
from millstream.physical.signature import Signatures, short


def physical_text(
    plan: PhysicalPlan, time: TimeDomain = RAW_TIME, signatures: Signatures | None = None
) -> str:
    """The plan, with durations in the time units of its streams. With `signatures` each line ends
    with the first digits of its node's."""
    return "\n".join(_lines(plan, 0, time, SharedNodes(plan), signatures))


def _lines(
    plan: PhysicalPlan,
    level: int,
    time: TimeDomain,
    shared: SharedNodes,
    signatures: Signatures | None,
) -> Iterator[str]:
    margin = "  " * level
    if shared.is_known(plan):
        yield f"{margin}Shared {shared.name(plan)}"
        return
    told = properties(plan, time) | facts(plan)
    if shared.is_shared(plan):
        told["shared"] = shared.name(plan)
    if signatures is not None:
        told["id"] = short(signatures[plan])
    yield margin + " ".join(
        [type(plan).__name__, *(f"{key}={value}" for key, value in told.items())]
    )
    for child in plan.inputs:
        yield from _lines(child, level + 1, time, shared, signatures)


def physical_json(
    plan: PhysicalPlan, signatures: Signatures, time: TimeDomain = RAW_TIME
) -> dict[str, object]:
    """The plan as plain data. A node that occurred before is `{"operator": "Shared", …}`."""
    return _json(plan, signatures, time, SharedNodes(plan))


def _json(
    plan: PhysicalPlan, signatures: Signatures, time: TimeDomain, shared: SharedNodes
) -> dict[str, object]:
    known: dict[str, object] = {"id": signatures[plan]}
    if shared.is_known(plan):
        return known | {"operator": "Shared", "shared": shared.name(plan)}
    told = known | {"operator": type(plan).__name__}
    if shared.is_shared(plan):
        told["shared"] = shared.name(plan)
    return told | {
        "properties": properties(plan, time),
        "pattern": plan.pattern.value,
        "emits": _signs(plan),
        "state": [] if plan.state is None else plan.state.split(", "),
        "columns": [
            {"name": field.name, "type": types.sql_name(field.type)} for field in plan.schema
        ],
        "inputs": [_json(child, signatures, time, shared) for child in plan.inputs],
    }


class SharedNodes:
    """The nodes of a plan with several consumers, numbered in order of first use."""

    def __init__(self, plan: PhysicalPlan) -> None:
        self._consumers: Counter[int] = Counter()
        self._numbers: dict[int, int] = {}
        self._count(plan)

    def _count(self, plan: PhysicalPlan) -> None:
        self._consumers[id(plan)] += 1
        if self._consumers[id(plan)] == 1:
            for child in plan.inputs:
                self._count(child)

    def is_shared(self, plan: PhysicalPlan) -> bool:
        return self._consumers[id(plan)] > 1

    def is_known(self, plan: PhysicalPlan) -> bool:
        """Whether it occurred before."""
        return id(plan) in self._numbers

    def name(self, plan: PhysicalPlan) -> str:
        return f"#{self._numbers.setdefault(id(plan), len(self._numbers) + 1)}"


def facts(plan: PhysicalPlan) -> dict[str, str]:
    """The facts of the node's output and state."""
    own = {"pattern": plan.pattern.value, "emits": f"[{','.join(_signs(plan))}]"}
    if plan.state is not None:
        parts = plan.state.split(", ")
        own["state"] = parts[0] if len(parts) == 1 else _list(parts)
    return own


def _signs(plan: PhysicalPlan) -> list[str]:
    return ["+", "-"] if plan.pattern is Pattern.STRICT else ["+"]


# --- what each operator says ----------------------------------------------------------------------


def properties(plan: PhysicalPlan, time: TimeDomain) -> dict[str, str]:
    """The properties of a node, without defaults."""
    match plan:
        case Source():
            return _source(plan)
        case Filter():
            return {"where": expression_text(plan.predicate)}
        case Map():
            return {"columns": _list(map(named_text, plan.outputs))}
        case Join():
            return _condition(plan) | _areas(plan.areas, time)
        case MultiJoin():
            return _multi_join(plan, time)
        case SemiJoin():
            return {"kind": "anti" if plan.anti else "semi"} | _condition(plan) | _form(plan)
        case OuterJoin():
            kind = {(True, False): "left", (False, True): "right"}.get(plan.outer, "full")
            return {"kind": kind} | _condition(plan)
        case LookupJoin():
            return {"kind": plan.kind.value} | _condition(plan)
        case Pointwise():
            return {"function": plan.function.value} | _once(plan) | _form(plan)
        case Aggregate():
            by = {"by": _list(map(key_text, plan.keys))} if plan.keys else {}
            compute = {"compute": _list(map(named_text, plan.aggregates))}
            return by | compute | _last(plan) | _form(plan)
        case TopN():
            by = {"by": _list(map(expression_text, plan.keys))} if plan.keys else {}
            order = _list(map(sort_key_text, plan.order))
            return by | {"limit": str(plan.limit), "order": order}
        case Deltas():
            return {"of": "what went" if plan.gone else "what came"}
    return _windows(plan, time)


def _windows(plan: PhysicalPlan, time: TimeDomain) -> dict[str, str]:
    match plan:
        case TimeWindow():
            size = "UNBOUNDED" if plan.size == INFINITY else time.format(plan.size)
            slide = {} if plan.slide == plan.granule else {"slide": time.format(plan.slide)}
            return {"range": size} | slide | _granule(plan.granule, time)
        case CountWindow():
            by = {"by": _list(map(expression_text, plan.keys))} if plan.keys else {}
            rows = "UNBOUNDED" if plan.rows == INFINITY else str(plan.rows)
            order = _list(map(expression_text, plan.order))
            slide = {} if plan.slide == 1 else {"slide": str(plan.slide)}
            window = {"rows": rows, "order": order} | slide | _granule(plan.granule, time)
            return by | window | _form(plan)
        case Granularity() | Split():
            return {"granule": time.format(plan.granule)}
        case Cut():
            return {"length": time.format(plan.length)}
        case Coalesce():
            return {"longest": time.format(plan.longest)}
    return plan.told


def _source(plan: Source) -> dict[str, str]:
    own = {"stream": name_text(plan.stream)}
    aliases = {field.qualifier for field in plan.columns} - {plan.stream}
    if aliases:
        own["as"] = name_text(min(aliases))
    return own | ({"arrival": "yes"} if plan.arrival else {})


def _condition(plan: Join | SemiJoin | OuterJoin | LookupJoin) -> dict[str, str]:
    own = {"keys": _list(map(_key, plan.keys))} if plan.keys else {}
    return own if plan.condition is None else own | {"where": expression_text(plan.condition)}


def _key(key: JoinKey) -> str:
    function = "<=>" if key.null_matches else "="
    return expression_text(Call(function, (key.left, key.right), types.BOOLEAN))


def _multi_join(plan: MultiJoin, time: TimeDomain) -> dict[str, str]:
    own = {"keys": _list(_key(link.key) for link in plan.links)} if plan.links else {}
    conditions = [*plan.conditions, *([] if plan.condition is None else [plan.condition])]
    if conditions:
        own["where"] = _list(map(expression_text, conditions))
    if plan.orders != new_first(range(len(plan.sources))):
        own["orders"] = _list(" ".join(str(port + 1) for port in order) for order in plan.orders)
    if plan.interval:
        own["interval"] = time.format(plan.interval)
    return own | _areas(plan.areas, time)


def _areas(areas: Iterable[AreaChoice], time: TimeDomain) -> dict[str, str]:
    areas = list(areas)
    own = {}
    if any(area.probing is not Probing.HASH for area in areas):
        own["probing"] = _list(area.probing.value for area in areas)
    if any(area.lazy for area in areas):
        own["lazy"] = _list(time.format(area.lazy) for area in areas)
    return own


def _once(plan: Pointwise) -> dict[str, str]:
    """The inputs of which a row counts once, regardless of its multiplicity."""
    sides = [side for side, once in zip(("left", "right"), plan.once, strict=True) if once]
    return {"once": _list(sides)} if sides else {}


def _form(plan: SemiJoin | Pointwise | Aggregate | CountWindow) -> dict[str, str]:
    own = {} if plan.form is Form.SIGNED else {"form": plan.form.value}
    return own | ({"final": "yes"} if plan.final else {})


def _last(plan: Aggregate) -> dict[str, str]:
    if plan.last is None:
        return {}
    order = _list(map(expression_text, plan.last.order))
    return {"rows": str(plan.last.rows), "order": order}


def _granule(granule: int, time: TimeDomain) -> dict[str, str]:
    return {} if granule == 1 else {"granule": time.format(granule)}


def _list(items: Iterable[str]) -> str:
    return f"[{', '.join(items)}]"
