"""The whole answer of a finished run as a table, in normal form and in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from secrets import randbits

import pyarrow as pa

from millstream.logical.analysis import given_anew
from millstream.logical.plan import Plan
from millstream.model.elements import Row
from millstream.model.modes import Emit
from millstream.physical.batch import Batch, merged
from millstream.physical.ordering import in_order
from millstream.runtime import answers
from millstream.runtime.normal_form import added_up, whole_answer


@dataclass(frozen=True)
class RunAnswer:
    """The answer of a run, and the rows that could not be evaluated, each with its message."""

    table: pa.Table
    errors: list[tuple[Row, str]]


@dataclass
class RandomDraws:
    """The values of nondeterministic functions for a row do not change: the reference keeps them,
    the engines draw them again from the same seed."""

    seed: int = field(default_factory=lambda: randbits(64))
    kept: dict[tuple[int, tuple[object, ...]], object] = field(default_factory=dict)


def answer_table(plan: Plan, emit: Emit, batches: Sequence[Batch], beginning: int) -> pa.Table:
    """The table of all output of a plan's operators, from the beginning of time on."""
    schema, domain = plan.schema, plan.domain
    if emit is Emit.CHANGES:
        return answers.changes_table(schema, domain, in_order(merged(batches)))
    batches = [answers.cropped(batch, beginning) for batch in batches]
    granule = given_anew(plan)
    if granule is None:
        pieces = whole_answer(batches)
    elif emit is Emit.EVERY:
        batch = in_order(answers.repeated(added_up(merged(batches)), granule))
        return answers.instants_table(schema, domain, batch)
    else:
        pieces = [answers.cut(added_up(merged(batches)), granule)]
    tables = [answers.final_table(schema, domain, batch) for batch in pieces]
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables)


def snapshot_of(plan: Plan, batch: Batch, beginning: int, instant: int) -> pa.Table:
    """The rows of an answer that are valid at one instant."""
    holds = (batch.start <= instant) & (instant < batch.end) & (beginning <= instant)
    return answers.snapshot_table(plan.schema, batch.where(holds))
