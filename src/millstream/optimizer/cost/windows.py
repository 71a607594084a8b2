"""Count windows, over all rows or per partition (K §22.4.10 and §22.4.11)."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.logical.expressions import Column, Expression
from millstream.model.time import INFINITY
from millstream.optimizer.cost.characteristics import INFINITE, Characteristics, Key, product
from millstream.optimizer.cost.model import ROOM, Given, Model
from millstream.optimizer.cost.selectivity import facts_of_value, parts_of
from millstream.optimizer.cost.work import Primitive, coded
from millstream.physical.operators.count_window import CountWindow
from millstream.physical.operators.pointwise import Form

ROW_BYTES = 12.0  # of a row in a queue, besides its columns
PARTITION_BYTES = 48.0


def count_length(d: float, rows: float, partitions: float = 1.0) -> float:
    """K eq. 22.11 and 22.12: l' = n·N·d: a row stays until N more of its partition have arrived."""
    return partitions * rows * d


def _columns(keys: Sequence[Expression]) -> frozenset[Key]:
    return frozenset(key.key for key in keys if isinstance(key, Column))


def count_window(node: CountWindow, inputs: Sequence[Characteristics], model: Model) -> Given:
    """K eq. 22.11, 22.12 and 22.49 to 22.56. With a slide of m, on average m/2 rows per partition
    wait for it; if m is larger than the window, only N of m rows ever enter it. The slots of rows
    that leave with a batch are free once the batch has been read."""
    (input,) = inputs
    partitions = product(facts_of_value(key, input).distinct for key in node.keys)
    arrived = model.statistics.ahead / (input.distance * partitions)  # of each partition
    size = min(float(node.rows), arrived) if node.rows < INFINITY else arrived
    shown = min(1.0, node.rows / node.slide)
    unbounded = node.rows >= INFINITY
    length = (
        model.lifetime(INFINITE)
        if unbounded
        else count_length(input.distance, max(float(node.rows), float(node.slide)), partitions)
    )
    signed = node.form is Form.SIGNED and not unbounded
    output = Characteristics(
        1.0,
        min(length, model.statistics.ahead),
        max(input.granule, (node.slide - 1) * input.distance * partitions),
        input.columns,
        1.0 if signed else 0.0,
        fixed=not node.keys and not signed,
        paired=None if unbounded else _columns(node.keys),
        written=INFINITE if signed or unbounded else None,
        batches=input.batches,
    ).with_rate(input.rate * shown)
    rows = (0.0 if unbounded else partitions * size) + partitions * (node.slide - 1) / 2
    rows += output.rate / input.batches if input.batches and not unbounded else 0.0
    parts = sum(parts_of(part) for part in (*node.keys, *node.order))
    work = {
        Primitive.EXPRESSION: input.elements * parts,
        **coded(input.elements, len(node.keys)),
        Primitive.EVENT: input.elements,
        Primitive.STORE: (input.elements + output.elements) * len(node.schema),
        Primitive.PASS: output.elements,
    }
    size_of_row = ROW_BYTES + input.width
    held = rows * size_of_row + (partitions * PARTITION_BYTES if node.keys else 0.0)
    return Given(output, work, rows, ROOM * held)
