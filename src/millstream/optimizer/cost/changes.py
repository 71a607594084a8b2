"""What came and went at each instant: ISTREAM, DSTREAM, and the answer as changes."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.optimizer.cost.characteristics import INFINITE, Characteristics, occupied
from millstream.optimizer.cost.counting import unequal
from millstream.optimizer.cost.model import ROOM, Given, Model, held_keys
from millstream.optimizer.cost.work import Primitive, coded
from millstream.physical.operator import PhysicalPlan
from millstream.physical.operators.changes import Changes
from millstream.physical.operators.deltas import Deltas

KEY_BYTES = 24.0
EVENT_BYTES = 12.0


def net_changes(input: Characteristics) -> float:
    """How often the count of some row changes, a chronon: at each start and end, but for equal rows
    that come and go within one granule (`unequal`), and for pieces that follow each other."""
    values, granule = input.distinct_rows(), input.granule
    steps = input.steps(input.columns)
    moves = granule * steps / values
    if moves < 1e-9:
        return 2 * steps
    return values / granule * unequal(moves)


def deltas(node: Deltas, inputs: Sequence[Characteristics], model: Model) -> Given:
    """Half of the changes are of rows that come, half of rows that go; each lives one instant."""
    (input,) = inputs
    rate = net_changes(input) / 2
    output = input.given_anew(rate, 1.0, retracted=0.0, written=None, fixed=True)
    return _given(node, input, output)


def changes(node: Changes, inputs: Sequence[Characteristics], model: Model) -> Given:
    """Each row that comes is an element, and so is each that goes."""
    (input,) = inputs
    rate = net_changes(input) / 2
    output = input.given_anew(rate, retracted=1.0, written=INFINITE, fixed=False)
    return _given(node, input, output)


def _given(node: PhysicalPlan, input: Characteristics, output: Characteristics) -> Given:
    """The state is the future alone: ends that lie ahead, and their rows."""
    values = input.distinct_rows()
    keys = (
        held_keys(min(input.variety, occupied(values, input.ahead)), values) if input.ahead else 0.0
    )
    events = 2 * input.elements if input.written != INFINITE else input.elements
    work = {
        **coded(input.elements, len(node.schema)),
        Primitive.EVENT: events,
        Primitive.STORE: output.elements * len(node.schema),
    }
    size = keys * (KEY_BYTES + input.width) + input.ahead * EVENT_BYTES
    return Given(output, work, keys + input.ahead, ROOM * size)
