"""`millstream demo`: four continuous queries over an auction house, live in the terminal.

The answers are those of EMIT CHANGES, kept as the tables that they are now. In a pipe the tables
come as lines, a few times.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import resources
from typing import TYPE_CHECKING, Any

from millstream.cli.panes import Pane, lines_of, screen_of
from millstream.cli.progress import progress
from millstream.cli.reading import UsageError
from millstream.cli.spark import in_view

if TYPE_CHECKING:
    from millstream.session import Session

SPEED = 10  # seconds of the auction house in one of ours
_LIVE = f"speed => {SPEED}, bids => 40000, auctions => 4000, people => 400"  # for 200 seconds
_LONGEST = 3600  # seconds
_REFRESH = 0.25  # seconds
_PATIENCE = 120.0  # seconds in which every query has answered once
_REPORTS = 6  # how often a pipe is told

# What is shown: a title, and the query.
QUERIES = {
    "Hot items of the last minute": """
SELECT itemID AS item, COUNT(*) AS bids, MAX(bid_price) AS best
FROM Bid WINDOW(RANGE 1 MINUTE)
GROUP BY itemID ORDER BY bids DESC LIMIT 8
EMIT CHANGES""",
    "Bidders on clocks EXCEPT on coins": """
SELECT B.bidderID AS bidder FROM Bid B WINDOW(RANGE 1 MINUTE), Item I WINDOW(RANGE 2 MINUTES)
WHERE B.itemID = I.id AND I.name LIKE '%clocks'
EXCEPT
SELECT B.bidderID FROM Bid B WINDOW(RANGE 1 MINUTE), Item I WINDOW(RANGE 2 MINUTES)
WHERE B.itemID = I.id AND I.name LIKE '%coins'
EMIT CHANGES""",
    "Average of each seller's last 10 sales": """
SELECT seller, AVG(price) AS average, COUNT(*) AS auctions
FROM (SELECT O.sellerID AS seller, C.closing_price AS price
      FROM ClosedAuction C, OpenAuction O WINDOW(RANGE 1 MINUTE)
      WHERE O.itemID = C.itemID AND C.buyerID IS NOT NULL) Sale
     WINDOW(PARTITION BY seller ROWS 10)
GROUP BY seller
EMIT CHANGES""",
    "Auctions closed within 5 seconds": """
SELECT item, seller, price
FROM (SELECT O.itemID AS item, O.sellerID AS seller, C.closing_price AS price
      FROM OpenAuction O WINDOW(RANGE 5 SECONDS), ClosedAuction C
      WHERE O.itemID = C.itemID) Short
     WINDOW(RANGE 1 MINUTE)
EMIT CHANGES""",
}

_NEXT = """
Each table was the answer of a plain SQL query at that instant. Go on with

  millstream shell {streams}
                            ask the auction house yourself: \\watch SELECT …
  millstream run FILE.sql   run a file of statements
  millstream --help         all commands
"""


def demo(engine: str, seconds: float) -> None:
    if not 1 <= seconds <= _LONGEST:
        raise UsageError(f"--seconds is a number from 1 to {_LONGEST}")
    preparing = threading.Thread(target=_compile, daemon=True)
    preparing.start()
    session = _session(engine, seconds)
    with progress(lambda: "operators are compiled, once"):
        preparing.join()
    with _started(session) as panes, suppress(KeyboardInterrupt):
        _show(panes, engine, seconds)
    print(_NEXT.format(streams=resources.files("millstream.cli") / "auction.sql"))


def _session(engine: str, seconds: float) -> Session:
    from millstream.session import Session
    from millstream.spark.starting import local_spark

    # Each core has processes of its own for every query: two are enough for this little.
    spark = in_view(lambda: local_spark("local[2, 4]")) if engine == "spark" else None
    session = Session(engine, spark=spark)
    bids = int((seconds + _PATIENCE) * 200)
    sizes = f"bids => {bids}, auctions => {bids // 10}, people => {bids // 100}"
    session.sql(_streams(f"speed => {SPEED}, {sizes}"))
    return session


def _streams(options: str) -> str:
    text = (resources.files("millstream.cli") / "auction.sql").read_text(encoding="utf-8")
    assert _LIVE in text
    return text.replace(_LIVE, options)


def _compile() -> None:
    """Run the queries over a few rows: what is compiled is kept on the disk for all processes."""
    from millstream.session import Session

    session = Session("local")
    session.sql(_streams("bids => 200"))
    for text in QUERIES.values():
        session.sql(text).run()


@contextmanager
def _started(session: Session) -> Iterator[list[Pane]]:
    panes: list[Pane] = []
    try:
        for title, text in QUERIES.items():
            panes.append(Pane.started(title, session.sql(text)))
        yield panes
    finally:
        for pane in panes:
            pane.running.stop(0)
        for pane in panes:
            pane.running.stop()


def _show(panes: list[Pane], engine: str, seconds: float) -> None:
    if sys.stdout.isatty():
        _draw(panes, engine, seconds)
        return
    with progress(lambda: "the queries begin"):
        _await_answers(panes)
    for report in range(_REPORTS):
        _sleep(panes, seconds / _REPORTS)
        now = seconds * (report + 1) / _REPORTS
        print("\n".join(lines_of(panes, f"{engine}, {now:.0f} s")), flush=True)


def _await_answers(panes: list[Pane]) -> None:
    over = time.monotonic() + _PATIENCE
    while time.monotonic() < over and not all(pane.has_answered for pane in panes):
        _sleep(panes, 0.1)


def _sleep(panes: list[Pane], seconds: float) -> None:
    """As long as no query fails."""
    over = time.monotonic() + seconds
    while (left := over - time.monotonic()) > 0:
        for pane in panes:
            if pane.running.exception is not None:
                raise pane.running.exception
        time.sleep(min(left, 0.1))


def _draw(panes: list[Pane], engine: str, seconds: float) -> None:
    """The time begins when every query has answered once."""
    from rich.console import Console
    from rich.live import Live

    console = Console()
    begun: float | None = None
    patience = time.monotonic() + _PATIENCE
    options: dict[str, Any] = {"console": console, "auto_refresh": False, "screen": True}
    with Live(**options) as live:
        while begun is None or time.monotonic() < begun + seconds:
            now = time.monotonic()
            if begun is None and (now > patience or all(pane.has_answered for pane in panes)):
                begun = now
            state = "begins" if begun is None else f"{begun + seconds - now:.0f} s left"
            head = f"millstream demo on {engine} · {SPEED} × the clock · {state} · Ctrl-C ends"
            live.update(screen_of(panes, head, console.height), refresh=True)
            _sleep(panes, _REFRESH)
    console.print(screen_of(panes, f"millstream demo on {engine}", 40))
