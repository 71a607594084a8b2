"""Granularities move to the windows (K §20.5), so that the operators above see fewer changes.

    Γ_g(op(S₁, S₂)) = op(Γ_g(S₁), Γ_g(S₂))     for every snapshot-reducible operator (K 10.4.1)

Conditions: no others, since both sides are op of the snapshots at the last instant of the grid. A
granularity with bounds for adaptation stays. Shared parts stay one.
It is worse if a join or a union with many inputs changes rarely.
"""

from __future__ import annotations

from millstream.logical.plan import (
    Aggregate,
    Distinct,
    Filter,
    Granularity,
    Join,
    Map,
    Plan,
    SetOperation,
    TopN,
)
from millstream.optimizer.facts.sharing import Consumers, with_inputs

_SNAPSHOT_REDUCIBLE = (Filter, Map, Join, SetOperation, Distinct, Aggregate, TopN)


def push_granularities(plan: Plan, consumers: Consumers) -> Plan:
    done: dict[int, Plan] = {}

    def node(part: Plan) -> Plan:
        if id(part) not in done:
            if isinstance(part, Granularity) and part.coarsest is None:
                done[id(part)] = coarsened(part.input, part.granule)
            else:
                done[id(part)] = with_inputs(part, *map(node, part.inputs))
        return done[id(part)]

    def coarsened(part: Plan, granule: int) -> Plan:
        if isinstance(part, _SNAPSHOT_REDUCIBLE) and not consumers.are_several(part):
            return with_inputs(part, *(coarsened(child, granule) for child in part.inputs))
        return Granularity(node(part), granule)

    return node(plan)
