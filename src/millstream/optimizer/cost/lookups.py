"""The lookup join: each left row meets the right rows that are valid at its instant (G5 §4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from millstream.logical.plan import JoinKind
from millstream.optimizer.cost.characteristics import (
    INFINITE,
    Characteristics,
    facts_of,
    occupied,
    product,
)
from millstream.optimizer.cost.counting import ever_there
from millstream.optimizer.cost.joins import KEY_BYTES, key_selectivity, narrow, tested_work
from millstream.optimizer.cost.model import ROOM, Given, Model, held_keys, joined_columns
from millstream.optimizer.cost.selectivity import facts_of_value, selectivity
from millstream.optimizer.cost.work import Primitive, coded, together
from millstream.physical.operators.lookup_join import LookupJoin

VERSION_BYTES = 88.0  # of a row of the relation besides its values: its code, and its version


def lookup_join(node: LookupJoin, inputs: Sequence[Characteristics], model: Model) -> Given:
    """A left row is looked up once, a right row is coded and begins or ends a version; the state is
    the rows of the right input."""
    left, right = inputs
    met = right.present * key_selectivity(node.keys, left, right)
    share, output = _output(node, inputs, met, model)
    tested = left.elements * met
    events = right.elements * (1 if right.written == INFINITE else 2)
    work = together(
        coded(left.elements + right.elements, len(node.keys)),
        coded(right.elements, len(node.right.schema)),
        tested_work(node.condition, tested),
        {
            Primitive.EVENT: events,
            Primitive.PROBE: left.elements,
            Primitive.CANDIDATE: tested,
            Primitive.PAIR: tested * share,
        },
    )
    rows = held_keys(right.present, right.distinct_rows(), right.rate * model.statistics.ahead)
    size = rows * (VERSION_BYTES + right.width) + KEY_BYTES * _keys(node, right)
    return Given(output, work, right.present + right.ahead, ROOM * size)


def _output(
    node: LookupJoin, inputs: Sequence[Characteristics], met: float, model: Model
) -> tuple[float, Characteristics]:
    """The share of pairs with equal keys that satisfies the condition; and the output of left rows
    with this number of matches."""
    left, right = inputs
    columns = joined_columns(node.inputs, inputs)
    for key in node.keys:
        narrow(key, columns)
    both = replace(left, columns=columns)
    share = 1.0 if node.condition is None else selectivity(node.condition, both, model)
    partnered = _partnered(node, inputs, met, share)
    rates = {
        JoinKind.INNER: met * share,
        JoinKind.LEFT: met * share + (1 - partnered),
        JoinKind.SEMI: partnered,
        JoinKind.ANTI: 1 - partnered,
    }
    output = replace(
        both.with_rate(left.rate * rates[node.kind]),
        columns=facts_of(node.schema, columns),
        regular=False,
        paired=None,
        following=0.0,
        different=None,
        clumps=(),
        batches=left.batches + right.batches,
    )
    return share, output


def _partnered(
    node: LookupJoin, inputs: Sequence[Characteristics], met: float, share: float
) -> float:
    """The share of left rows with a partner: their key is present, and one of its rows matches."""
    left, right = inputs
    if not node.keys:
        return ever_there(met * share)
    mine = product(facts_of_value(key.left, left).distinct for key in node.keys)
    known = min(1.0, _keys(node, right) / max(mine, 1.0))
    return known if share >= 1 or not known else known * ever_there(met * share / known)


def _keys(node: LookupJoin, right: Characteristics) -> float:
    """The number of keys of the right input at an instant."""
    distinct = product(facts_of_value(key.right, right).distinct for key in node.keys)
    return occupied(distinct, right.present)
