"""A query over bounded inputs on Spark: one job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from millstream.logical.time import INFINITY
from millstream.records import Records
from millstream.spark.job import Outcome, leaves_of, run_batch
from millstream.spark.tasks import Advance, Step, Work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def answer(
    spark: SparkSession, work: Work, inputs: Mapping[str, Records], frontier: int = INFINITY
) -> Outcome:
    """All that the plan gives over the inputs, when every source has come so far after them."""
    step = Step(dict.fromkeys(inputs, Advance(frontier)), beginning=INFINITY)
    return run_batch(spark, work, step, leaves_of(spark, work, inputs, work.places))
