"""Fragments as data, for checkpoints and worker processes. See `model.structures` for the form of
a document."""

from __future__ import annotations

from typing import Any

from millstream.fragments.edges import Fragment, Outputs, Received
from millstream.logical.plan_data import EXPRESSION_KINDS
from millstream.model.structures import StructureError, Structures
from millstream.physical.operator import PhysicalPlan
from millstream.physical.plan_data import OPERATOR_KINDS
from millstream.physical.signature import nodes_of

EDGE_KINDS: dict[str, type[PhysicalPlan]] = {"received": Received, "outputs": Outputs}

_FRAGMENTS = Structures(PhysicalPlan, OPERATOR_KINDS | EDGE_KINDS, EXPRESSION_KINDS)


def fragments_data(fragments: tuple[Fragment, ...]) -> dict[str, Any]:
    return _FRAGMENTS.to_data(fragments, tuple[Fragment, ...])


def fragments_of_data(data: Any) -> tuple[Fragment, ...]:
    """StructureError if this version cannot read it."""
    fragments: tuple[Fragment, ...] = _FRAGMENTS.from_data(data, tuple[Fragment, ...])
    for fragment in fragments:
        names, operators = len(fragment.signatures), len([*nodes_of(fragment.plan)])
        if names != operators:
            raise StructureError(f"it has {names} names for {operators} operators")
    return fragments
