"""A map before a window instead of after it (K 10.9, 10.11, 10.12).

    μ_f(ω(S)) = ω(μ_f(S))

Conditions: f cannot fail, since a window may skip rows. Count and partitioned windows keep the
columns of their order and their keys, which f passes on unchanged. Before the window a row is
computed once, even if it is inserted and retracted; after it only rows in the window are computed,
and a window of whole rows may be shared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from millstream.logical.expressions import Column, Expression
from millstream.logical.failing import evaluated, rows_can_fail
from millstream.logical.plan import CountWindow, Map, PartitionedWindow, Plan, TimeWindow
from millstream.optimizer.facts.reading import Key, columns_of, substituted


def map_below_window(node: Plan) -> Iterator[Plan]:
    if not isinstance(node, Map) or rows_can_fail(node):
        return
    window = node.input
    match window:
        case TimeWindow():
            yield replace(window, input=replace(node, input=window.input))
        case CountWindow() | PartitionedWindow():
            names = _passed_on(node)
            if columns_of(evaluated(window)) <= names.keys():
                below = replace(node, input=window.input)
                order = tuple(substituted(part, names) for part in window.order)
                if isinstance(window, PartitionedWindow):
                    keys = tuple(substituted(key, names) for key in window.keys)
                    yield replace(window, input=below, order=order, keys=keys)
                else:
                    yield replace(window, input=below, order=order)


def _passed_on(node: Map) -> dict[Key, Expression]:
    """The names of the input's columns in the output."""
    return {
        output.expression.key: output.field.column
        for output in node.outputs
        if isinstance(output.expression, Column)
    }
