"""What the Spark engine takes beside the operators: jobs, and rows that change places.

A started query on Spark is one job per batch. A job costs the same whatever is in it, more for each
level of fragments. A row is read through the JVM and Arrow by the tasks that hold the leaves of the
plan; where fragments meet it is placed by its key, encoded, shuffled and decoded; an answer goes to
the driver and to the sink. What the operators take is as on the local engine, in larger batches.
"""

from __future__ import annotations

from dataclasses import replace

from millstream.optimizer.cost.estimate import EngineCost, Estimates
from millstream.optimizer.cost.work import Constants, Handling
from millstream.optimizer.statistics import Statistics, StreamStatistics
from millstream.physical.operator import PhysicalPlan
from millstream.physical.operators.source import Source
from millstream.physical.placing import Placing

BATCH_SECONDS = 1.0  # what comes within it is one job, where the query has no trigger
TIMES = 2  # words of a row beside its columns: its interval


def in_jobs(known: Statistics) -> Statistics:
    """The statistics of streams whose rows come in batches as large as jobs are."""
    if not known.domain.microseconds:
        return known  # a batch of raw time is counted in rows
    for name in known.streams:
        rows = max(known.rate(name) * BATCH_SECONDS, 1.0)
        known = known.with_stream(name, StreamStatistics(batch=rows).filled(known.stream(name)))
    return known


def on_spark(estimates: Estimates, placing: Placing, constants: Constants) -> Estimates:
    """The estimates with what the engine takes. All streams come in the same jobs."""
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
