"""Windows and granularities that do not change their input are removed.

    ω_1(S) = S (K 10.7)      ω_g(Γ_g(S)) = Γ_g(S)      Γ_g(Γ_h(S)) = Γ_g(S) where h divides g

Conditions: the window has the size and the slide of one granule, and snapshots of the input change
only with granules. It has no bounds for adaptation. An aggregate without keys has a row before the
first row of the streams, which a window does not see, so there the window stays.
"""

from __future__ import annotations

from millstream.logical.analysis import granule
from millstream.logical.plan import Aggregate, Granularity, Plan, TimeWindow
from millstream.optimizer.facts.sharing import Consumers
from millstream.optimizer.rewriting import rewritten


def drop_windows(plan: Plan, consumers: Consumers) -> Plan:
    return rewritten(plan, _dropped)


def _dropped(node: Plan) -> Plan:
    match node:
        case TimeWindow(minimum=None) if node.size == node.slide == node.granule:
            return node.input if _changes_with(node.input, node.granule) else node
        case Granularity(coarsest=None, input=Granularity(coarsest=None) as below):
            if node.granule % below.granule == 0:
                return Granularity(below.input, node.granule)
            if below.granule % node.granule == 0:
                return below
    return node


def _changes_with(plan: Plan, size: int) -> bool:
    """Whether it begins with the streams, and its snapshots change only at multiples of `size`."""
    begins = all(node.keys for node in plan.walk() if isinstance(node, Aggregate))
    return begins and granule(plan) % size == 0
