"""Changes at each instant: ISTREAM, DSTREAM, and the answer as changes."""

from __future__ import annotations

from collections.abc import Sequence
from math import expm1

from millstream.optimizer.cost.characteristics import INFINITE, Characteristics
from millstream.optimizer.cost.counting import unequal
from millstream.optimizer.cost.model import ROOM, Given, Model
from millstream.optimizer.cost.work import Primitive, coded
from millstream.physical.operator import PhysicalPlan
from millstream.physical.operators.changes import Changes
from millstream.physical.operators.deltas import Deltas

SLOT_BYTES = 5.0
EVENT_BYTES = 12.0


def net_changes(input: Characteristics) -> float:
    """How often the count of some row changes per chronon: at each start and end, except for equal
    rows that arrive and expire within one granule (`unequal`), and for adjacent pieces."""
    values, granule = input.distinct_rows(), input.granule
    steps = input.steps(input.columns)
    moves = granule * steps / values
    if moves < 1e-9:
        return 2 * steps
    return values / granule * unequal(moves)


def deltas(node: Deltas, inputs: Sequence[Characteristics], model: Model) -> Given:
    """Half of the changes are insertions, half are deletions; each is valid for one instant."""
    (input,) = inputs
    rate = net_changes(input) / 2
    output = input.given_anew(rate, 1.0, retracted=0.0, written=None, fixed=True)
    return netted(node, input, output)


def changes(node: Changes, inputs: Sequence[Characteristics], model: Model) -> Given:
    """Each inserted row is an element, and so is each deleted row."""
    (input,) = inputs
    rate = net_changes(input) / 2
    output = input.given_anew(rate, retracted=1.0, written=INFINITE, fixed=False)
    return netted(node, input, output)


def netted(node: PhysicalPlan, input: Characteristics, output: Characteristics) -> Given:
    """The state is only the future ends and their rows. Rows are compared only if events share an
    instant."""
    stored = input.elements if input.written != INFINITE else 0.0
    events = input.elements + stored
    tied = -expm1(-events * input.granule)
    work = {
        **coded(events * tied, len(node.schema)),
        Primitive.EVENT: events,
        Primitive.STORE: (stored + output.elements) * len(node.schema),
    }
    size = input.ahead * (SLOT_BYTES + input.width + EVENT_BYTES)
    return Given(output, work, 2 * input.ahead, ROOM * size)
