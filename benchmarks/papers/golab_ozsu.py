"""The five queries of G5 (Golab & Özsu 2005, §6), and data with results of the same sizes.

G5 ran on a trace of connections between a laboratory and the world, cut into links by destination;
the trace is not available. The data here has the properties given in §6, for a window of w time
units:

- one row per unit on each link; windows of 2,000 to 200,000 units;
- query 1: about w results at a time where both rows are ftp, ten times as many where both are
  telnet;
- query 2: w / 100 sources, so 2,000 in the largest window, and ten times as many pairs of source
  and destination;
- query 3: about 40 % of the results are retracted before they expire.

The construction: sources are uniform, and a quarter of those of every link but the first are the
link's own, never seen on another link. A share p of the rows of a protocol then makes (p·w)² · ¾ /
(w / 100) = 75·p²·w results.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

WINDOWS = (2_000, 5_000, 20_000, 50_000, 200_000)
LINKS = ("Link1", "Link2", "Link3")
LAZY_EXPIRY = 0.05  # of the window
PARTITIONS = (10, 50)

PROTOCOLS = ("ftp", "telnet", "http", "smtp")
SHARES = (75**-0.5, 7.5**-0.5, 0.3)  # of the first three; the rest is the fourth's
OWN = 0.25

COLUMNS = "ts BIGINT, duration DOUBLE, protocol STRING, payload INT, src INT, dst INT"


def links(window: int, windows: float = 4.0, seed: int = 1) -> dict[str, pa.Table]:
    """The three links, as long as `windows` windows."""
    return {
        name: _link(number, window, int(window * windows), seed)
        for number, name in enumerate(LINKS)
    }


def _link(number: int, window: int, rows: int, seed: int) -> pa.Table:
    random = np.random.default_rng([seed, number])
    sources = max(4, window // 100)
    source = random.integers(0, sources, rows)
    if number > 0:
        own = source < OWN * sources
        source = np.where(own, source + number * sources, source)
    protocol = np.searchsorted(np.cumsum(SHARES), random.random(rows), "right")
    columns = {
        "ts": np.arange(rows),
        "duration": random.exponential(30.0, rows),
        "protocol": pa.array(PROTOCOLS).take(pa.array(protocol)),
        "payload": random.integers(40, 1_500, rows).astype(np.int32),
        "src": source.astype(np.int32),
        "dst": (source * 10 + random.integers(0, 10, rows)).astype(np.int32),
    }
    return pa.table(columns)


def declarations(source: str = "memory") -> str:
    """CREATE STREAM for each link; time is counted in raw units."""
    return "\n".join(
        f"CREATE STREAM {name} ({COLUMNS}) SOURCE {source}('{name}') ORDERED BY ts;"
        for name in LINKS
    )


def queries(window: int) -> Mapping[str, str]:
    """The queries over windows of `window` units, with the selections below the joins as in figures
    6 and 8; query 5 in both plans of figure 6."""
    one, two, three = (f"{name} WINDOW(RANGE {window})" for name in LINKS)
    ftp = f"(SELECT src FROM {three} WHERE protocol = 'ftp')"
    return {
        "1 ftp": _join(one, two, "ftp"),
        "1 telnet": _join(one, two, "telnet"),
        "2 sources": f"SELECT DISTINCT src FROM {one}",
        "2 pairs": f"SELECT DISTINCT src, dst FROM {one}",
        "3": f"SELECT src FROM {one} EXCEPT ALL SELECT src FROM {two}",
        "4": f"""SELECT a.src FROM (SELECT DISTINCT src FROM {one}) a
JOIN (SELECT DISTINCT src FROM {two}) b ON a.src = b.src""",
        "5 negation below": f"""SELECT n.src
FROM (SELECT src FROM {one} EXCEPT ALL SELECT src FROM {two}) n JOIN {ftp} c ON n.src = c.src""",
        "5 negation above": f"""SELECT a.src FROM {one} a JOIN {ftp} c ON a.src = c.src
EXCEPT ALL
SELECT b.src FROM {two} b JOIN {ftp} d ON b.src = d.src""",
    }


def _join(one: str, two: str, protocol: str) -> str:
    sides = [f"(SELECT * FROM {link} WHERE protocol = '{protocol}')" for link in (one, two)]
    return f"""SELECT a.src, a.dst AS dst1, a.payload AS size1, b.dst AS dst2, b.payload AS size2
FROM {sides[0]} a JOIN {sides[1]} b ON a.src = b.src"""
