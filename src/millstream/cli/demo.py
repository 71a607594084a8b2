"""`millstream demo`: four continuous queries over an auction house, live in the terminal.

The panes show the current answers, maintained from EMIT CHANGES. In a pipe they are printed as
lines, a few times.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from millstream.cli.panes import Pane, least_height, lines_of, screen_of
from millstream.cli.progress import progress
from millstream.cli.reading import UsageError
from millstream.model.modes import EngineName

if TYPE_CHECKING:
    from millstream.api.session import Session

T = TypeVar("T")

SPEED = 10  # seconds of the auction house per second of real time
_LIVE = f"speed => {SPEED}, bids => 40000, auctions => 4000, people => 400"  # for 200 seconds
_LONGEST = 3600  # seconds
_TURN = 5  # seconds until the next panes are shown, if there is no room for all
_PATIENCE = 120.0  # seconds within which every query has answered once
_REPORTS = 6  # the number of reports in a pipe

# The panes: title and query.
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
    "Average of sellers' last 10 sales": """
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
Each table was the answer of a plain SQL query at that instant. Continue with

  {program} shell {streams}
      to query the auction house yourself: \\watch SELECT …
  {program} run FILE.sql
      to run a file of statements
  {program} --help
      for all commands
"""


def demo(engine: EngineName, seconds: float) -> None:
    """The clock starts when every query has answered once."""
    if not 1 <= seconds <= _LONGEST:
        raise UsageError(f"--seconds is a number from 1 to {_LONGEST}")
    panes = [Pane(title, text) for title, text in QUERIES.items()]
    show = _show if sys.stdout.isatty() else _report
    show(panes, engine, seconds)
    streams = _near(Path(__file__).with_name("auction.sql"))
    print(_NEXT.format(program=_program(), streams=streams))


class Stage:
    """The current stage, and the elapsed or remaining time."""

    def __init__(self) -> None:
        self.enter("begins")

    def enter(self, what: str, seconds: float = 0.0) -> None:
        self._what, self._seconds, self._since = what, seconds, time.monotonic()

    def __str__(self) -> str:
        past = time.monotonic() - self._since
        if self._seconds:
            return f"{max(self._seconds - past, 0):.0f} s {self._what}"
        return f"{self._what} ({past:.0f} s)" if past >= 1 else self._what


# --- the queries ----------------------------------------------------------------------------------


@contextmanager
def _started(panes: list[Pane], engine: EngineName, seconds: float, stage: Stage) -> Iterator[None]:
    """The running queries; Ctrl-C ends the block."""
    compiled = _aside(_compile)
    session = _aside(lambda: _session(engine, seconds, stage)).result()
    stage.enter("compiling operators (once)")
    compiled.result()
    stage.enter("starting the queries")
    with ExitStack() as running:
        for pane in panes:
            pane.start(session)
            running.callback(pane.running.stop)
        with suppress(KeyboardInterrupt):
            yield
        stage.enter("stopping the queries")
        for pane in panes:
            pane.running.stop(0)


def _aside(work: Callable[[], T]) -> Future[T]:
    """Run in another thread: Ctrl-C during an import can leave it locked."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except Exception as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def _session(engine: EngineName, seconds: float, stage: Stage) -> Session:
    from millstream.api.session import Session

    spark = None
    if engine is EngineName.SPARK:
        from millstream.cli.spark import started_quietly
        from millstream.spark.starting import local_spark

        stage.enter("Spark starts")
        # Each core has processes of its own for every query: two are enough for so little data.
        spark = started_quietly(lambda: local_spark("local[2, 4]"))
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
    """Run the queries over a few rows: compiled code is cached on disk for all processes."""
    from millstream.api.session import Session

    session = Session("local")
    session.sql(_streams("bids => 200"))
    for text in QUERIES.values():
        session.sql(text).run()


def _await_answers(panes: list[Pane]) -> None:
    over = time.monotonic() + _PATIENCE
    while time.monotonic() < over and not all(pane.has_answered for pane in panes):
        _sleep(panes, 0.1)


def _sleep(panes: list[Pane], seconds: float) -> None:
    """Wait as long as no query fails."""
    over = time.monotonic() + seconds
    while (left := over - time.monotonic()) > 0:
        for pane in panes:
            if pane.running.exception is not None:
                raise pane.running.exception
        time.sleep(min(left, 0.1))


# --- what is shown --------------------------------------------------------------------------------


def _show(panes: list[Pane], engine: EngineName, seconds: float) -> None:
    """Draw all panes on a terminal; while Spark starts, they show the queries."""
    from rich.console import Console, Group
    from rich.live import Live

    console = Console()
    stage = Stage()

    def screen() -> Group:
        head = f"millstream demo on {engine} · {stage} · Ctrl-C ends · {SPEED} × the clock"
        return screen_of(panes, head, *console.size, turn=int(time.monotonic()) // _TURN)

    with (
        Live(get_renderable=screen, console=console, screen=True, redirect_stderr=False),
        _started(panes, engine, seconds, stage),
    ):
        _await_answers(panes)
        stage.enter("left", seconds)
        _sleep(panes, seconds)
    height = max(console.height - _NEXT.count("\n"), least_height(len(panes), console.width))
    console.print(screen_of(panes, f"millstream demo on {engine}", console.width, height))


def _report(panes: list[Pane], engine: EngineName, seconds: float) -> None:
    """Print lines to a pipe."""
    stage = Stage()
    with ExitStack() as running:
        with progress(lambda: str(stage)):
            running.enter_context(_started(panes, engine, seconds, stage))
            _await_answers(panes)
        for report in range(_REPORTS):
            _sleep(panes, seconds / _REPORTS)
            now = seconds * (report + 1) / _REPORTS
            print("\n".join(lines_of(panes, f"{engine}, {now:.0f} s")), flush=True)


def _program() -> str:
    """The command to call this program: that of a virtual environment may not be on the PATH."""
    own = Path(sys.executable).with_name("millstream")
    if shutil.which("millstream") == str(own) or not own.exists():
        return "millstream"
    return _near(own)


def _near(path: Path) -> str:
    return min(str(path), os.path.relpath(path), key=len)
