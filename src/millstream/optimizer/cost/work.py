"""Processing costs: the primitive operations of operators, and their cost on this machine.

K gives each primitive operation a cost variable (tables 22.1 to 22.7) and counts operations per
unit of time. Ours are those of vectorized operators: the cost per row is small, the fixed cost per
batch is not, and depends on the operator. `millstream calibrate` measures both on the machine; it
also measured the defaults below.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from millstream.model.errors import QueryError


class Primitive(Enum):
    """The primitive operations; the letter is K's cost variable."""

    VECTOR = "vector"  # an operation on a column of a batch, regardless of its rows
    EXPRESSION = "expression"  # a part of an expression over one row: C_P, C_F
    PASS = "pass"  # an element is passed on: C_O
    ROUND = "round"  # its times are rounded: C_S
    KEY = "key"  # a value of a key becomes a code: C_H, C_G, C_A
    COMBINE = "combine"  # one more value of a key
    INSERT = "insert"  # an element is inserted into a ring, and leaves it: C_B + C_L + C_R
    SCHEDULE = "schedule"  # the same for a calendar
    RETRACT = "retract"  # an element of a calendar ends before its time
    PROBE = "probe"  # an element probes for partners
    CANDIDATE = "candidate"  # a candidate partner is examined: C_P of a probe
    PAIR = "pair"  # a pair is produced: C_F + C_O
    EVENT = "event"  # a start or an end in order of time: C_Q
    STORE = "store"  # a value is stored or gathered: C_C
    ACCUMULATE = "accumulate"  # an aggregate adds or removes a row, and is evaluated: C_M, C_E
    SWING = "swing"  # a row passes a gate, or is stopped
    RANK = "rank"  # a row is inserted into an order


# Nanoseconds, measured by `millstream calibrate` on the development machine.
PRIMITIVES: Mapping[Primitive, float] = {
    Primitive.VECTOR: 2_300.0,
    Primitive.EXPRESSION: 1.6,
    Primitive.PASS: 0.092,
    Primitive.ROUND: 8.2,
    Primitive.KEY: 30.0,
    Primitive.COMBINE: 100.0,
    Primitive.INSERT: 43.0,
    Primitive.SCHEDULE: 180.0,
    Primitive.RETRACT: 170.0,
    Primitive.PROBE: 0.0,
    Primitive.CANDIDATE: 1.6,
    Primitive.PAIR: 37.0,
    Primitive.EVENT: 34.0,
    Primitive.STORE: 3.2,
    Primitive.ACCUMULATE: 40.0,
    Primitive.SWING: 53.0,
    Primitive.RANK: 13_000.0,
}
BATCHES: Mapping[str, float] = {
    "Source": 2_700.0,
    "Filter": 8_900.0,
    "Map": 2_100.0,
    "Union": 1_400.0,
    "TimeWindow": 8_800.0,
    "Granularity": 35_000.0,
    "CountWindow": 140_000.0,
    "Join": 59_000.0,
    "MultiJoin": 52_000.0,  # for each input
    "SemiJoin": 150_000.0,
    "OuterJoin": 300_000.0,
    "LookupJoin": 100_000.0,
    "Distinct": 25_000.0,
    "Pointwise": 120_000.0,
    "Aggregate": 170_000.0,
    "TopN": 78_000.0,
    "Split": 420_000.0,
    "Cut": 50_000.0,
    "Coalesce": 80_000.0,
    "Deltas": 160_000.0,
    "Changes": 66_000.0,
}


class Handling(Enum):
    """The work of the Spark engine per batch and per value."""

    JOB = "job"  # a batch, regardless of its rows
    LEVEL = "level"  # fragments after an exchange, per batch
    READ = "read"  # a task reads a value through the JVM and Arrow
    EXCHANGE = "exchange"  # a value is encoded, shuffled and decoded
    ANSWER = "answer"  # a value of the answer goes to the driver


# Nanoseconds of processor time in all processes, measured by `millstream calibrate --engine spark`.
SPARK: Mapping[Handling, float] = {
    Handling.JOB: 400e6,
    Handling.LEVEL: 470e6,
    Handling.READ: 66.0,
    Handling.EXCHANGE: 12.5,
    Handling.ANSWER: 320.0,
}

Work = dict[Primitive, float]  # how often, per chronon


def coded(elements: float, columns: int) -> Work:
    """Elements are distinguished by the values of a number of columns."""
    if not columns:
        return {}
    return {Primitive.KEY: elements, Primitive.COMBINE: elements * (columns - 1)}


def together(*parts: Mapping[Primitive, float]) -> Work:
    total: Work = {}
    for part in parts:
        for primitive, count in part.items():
            total[primitive] = total.get(primitive, 0.0) + count
    return total


@dataclass(frozen=True)
class Constants:
    """Nanoseconds per primitive operation, per batch of each kind of operator, and of the work of
    the Spark engine."""

    primitives: Mapping[Primitive, float] = field(default_factory=lambda: PRIMITIVES)
    batches: Mapping[str, float] = field(default_factory=lambda: BATCHES)
    spark: Mapping[Handling, float] = field(default_factory=lambda: SPARK)

    def cost(self, operator: str, work: Mapping[Primitive, float], batches: float) -> float:
        """Nanoseconds per chronon of an operator with this work and number of batches."""
        own = sum(count * self.primitives[primitive] for primitive, count in work.items())
        return own + batches * self.batches.get(operator, 0.0)

    def write(self, path: Path) -> None:
        told = {
            "primitives": {p.value: round(self.primitives[p], 3) for p in Primitive},
            "batches": {name: round(value) for name, value in self.batches.items()},
            "spark": {h.value: round(self.spark[h], 3) for h in Handling},
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(told, indent=2) + "\n")


def calibration_file() -> Path:
    """The file that `millstream calibrate` writes, in the user's settings folder (XDG)."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "millstream" / "costs.json"


def known_constants(path: Path | None = None) -> Constants:
    """The measured costs of this machine, or else the defaults."""
    path = calibration_file() if path is None else path
    try:
        told = json.loads(path.read_text())
        given, of_batches = told["primitives"], told["batches"]
        primitives = {p: _checked(given.get(p.value, PRIMITIVES[p])) for p in Primitive}
        batches = {n: _checked(of_batches.get(n, BATCHES[n])) for n in BATCHES}
        of_spark = told.get("spark", {})
        spark = {h: _checked(of_spark.get(h.value, SPARK[h])) for h in Handling}
    except (FileNotFoundError, NotADirectoryError):
        return Constants()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise QueryError(
            f"the measured costs in {path} cannot be read: {error}", help="run millstream calibrate"
        ) from None
    return Constants(primitives, batches, spark)


def _checked(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise ValueError(f"{value!r} is not a number of nanoseconds")
    return float(value)
