"""A time window before or after a union (K 10.10).

    ω(S₁) ∪ ω(S₂) = ω(S₁ ∪ S₂)

Conditions: both windows are equal, including their bounds for adaptation. After the union there is
one window instead of two; before it a window may be shared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from millstream.logical.plan import Plan, TimeWindow, Union


def window_above_union(node: Plan) -> Iterator[Plan]:
    match node:
        case Union(left=TimeWindow() as left, right=TimeWindow() as right):
            if replace(right, input=left.input) == left:
                yield replace(left, input=Union(left.input, right.input))


def window_below_union(node: Plan) -> Iterator[Plan]:
    match node:
        case TimeWindow(input=Union() as union):
            yield Union(replace(node, input=union.left), replace(node, input=union.right))
