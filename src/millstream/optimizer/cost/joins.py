"""The binary join (K §22.4.3), and the cost of its areas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from millstream.logical.expressions import Column, Expression
from millstream.optimizer.cost.characteristics import (
    INFINITE,
    Characteristics,
    Clump,
    ColumnFacts,
    Key,
    occupied,
    product,
)
from millstream.optimizer.cost.counting import ever_there
from millstream.optimizer.cost.model import Given, Model, joined_columns
from millstream.optimizer.cost.selectivity import (
    equality,
    facts_of_value,
    filtered,
    parts_of,
)
from millstream.optimizer.cost.work import Primitive, Work, coded, together
from millstream.physical.joins.areas.area import Probing
from millstream.physical.joins.areas.forms import RING, AreaChoice
from millstream.physical.operator import Pattern, PhysicalPlan
from millstream.physical.operators.join import Join, JoinKey

RING_BYTES = 44.0  # of an element of a ring, besides its row
CALENDAR_BYTES = 48.0  # … of a calendar, and of its chain
KEY_BYTES = 36.0  # per key, of either side
WIDER = 1.5  # the factor by which partitions of a calendar are wider than necessary
CLOSING_BYTES = 80.0  # … additional, if elements are found by their row


# --- formulas -------------------------------------------------------------------------------------


def product_distance_length(d1: float, l1: float, d2: float, l2: float) -> tuple[float, float]:
    """K eq. 22.4: each row meets the rows of the other area, for as long as both are valid."""
    return d1 * d2 / (l1 + l2), l1 * l2 / (l1 + l2)


def side_rows(d: float, life: float, expiry: float) -> float:
    """K eq. 22.18 for one side: l/d rows, and half of those that arrive between two expiries; K's
    eager expiry is at each arrival of the other side."""
    return life / d + expiry / (2 * d)


# --- the operator ---------------------------------------------------------------------------------


def join(node: Join, inputs: Sequence[Characteristics], model: Model) -> Given:
    """K eq. 22.4 with the selectivity of the condition, 22.18 to 22.23."""
    left, right = inputs
    met, output = _pairs(node, inputs, model)
    tested = met * (1 + output.retracted)
    sides = list(zip(node.areas, node.inputs, inputs, (right, left), strict=True))
    work = together(
        *(side_work(choice, side, given, len(node.keys)) for choice, side, given, _ in sides),
        candidate_work(node.areas, inputs, tested),
        tested_work(node.condition, tested),
        {Primitive.PAIR: output.elements},
    )
    rows = [area_rows(*each) for each in sides]
    size = _key_bytes(node.keys, inputs)
    for count, (choice, side, given, _) in zip(rows, sides, strict=True):
        size += count * element_bytes(choice, side, given)
    return Given(output, work, sum(rows), size)


def _pairs(
    node: Join, inputs: Sequence[Characteristics], model: Model
) -> tuple[float, Characteristics]:
    """The number of pairs with equal keys per chronon, and the output of the join."""
    left, right = inputs
    keyed = key_selectivity(node.keys, left, right)
    columns = joined_columns(node.inputs, inputs)
    for key in node.keys:
        narrow(key, columns)
    distance, length = product_distance_length(
        left.distance, left.length, right.distance, right.length
    )
    both = Characteristics(
        distance,
        length,
        max(left.granule, right.granule),
        columns,
        pair_retractions(left, right),
        written=pair_end(left, right),
        batches=left.batches + right.batches,
    )
    share = keyed
    if node.condition is not None:
        rest, columns_left = filtered(node.condition, both, model)
        share, both = keyed * rest, replace(both, columns=columns_left)
    output = both.with_rate(
        share / distance,
        different=left.variety * right.variety * share,
        clumps=pair_clumps(node, inputs, share),
    )
    return keyed / distance, output


def _key_bytes(keys: Sequence[JoinKey], inputs: Sequence[Characteristics]) -> float:
    """Both areas use the same codes for keys."""
    if not keys:
        return 0.0
    sides = ([key.left for key in keys], [key.right for key in keys])
    known = (
        occupied(product(facts_of_value(part, input).distinct for part in side), input.present)
        for side, input in zip(sides, inputs, strict=True)
    )
    return KEY_BYTES * max(known)


def key_selectivity(
    keys: Sequence[JoinKey], left: Characteristics, right: Characteristics
) -> float:
    """The share of all pairs whose keys are equal."""
    return product(
        equality(facts_of_value(key.left, left), facts_of_value(key.right, right)) for key in keys
    )


def narrow(key: JoinKey, columns: dict[Key, ColumnFacts]) -> None:
    """Equal columns have the values that both sides have, and one determines the other."""
    sides = [side.key for side in (key.left, key.right) if isinstance(side, Column)]
    least = min((columns[side].distinct for side in sides), default=1.0)
    for side in sides:
        columns[side] = replace(columns[side], distinct=least)
    if len(sides) == 2:
        columns[sides[1]] = replace(columns[sides[1]], same_as=sides[0])


def pair_retractions(left: Characteristics, right: Characteristics) -> float:
    """The number of retractions per pair: a retracted row retracts its pairs with all rows of the
    other side. Of (l₁ + l₂)/(d₁·d₂) pairs that is l₂/(d₁·d₂) for a left side whose rows are all
    retracted, and l₁/(d₁·d₂) for such a right side."""
    both = left.length + right.length
    return (left.retracted * right.length + right.retracted * left.length) / both


def pair_clumps(node: Join, inputs: Sequence[Characteristics], share: float) -> tuple[Clump, ...]:
    """An arriving row produces all its pairs at once, m/(1 - e^(-m)) of them if there are any; its
    own columns, and those equal to them, are the same in all of them."""
    both = inputs[0].length + inputs[1].length
    sides = [side for key in node.keys for side in (key.left, key.right)]
    equal = {side.key for side in sides if isinstance(side, Column)}
    found = []
    for port, side in enumerate(node.inputs):
        other = inputs[1 - port]
        met = other.present * share
        own = frozenset(field.key for field in side.schema) | equal
        size = met / ever_there(met) if met > 1e-9 else 1.0
        found.append(Clump(other.length / both, size, own))
    return tuple(found)


def pair_end(left: Characteristics, right: Characteristics) -> float | None:
    """The distance to the end that a pair carries. If the rows of one side carry none, it is that
    of the other side: all of it for a row that just arrived, half of it for a stored row."""
    ends = [side.length if side.written is None else side.written for side in (left, right)]
    if INFINITE not in ends:
        return None
    (known,) = [end for end in ends if end < INFINITE] or [INFINITE]
    if known == INFINITE:
        return INFINITE
    own, other = (left, right) if ends[0] == known else (right, left)
    return known * (other.length + own.length / 2) / (left.length + right.length)


def keeps_order(choice: AreaChoice, side: PhysicalPlan) -> bool:
    """Whether the area of an input is a ring; other forms are taken for calendars."""
    return choice.form_for(side.pattern) == RING


def area_rows(
    choice: AreaChoice, side: PhysicalPlan, given: Characteristics, other: Characteristics
) -> float:
    """The rows of an area. Expiry occurs with a row of the other side, or with a batch without any;
    lazy expiry waits longer, and the current partition of a calendar waits for the frontier."""
    between = min(other.distance, 1 / other.batches) if other.batches else other.distance
    waits = max(between, float(choice.lazy))
    if not keeps_order(choice, side):
        waits += WIDER * given.length / choice.partitions
    return side_rows(given.distance, given.length + given.lead, waits)


def element_bytes(choice: AreaChoice, side: PhysicalPlan, given: Characteristics) -> float:
    own = RING_BYTES if keeps_order(choice, side) else CALENDAR_BYTES
    if side.pattern is Pattern.STRICT:
        own += CLOSING_BYTES
    return own + given.width


def side_work(
    choice: AreaChoice,
    side: PhysicalPlan,
    given: Characteristics,
    keys: int,
    indexes: float = 1.0,
) -> Work:
    """K eq. 22.20 and 22.23: the key of a row is coded, and the row is inserted into its area and
    leaves it; a retracted row is searched for."""
    kept = Primitive.INSERT if keeps_order(choice, side) else Primitive.SCHEDULE
    own: Work = {
        kept: given.rate * indexes,
        Primitive.RETRACT: given.rate * given.retracted * indexes,
        Primitive.STORE: given.rate * len(side.schema) * indexes,
        Primitive.PROBE: given.elements,
    }
    by_row = coded(given.elements, len(side.schema)) if side.pattern is Pattern.STRICT else {}
    return together(own, coded(given.elements, keys), by_row)


def candidate_work(
    areas: Sequence[AreaChoice], inputs: Sequence[Characteristics], met: float
) -> Work:
    """K eq. 22.21: in the chain of a key only matching rows are examined; in a loop all rows."""
    left, right = inputs
    looked = 0.0
    for choice, probing, probed in ((areas[1], left, right), (areas[0], right, left)):
        if choice.probing is Probing.LOOP:
            looked += probing.elements * probed.present
        else:
            looked += met / 2
    return {Primitive.CANDIDATE: looked}


def tested_work(condition: Expression | None, pairs: float) -> Work:
    """Conditions that are not equalities are tested on the pairs with equal keys."""
    if condition is None:
        return {}
    return {Primitive.PAIR: pairs, Primitive.EXPRESSION: pairs * parts_of(condition)}
