"""Processing costs: how often an operator does what, and what that costs on this machine.

K gives each primitive operation a cost variable (tables 22.1 to 22.7) and counts how often it is
done in a unit of time. Ours are those of vectorized operators: what a row costs is small, what a
batch costs whatever is in it (`CALL`) is not. `millstream calibrate` measures them on the machine;
the defaults below were measured by it too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from millstream.errors import QueryError


class Primitive(Enum):
    """What costs are counted in; the letter is K's cost variable."""

    CALL = "call"  # an operator takes a batch, whatever is in it
    EXPRESSION = "expression"  # a part of an expression over one row: C_P, C_F
    PASS = "pass"  # an element is passed on or its times are changed: C_S, C_O
    KEY = "key"  # a value of a key becomes a code: C_H, C_G, C_A
    INSERT = "insert"  # an element is put into a ring, and leaves it: C_B + C_L + C_R
    SCHEDULE = "schedule"  # the same for a calendar
    RETRACT = "retract"  # an element of a calendar ends before its time
    PROBE = "probe"  # an element looks for partners
    CANDIDATE = "candidate"  # one that may be a partner is looked at: C_P of a probe
    PAIR = "pair"  # a pair is made: C_F + C_O
    EVENT = "event"  # a start or an end in order of time: C_Q
    STORE = "store"  # a value is stored or gathered: C_C
    ACCUMULATE = "accumulate"  # an aggregate takes a row in or out: C_M
    RESULT = "result"  # a row of a group is told from the one before: C_E
    SWING = "swing"  # a row passes a gate, or is stopped
    RANK = "rank"  # a row finds its place in an order


Work = dict[Primitive, float]  # how often, a chronon


def together(*parts: Mapping[Primitive, float]) -> Work:
    total: Work = {}
    for part in parts:
        for primitive, count in part.items():
            total[primitive] = total.get(primitive, 0.0) + count
    return total


# Nanoseconds, measured by `millstream calibrate` on the machine of `docs/decisions`.
MEASURED: Mapping[Primitive, float] = {
    Primitive.CALL: 20_000.0,
    Primitive.EXPRESSION: 3.0,
    Primitive.PASS: 2.0,
    Primitive.KEY: 15.0,
    Primitive.INSERT: 20.0,
    Primitive.SCHEDULE: 60.0,
    Primitive.RETRACT: 150.0,
    Primitive.PROBE: 10.0,
    Primitive.CANDIDATE: 3.0,
    Primitive.PAIR: 15.0,
    Primitive.EVENT: 15.0,
    Primitive.STORE: 3.0,
    Primitive.ACCUMULATE: 5.0,
    Primitive.RESULT: 20.0,
    Primitive.SWING: 30.0,
    Primitive.RANK: 2_000.0,
}


@dataclass(frozen=True)
class Constants:
    """Nanoseconds of each primitive operation."""

    nanoseconds: Mapping[Primitive, float] = field(default_factory=lambda: MEASURED)

    def cost(self, work: Mapping[Primitive, float]) -> float:
        """Nanoseconds a chronon."""
        return sum(count * self.nanoseconds[primitive] for primitive, count in work.items())

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        told = {primitive.value: round(self.nanoseconds[primitive], 3) for primitive in Primitive}
        path.write_text(json.dumps(told, indent=2) + "\n")


def calibration_file() -> Path:
    """Where `millstream calibrate` writes: in the user's folder of settings (XDG)."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "millstream" / "costs.json"


def known_constants(path: Path | None = None) -> Constants:
    """Those of this machine, where they have been measured, else the defaults."""
    path = calibration_file() if path is None else path
    try:
        told = json.loads(path.read_text())
    except FileNotFoundError:
        return Constants()
    except (OSError, ValueError) as error:
        raise _unreadable(path, str(error)) from None
    if not isinstance(told, dict):
        raise _unreadable(path, "it is not an object")
    measured = {}
    for primitive in Primitive:
        value = told.get(primitive.value, MEASURED[primitive])
        if not isinstance(value, int | float) or not 0 <= value < 1e12:
            raise _unreadable(path, f'"{primitive.value}" is {value!r}')
        measured[primitive] = float(value)
    return Constants(measured)


def _unreadable(path: Path, reason: str) -> QueryError:
    return QueryError(
        f"the measured costs in {path} cannot be read: {reason}", help="run millstream calibrate"
    )
