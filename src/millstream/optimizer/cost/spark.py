"""The overhead of the Spark engine besides the operators: jobs, and rows that are moved.

A started query on Spark is one job per batch. The cost of a job does not depend on its rows, but
grows with each level of fragments. The tasks of the leaf fragments read rows through the JVM and
Arrow; between fragments a row is placed by its key, encoded, shuffled and decoded; an answer goes
to the driver and to the sink. The cost of the operators is as on the local engine, with larger
batches.
"""

from __future__ import annotations

from dataclasses import replace

from millstream.optimizer.cost.estimate import EngineCost, Estimates
from millstream.optimizer.cost.work import Constants, Handling
from millstream.optimizer.statistics import Statistics, StreamStatistics
from millstream.physical.operator import PhysicalPlan
from millstream.physical.operators.source import Source
from millstream.physical.placing import Placing

BATCH_SECONDS = 1.0  # rows that arrive within it are one job, if the query has no trigger
TIMES = 2  # words of a row besides its columns: its interval


def in_jobs(known: Statistics) -> Statistics:
    """The statistics of streams with the batch size of Spark jobs."""
    if not known.domain.microseconds:
        return known  # a batch of raw time is counted in rows
    for name in known.streams:
        rows = max(known.rate(name) * BATCH_SECONDS, 1.0)
        known = known.with_stream(name, StreamStatistics(batch=rows).filled(known.stream(name)))
    return known


def on_spark(estimates: Estimates, placing: Placing, constants: Constants) -> Estimates:
    """The estimates with the overhead of the engine. All streams share the same jobs."""
    sources = [node for node, _ in estimates if isinstance(node, Source)]
    jobs = max((estimates[node].output.batches for node in sources), default=0.0)
    costs, columns = constants.spark, len(estimates.plan.schema)
    read = sum(_values(estimates, node) for node in sources)
    moved = sum(_values(estimates, each.node, TIMES) * each.copies for each in placing.exchanged)
    answered = estimates.output.elements * (columns + TIMES)
    level = costs[Handling.LEVEL] * placing.levels
    engine = (
        EngineCost("Spark jobs", jobs, jobs * (costs[Handling.JOB] + level)),
        EngineCost("values to tasks", read, read * costs[Handling.READ]),
        EngineCost("values between tasks", moved, moved * costs[Handling.EXCHANGE]),
        EngineCost("values to the driver", answered, answered * costs[Handling.ANSWER]),
    )
    return replace(estimates, engine=engine)


def _values(estimates: Estimates, node: PhysicalPlan, more: int = 0) -> float:
    """Values on an edge, per chronon."""
    return estimates[node].output.elements * (len(node.schema) + more)
