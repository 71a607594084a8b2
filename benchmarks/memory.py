"""Memory: the state of operators is proportional to the rows in the windows.

Keys and strings change all the time. After many windows have passed, an operator's state may take
twice the Arrow size of the rows in its windows, plus 48 bytes per row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.driving import Drive, physical
from millstream.optimizer.choice import Choices
from millstream.physical.joins.areas.forms import AreaChoice

WINDOW = 20_000  # rows
WINDOWS = 12  # how many pass before state is measured
BATCH = 1_000
EACH = 48  # bytes per row
_W = f"WINDOW(RANGE {WINDOW})"


@dataclass(frozen=True)
class Trial:
    name: str
    sql: str
    choices: Choices | None = None


TRIALS: Sequence[Trial] = (
    Trial("ring join", f"SELECT a.s, b.v FROM A {_W} a JOIN B {_W} b ON a.k = b.k"),
    Trial(
        "calendar join",
        f"SELECT a.s, b.v FROM A {_W} a JOIN B {_W} b ON a.k = b.k",
        Choices(areas=AreaChoice(calendar=True)),
    ),
    Trial("distinct", f"SELECT DISTINCT k, s FROM A {_W}"),
    Trial("difference", f"SELECT k, s FROM A {_W} EXCEPT SELECT k, s FROM B {_W}"),
    Trial(
        "anti-join",
        f"SELECT * FROM A {_W} a WHERE NOT EXISTS (SELECT 1 FROM B {_W} b WHERE b.k = a.k)",
    ),
    Trial("aggregate", f"SELECT k, COUNT(*) AS n, MAX(v) AS m FROM A {_W} GROUP BY k"),
    Trial("count window", f"SELECT s, v FROM A WINDOW(ROWS {WINDOW})"),
)


@dataclass(frozen=True)
class Measured:
    trial: Trial
    state: int  # bytes
    arrow: int  # bytes of the rows in the windows
    rows: int
    halfway: int  # bytes of state after half of the windows

    @property
    def bound(self) -> int:
        return 2 * self.arrow + EACH * self.rows

    @property
    def holds(self) -> bool:
        return self.state <= self.bound and self.state <= 1.5 * self.halfway


def streams(rows: int) -> dict[str, pa.Table]:
    """One row per instant: a key that recurs for a while, a double, a new string."""
    found = {}
    for seed, name in enumerate("AB"):
        random = np.random.default_rng(seed)
        t = np.arange(rows)
        k = t // 4 + random.integers(0, 500, rows)
        texts = pa.array([f"{name} row number {i}" for i in range(rows)])
        found[name] = pa.table({"t": t, "k": k, "v": random.random(rows), "s": texts})
    return found


def measure(trial: Trial) -> Measured:
    data = streams(WINDOW * WINDOWS)
    drive = Drive(physical(trial.sql, data, choices=trial.choices), data)
    drive.push_rows(WINDOW * WINDOWS // 2, BATCH)
    halfway = drive.nbytes
    drive.push_rows(WINDOW * WINDOWS // 2, BATCH)
    last = [data[name].slice(WINDOW * (WINDOWS - 1)) for name in drive.read]
    arrow = sum(sum(column.nbytes for column in table.columns) for table in last)
    return Measured(trial, drive.nbytes, arrow, WINDOW * len(last), halfway)


def report() -> bool:
    """Print the results; returns whether all bounds hold."""
    print(f"Memory: windows of {WINDOW:,} rows, after {WINDOWS} of them")
    print(f"{'operator':20}{'state, KiB':>12}{'bound, KiB':>12}{'ratio':>8}{'bytes/row':>11}")
    held = True
    for trial in TRIALS:
        m = measure(trial)
        held &= m.holds
        print(
            f"{trial.name:20}{m.state / 1024:>12,.0f}{m.bound / 1024:>12,.0f}"
            f"{m.state / m.bound:>8.2f}{m.state / m.rows:>11.0f}" + ("" if m.holds else "  MISSED"),
            flush=True,
        )
    return held
