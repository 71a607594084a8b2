"""Operators that cut validity into pieces, or merge pieces (K §22.4.7)."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.optimizer.cost.characteristics import INFINITE, Characteristics, occupied
from millstream.optimizer.cost.model import ROOM, Given, Model, held_keys
from millstream.optimizer.cost.work import Primitive, coded
from millstream.physical.operators.coalesce import Coalesce
from millstream.physical.operators.cut import Cut
from millstream.physical.operators.split import Split

ROW_BYTES = 40.0


def split_distance_length(d: float, life: float, l_out: float) -> tuple[float, float]:
    """K eq. 22.8: l/l_out pieces per row that is longer than l_out."""
    return (d * l_out / life, l_out) if l_out < life else (d, life)


def split(node: Split, inputs: Sequence[Characteristics], model: Model) -> Given:
    """Our split cuts on a grid: in each granule there is one element per different row, with its
    count; eq. 22.8 counts equal rows separately."""
    (input,) = inputs
    granule, values = float(node.granule), input.distinct_rows()
    live = occupied(values, input.present)
    output = input.given_anew(
        live / granule, granule, granule=granule, retracted=0.0, written=None, fixed=True
    )
    events = 2 * input.elements if input.written != INFINITE else input.elements
    work = {
        **coded(input.elements, len(node.schema)),
        Primitive.EVENT: events,
        Primitive.STORE: (input.elements + output.elements) * len(node.schema),
        Primitive.PASS: output.elements,
    }
    keys = held_keys(live, values)
    return Given(output, work, keys + input.ahead, ROOM * keys * (ROW_BYTES + input.width))


def cut(node: Cut, inputs: Sequence[Characteristics], model: Model) -> Given:
    """K eq. 22.8, 22.40 to 22.44: rows with future pieces are kept, l/d of them without the last
    piece of each."""
    (input,) = inputs
    length = float(node.length)
    distance, piece = split_distance_length(input.distance, input.length, length)
    share = 0.0 if length >= input.length else 1 - length / input.length
    output = input.given_anew(1 / distance, piece, share, fixed=False)
    rows = max(input.present - input.rate * length, 0.0)
    work = {
        Primitive.STORE: input.elements * len(node.schema) if share else 0.0,
        Primitive.SCHEDULE: output.elements - input.elements if share else 0.0,
        Primitive.PASS: output.elements,
    }
    return Given(output, work, rows, ROOM * rows * (ROW_BYTES + input.width))


def coalesce(node: Coalesce, inputs: Sequence[Characteristics], model: Model) -> Given:
    """Adjacent pieces of equal rows are merged, up to the longest length: if a share f of rows
    follows another, d' = d/(1 - f) and l' = l/(1 - f), at most by longest/l. Pieces that may still
    grow are kept, and so are those that wait to be emitted in order."""
    (input,) = inputs
    longer = 1 / max(1 - input.following, 1e-9)
    longer = max(1.0, min(longer, node.longest / input.length))
    output = input.given_anew(input.rate / longer, input.length * longer, fixed=False)
    rows = output.present
    work = {
        **coded(input.elements, len(node.schema)),
        Primitive.SCHEDULE: input.elements,
        Primitive.STORE: 2 * output.elements * len(node.schema),
    }
    return Given(output, work, rows, ROOM * rows * (ROW_BYTES + input.width))
