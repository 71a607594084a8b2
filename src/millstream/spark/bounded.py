"""A query over bounded inputs on Spark: one job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from millstream.errors import DataError
from millstream.fragments.outcome import Outcome
from millstream.fragments.progress import Advance, Step
from millstream.fragments.reading import Frame
from millstream.fragments.tasks import LeafInput
from millstream.fragments.work import Work
from millstream.local.intake import nothing
from millstream.logical.time import INFINITY
from millstream.records import Records
from millstream.spark.job import leaves_of, run_batch
from millstream.spark.starting import for_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def answer(
    spark: SparkSession,
    work: Work,
    inputs: Mapping[str, Records],
    frames: Sequence[Frame] = (),
    frontier: int = INFINITY,
) -> Outcome:
    """All that the plan gives over the inputs, when every source has come so far after them."""
    streams = [*inputs, *(frame.reading.stream.name for frame in frames)]
    step = Step(dict.fromkeys(streams, Advance(frontier)), beginning=INFINITY)
    rows = [LeafInput(stream, records, 0) for stream, records in inputs.items()]
    rows += [LeafInput(f.reading.stream.name, nothing(f.reading.stream), 0) for f in frames]
    outcome = run_batch(work, step, leaves_of(for_batches(spark), work, rows, frames, 0))
    for intake in outcome.intakes:
        if intake.refused:
            row, message = intake.refused[0]
            raise DataError(f'stream "{intake.stream}", row {row}: {message}')
    return outcome
