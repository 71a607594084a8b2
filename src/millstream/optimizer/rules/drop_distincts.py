"""DISTINCT over rows that are already distinct is removed.

δ(S) = S      where snapshots have no duplicates, such as δ(δ(S)) = δ(S), δ(γ(S)) = γ(S)
"""

from __future__ import annotations

from millstream.logical.plan import Distinct, Plan
from millstream.logical.uniqueness import has_unique_rows
from millstream.optimizer.facts.sharing import Consumers
from millstream.optimizer.rewriting import rewritten


def drop_distincts(plan: Plan, consumers: Consumers) -> Plan:
    def change(node: Plan) -> Plan:
        return node.input if isinstance(node, Distinct) and has_unique_rows(node.input) else node

    return rewritten(plan, change)
