"""Accumulators: incremental aggregates over groups whose rows come and go."""

from millstream.physical.accumulators.accumulator import Accumulator, Answer
from millstream.physical.accumulators.choose import accumulator

__all__ = ["Accumulator", "Answer", "accumulator"]
