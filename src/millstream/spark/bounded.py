"""A query over bounded inputs on Spark: one job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from millstream.fragments.outcome import Outcome
from millstream.fragments.progress import Advance, Step
from millstream.fragments.tasks import LeafInput
from millstream.fragments.work import Work
from millstream.logical.time import INFINITY
from millstream.records import Records
from millstream.spark.job import leaves_of, run_batch
from millstream.spark.starting import for_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def answer(
    spark: SparkSession, work: Work, inputs: Mapping[str, Records], frontier: int = INFINITY
) -> Outcome:
    """All that the plan gives over the inputs, when every source has come so far after them."""
    step = Step(dict.fromkeys(inputs, Advance(frontier)), beginning=INFINITY)
    rows = [LeafInput(stream, records, 0) for stream, records in inputs.items()]
    return run_batch(work, step, leaves_of(for_batches(spark), work, rows))
