"""`millstream demo`: its screen, its lines in a pipe, and how it ends."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pyarrow as pa
import pytest

import millstream as ms
from cli.statements import command
from cli.terminal import terminal
from millstream.cli.demo import QUERIES
from millstream.cli.live import CurrentTable
from millstream.cli.main import run_command

LOCAL = ("demo", "--engine", "local", "--seconds")
HEALTH = r"[\d,]+ rows/s · frontier \d\d:\d\d:\d\d · state [\d,]+ KiB · batch [\d,]+ ms"


def test_the_screen(tmp_path: Path) -> None:
    with terminal(*LOCAL, "4", home=tmp_path, size=(50, 160)) as screen:
        screen.expect("millstream demo on local · 10 × the clock · 3 s left · Ctrl-C ends")
        screen.expect("Go on with")
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
        screen.expect("Go on with")
        assert screen.end() == 0
        assert "Traceback" not in screen.text


def test_lines_in_a_pipe(tmp_path: Path) -> None:
    done = command(*LOCAL, "6", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    assert "\x1b" not in text
    lines = text.splitlines()
    assert [line for line in lines if line.startswith("--")][-1] == "-- local, 6 s"
    assert len([line for line in lines if re.search(HEALTH, line)]) == 24
    assert any(re.fullmatch(r"  item=\d+ bids=\d+ best=[\d,.]+", line) for line in lines)


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


@pytest.mark.xdist_group("spark")
@pytest.mark.skipif(
    "MILLSTREAM_DEMO" not in os.environ,
    reason="half a minute on an idle machine; MILLSTREAM_DEMO=1 runs it",
)
def test_on_spark(capsys: pytest.CaptureFixture[str]) -> None:
    """All four answer; which rows there are depends on the clock."""
    assert run_command(["demo", "--seconds", "1"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("-- spark, 1 s") >= 1
    assert all(title in out for title in QUERIES)
