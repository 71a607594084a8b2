"""`millstream demo`: its screen, its lines in a pipe, and how it ends."""

from __future__ import annotations

import contextlib
import io
import re
import time
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from rich.console import Console

import millstream as ms
from cli.statements import command
from cli.terminal import terminal
from millstream.cli.demo import QUERIES
from millstream.cli.live import CurrentTable
from millstream.cli.main import run_command
from millstream.cli.panes import Pane, screen_of

LOCAL = ("demo", "--engine", "local", "--seconds")
HEALTH = r"[\d,]+ rows/s · frontier \d\d:\d\d:\d\d · state [\d,]+ KiB · batch [\d,]+ ms"


def test_the_screen(tmp_path: Path) -> None:
    with terminal(*LOCAL, "4", home=tmp_path, size=(50, 160)) as screen:
        screen.expect("SELECT itemID AS item, COUNT")
        screen.expect("millstream demo on local · 3 s left · Ctrl-C ends · 10 × the clock")
        screen.expect("Continue with")
        assert screen.end() == 0
        last = screen.text.rpartition("millstream demo on local")[2]
    for title in QUERIES:
        assert title in last
    assert len(re.findall(HEALTH, last)) == 4
    assert re.search(r"item +bids +best", last)
    assert re.search(r"seller +average +auctions", last)
    assert "Traceback" not in last


def test_ctrl_c_ends_it(tmp_path: Path) -> None:
    with terminal(*LOCAL, "60", home=tmp_path, size=(24, 80)) as screen:
        screen.expect(r"\d+ s left")
        screen.interrupt()
        screen.expect("Continue with")
        assert screen.end() == 0
        assert "Traceback" not in screen.text


def test_a_closed_terminal(tmp_path: Path) -> None:
    with terminal(*LOCAL, "60", home=tmp_path, size=(24, 80)) as screen:
        screen.expect(r"\d+ s left")
        screen.hang_up()
        assert screen.process.wait(300) in (0, 143)


def test_lines_in_a_pipe(tmp_path: Path) -> None:
    done = command(*LOCAL, "6", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    assert "\x1b" not in text
    lines = text.splitlines()
    assert [line for line in lines if line.startswith("--")][-1] == "-- local, 6 s"
    assert len([line for line in lines if re.search(HEALTH, line)]) == 24
    assert any(re.fullmatch(r"  item=\d+ bids=\d+ best=[\d,.]+", line) for line in lines)
    (shell,) = [line.split() for line in lines if " shell " in line]
    told = command("version", folder=tmp_path, program=shell[0])
    assert told.returncode == 0, "what it says can be typed"
    assert (tmp_path / shell[2]).exists()


@pytest.mark.parametrize("seconds", ["0", "nan", "soon"])
def test_a_time_that_is_none(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["demo", "--seconds", seconds]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")


def test_wrong_usage(tmp_path: Path) -> None:
    done = command("demo", "--engine", "reference", folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: invalid value for '--engine'")


def test_the_current_table_follows_the_query() -> None:
    """In order of ORDER BY, and what went is gone."""
    session = ms.Session()
    session.stream("S", [{"t": 1, "k": "a"}, {"t": 2, "k": "b"}, {"t": 2, "k": "b"}], time="t")
    query = session.sql(
        "SELECT k, COUNT(*) AS n FROM S WINDOW(RANGE 10) GROUP BY k ORDER BY n DESC LIMIT 2 "
        "EMIT CHANGES"
    )
    changes = query.run()
    current = CurrentTable.of(query)
    current.apply(changes.filter(pa.compute.less(changes["at"], 5)))
    assert current.rows() == [("b", 2), ("a", 1)]
    current.apply(changes.filter(pa.compute.greater_equal(changes["at"], 5)))
    assert current.rows() == []


# --- the screen by its size -----------------------------------------------------------------------


class Still(Pane):
    """A pane that has answered, and does so no more."""

    def __init__(self, title: str, rows: list[tuple[object, ...]]) -> None:
        super().__init__(title, "")
        self.has_answered = True
        self.query = SimpleNamespace(schema=pa.schema([("item", pa.string()), ("n", pa.int64())]))  # type: ignore[assignment]
        self._rows = rows

    def rows(self) -> list[tuple[object, ...]]:
        return self._rows

    def health(self) -> tuple[str, str]:
        return "246 rows/s · frontier 00:00:47", "state 309 KiB · batch 3 ms"


STILL: list[Pane] = [
    Still("Many", [(f"item {n}", n) for n in range(50)]),
    Still("Few", [("clock", 1_000_000), ("chair", 2)]),
    Still("None", []),
    Pane("Not yet", "SELECT something that is longer than the pane is wide\nFROM Bid"),
]


def drawn(width: int, height: int, turn: int = 0) -> list[str]:
    console = Console(width=width, height=height, file=io.StringIO(), force_terminal=False)
    console.print(screen_of(STILL, "head", width, height, turn))
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined, no-any-return]


def test_a_usual_screen() -> None:
    assert drawn(80, 24) == [
        "head",
        "╭─ Many ───────────────────────────────╮╭─ Few ────────────────────────────────╮",
        "│ 246 rows/s · frontier 00:00:47       ││ 246 rows/s · frontier 00:00:47       │",
        "│ state 309 KiB · batch 3 ms           ││ state 309 KiB · batch 3 ms           │",
        "│ item    n                            ││ item         n                       │",
        "│ item 0  0                            ││ clock  1000000                       │",
        "│ item 1  1                            ││ chair        2                       │",
        "│ item 2  2                            ││                                      │",
        "│ item 3  3                            ││                                      │",
        "│ item 4  4                            ││                                      │",
        "│ … and 45 more                        ││                                      │",
        "╰──────────────────────────────────────╯╰──────────────────────────────────────╯",
        "╭─ None ───────────────────────────────╮╭─ Not yet ────────────────────────────╮",
        "│ 246 rows/s · frontier 00:00:47       ││ SELECT something that is longer tha… │",
        "│ state 309 KiB · batch 3 ms           ││ FROM Bid                             │",
        "│ no rows now                          ││                                      │",
        *["│                                      ││                                      │"] * 6,
        "╰──────────────────────────────────────╯╰──────────────────────────────────────╯",
    ]


def test_on_a_small_screen_they_take_turns() -> None:
    titles = [drawn(40, 10, turn)[1].split()[1] for turn in range(6)]
    assert titles == ["Many", "Few", "None", "Not", "Many", "Few"]
    assert [line.split()[1] for line in drawn(40, 17) if "╭" in line] == ["Many", "Few"]


@pytest.mark.parametrize("width", [20, 40, 71, 72, 80, 120, 200])
@pytest.mark.parametrize("height", [5, 10, 17, 24, 50])
def test_it_fits(width: int, height: int) -> None:
    lines = drawn(width, height)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width


# --- on Spark -------------------------------------------------------------------------------------


@pytest.mark.xdist_group("spark")
def test_the_screen_on_spark(tmp_path: Path) -> None:
    """What is asked while Spark starts, then what all four answer; nothing else, nothing left."""
    with terminal("demo", "--seconds", "60", home=tmp_path, size=(24, 80)) as screen:
        screen.expect("millstream demo on spark · Spark starts")
        screen.expect("SELECT itemID AS item, COUNT")
        screen.expect(r"\d+ s left · Ctrl-C ends", timeout=600)
        screen.interrupt()
        shown = screen.expect("Continue with", timeout=600)
        assert screen.end() == 0
        assert not re.search("WARN|ERROR|Exception|Traceback|java", screen.text)
        assert_all_end(tmp_path)
    last = shown.rpartition("millstream demo on spark")[2]
    assert all(title in last for title in QUERIES)
    assert len(re.findall(r"[\d,]+ rows/s · frontier \d\d:\d\d:\d\d", last)) == 4


def assert_all_end(home: Path) -> None:
    """What a program has started ends with it, Java a moment later."""
    until = time.monotonic() + 60
    while left := at_home(home):
        assert time.monotonic() < until, left
        time.sleep(0.2)


def at_home(home: Path) -> list[str]:
    """The programs whose home this is."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            if f"HOME={home}\0".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " "))
    return found


@pytest.mark.xdist_group("spark")
def test_ctrl_c_while_spark_starts(tmp_path: Path) -> None:
    with terminal("demo", home=tmp_path, size=(24, 80)) as screen:
        screen.expect(r"Spark starts \(\d s\)")
        screen.interrupt()
        assert screen.end() == 130
        assert "Traceback" not in screen.text
        assert_all_end(tmp_path)
