"""Views in a folder: they go on where they were, whatever was interrupted."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from bids import COLUMNS, bids

import millstream as ms
from millstream.checkpoint.files import LocalFiles
from millstream.connectors.contracts import GivenBatch
from millstream.logical.plan import Field
from millstream.model.time import RAW_TIME
from millstream.relations import live_answer as live_answer_module
from millstream.relations.live_answer import LiveAnswer, reading
from millstream.relations.view_files import ViewFiles

pytestmark = pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")

QUERY = "SELECT item, COUNT(*) AS n, SUM(price) AS s FROM Bid WINDOW(RANGE 15) GROUP BY item"


def write_csv(folder: Path, number: int, rows: list[dict[str, object]]) -> None:
    folder.mkdir(exist_ok=True)
    lines = (",".join("" if v is None else str(v) for v in row.values()) for row in rows)
    (folder / f"{number}.csv").write_text("\n".join([",".join(COLUMNS), *lines]) + "\n")


def opened(source: Path, folder: Path, retain: str) -> tuple[ms.Session, ms.View]:
    session = ms.Session(engine="local")
    columns = ", ".join(f"{name} {type}" for name, type in COLUMNS.items())
    session.sql(
        f"CREATE STREAM Bid ({columns}) SOURCE csv(:path, follow => TRUE) ORDERED BY t",
        path=str(source),
    )
    view = session.sql(
        f"CREATE MATERIALIZED VIEW v AS {QUERY} {retain} IN :folder", folder=str(folder)
    )
    return session, view


def test_it_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_answer_module, "_SMALL", 20)
    source, folder, rows = tmp_path / "bids", tmp_path / "view", bids(200, seed=3)
    asked = ms.Session(engine="local")
    asked.stream("Bid", rows, time="t", schema=COLUMNS)
    query = asked.sql(QUERY)
    for number in range(8):
        part = rows[number * 25 : (number + 1) * 25]
        write_csv(source, number, part)
        session, view = opened(source, folder, "RETAIN 60")
        last = part[-1]["t"] - 1
        view.as_of(last, timeout=60)
        for at in range(last - 59, last + 1):
            assert view.as_of(at).equals(query.snapshot(at)), (number, at)
        assert view.stop()
        again = session.sql("SELECT COUNT(*) AS n FROM HISTORY(v)").run().to_pylist()
        assert again == [{"n": view.history().num_rows}]
    files = sorted(path.name for path in (folder / "rows").iterdir())
    kinds = {name.split("-")[0] for name in files}
    assert {"history", "rows"} <= kinds <= {"changes", "history", "rows"}
    assert sum(name.startswith("rows") for name in files) == 1
    ends = [int(name.split("-", 2)[2].split(".")[0]) for name in files if name[0] == "h"]
    assert min(ends) > rows[-1]["t"] - 60  # expired history is removed


def test_files_are_plain_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    monkeypatch.setattr(live_answer_module, "_SMALL", 0)
    source, folder = tmp_path / "bids", tmp_path / "view"
    write_csv(source, 0, [{"t": t, "item": "a", "price": t, "rate": 0.5} for t in (1, 2, 30)])
    _, view = opened(source, folder, "RETAIN 100")
    view.as_of(29, timeout=60)
    view.stop()
    told = duckdb.sql(f"SELECT n, s, valid_from, valid_to FROM '{folder}/rows/history-*.parquet'")
    assert sorted(told.fetchall()) == [(1, 1, 1, 2), (1, 2, 16, 17), (2, 3, 2, 16)]


class _Crash(Exception):
    pass


class _Fragile:
    """Counts what is done to files, and fails at one of them, before or after it."""

    def __init__(self, at: int) -> None:
        self.left = at

    def wrap(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("replace", "remove"):
            monkeypatch.setattr(LocalFiles, name, self._wrapped(getattr(LocalFiles, name)))

    def _wrapped(self, real: object) -> object:
        def call(files: LocalFiles, *arguments: object) -> None:
            self.left -= 1
            if self.left == 0:
                raise _Crash
            real(files, *arguments)  # type: ignore[operator]
            self.left -= 1
            if self.left == 0:
                raise _Crash

        return call


def batches() -> list[tuple[pa.Table, GivenBatch]]:
    """Changes of rows that come and go, in batches, some of them empty."""
    draw, held, made, t = random.Random(4), [], [], 0
    for number in range(30):
        rows = []
        for _ in range(draw.choice([0, 1, 6])):
            t += draw.randrange(3)
            if held and draw.random() < 0.45:
                rows.append((held.pop(draw.randrange(len(held))), t, -1))
            else:
                rows.append((draw.randrange(9), t, 1))
                held.append(rows[-1][0])
        t += draw.choice([1, 1, 1, 30])  # also when nothing comes
        columns = (
            dict(zip(("x", "at", "change"), zip(*rows, strict=True), strict=True)) if rows else {}
        )
        table = pa.table(
            {name: pa.array(columns.get(name, []), pa.int64()) for name in ("x", "at", "change")}
        )
        made.append((_netted(table), GivenBatch(number, t)))
    return made


def _netted(table: pa.Table) -> pa.Table:
    table = (
        table.group_by(["x", "at"])
        .aggregate([("change", "sum")])
        .rename_columns(["x", "at", "change"])
    )
    return table.filter(pa.compute.not_equal(table["change"], 0))


def made(folder: Path | None, retain: int = 25) -> LiveAnswer:
    standing = LiveAnswer("v", (Field("x", pa.int64()),), RAW_TIME, retain)
    if folder is not None:
        standing.begin(ViewFiles(folder))
    return standing


@pytest.mark.parametrize("crash", range(1, 120))
def test_no_crash_loses_or_doubles_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash: int
) -> None:
    """At any operation on files, before and after it: the batch that was being given comes again,
    as it does from a checkpoint."""
    monkeypatch.setattr(live_answer_module, "_SMALL", 5)
    given, whole = batches(), made(None)
    with monkeypatch.context() as patched:
        _Fragile(crash).wrap(patched)
        standing, done = made(tmp_path), 0
        try:
            for table, batch in given:
                standing.give(table, batch)
                done += 1
        except _Crash:
            pass
    standing, everything = made(tmp_path), made(None, retain=10**6)
    assert standing.batch <= done
    for table, batch in given[: done + 1]:
        everything.give(table, batch)
    for at in range(standing.horizon, standing.frontier) if standing.batch >= 0 else ():
        assert standing.as_of(at).equals(everything.as_of(at)), at
    for table, batch in given:
        whole.give(table, batch)
        if batch.id >= done:  # also the one that may have been given
            standing.give(table, batch)
    assert standing.table().equals(whole.table())
    for at in range(whole.horizon, whole.frontier):
        assert standing.as_of(at).equals(whole.as_of(at)), at
    order = [(name, "ascending") for name in ("valid_from", "valid_to", "x")]
    assert standing.history().sort_by(order).equals(whole.history().sort_by(order))


def test_what_goes_while_it_is_read_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_answer_module, "_SMALL", 5)
    standing, given = made(tmp_path), batches()
    for table, batch in given[:12]:
        standing.give(table, batch)
    at = standing.frontier - 1
    read = standing.then(at - 10)
    for table, batch in given[12:]:
        standing.give(table, batch)
    with pytest.raises(FileNotFoundError):
        read()
    takes = iter([read, standing.then(standing.frontier - 1)])
    assert reading(lambda: next(takes)).num_rows == standing.table().num_rows
    with pytest.raises(ms.QueryError, match="the requested rows no longer exist"):
        reading(lambda: read)


def test_what_was_dropped_is_not_thought_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time advances without rows, files of history expire, and the process ends."""
    monkeypatch.setattr(live_answer_module, "_SMALL", 0)
    standing = made(tmp_path)
    rows = {"x": [1, 1, 2], "at": [1, 5, 6], "change": [1, -1, 1]}
    nothing = {name: pa.array([], pa.int64()) for name in rows}
    standing.give(pa.table(rows), GivenBatch(0, 10))
    assert standing.as_of(3).to_pylist() == [{"x": 1}]
    standing.give(pa.table(nothing), GivenBatch(1, 100))
    again = made(tmp_path)
    assert again.as_of(99).to_pylist() == [{"x": 2}]
    with pytest.raises(ms.QueryError, match='"v" is known from 75 to 99, not at 3'):
        again.as_of(3)


def test_rows_beyond_the_checkpoint_are_refused(tmp_path: Path) -> None:
    import shutil

    source, folder = tmp_path / "bids", tmp_path / "view"
    for number, t in enumerate((1, 20, 40)):
        write_csv(source, number, [{"t": t, "item": "a", "price": 1, "rate": 1.0}])
        _, view = opened(source, folder, "RETAIN 100")
        view.as_of(t - 1, timeout=60)
        view.stop()
    shutil.rmtree(folder / "checkpoint")
    with pytest.raises(
        ms.QueryError, match=r"has batch \d+ of view \"v\", but its checkpoint is at batch 0"
    ):
        opened(source, folder, "RETAIN 100")


def test_one_process_has_a_folder(tmp_path: Path) -> None:
    source, folder = tmp_path / "bids", tmp_path / "view"
    write_csv(source, 0, [{"t": 1, "item": "a", "price": 1, "rate": 1.0}])
    _, view = opened(source, folder, "")
    with pytest.raises(ms.QueryError, match="is in use by another query"):
        opened(source, folder, "")
    view.stop()
    session = ms.Session(engine="local")
    session.stream("Bid", [{"t": 1}], time="t")
    other = "CREATE MATERIALIZED VIEW w AS SELECT t FROM Bid IN :folder"
    with pytest.raises(ms.QueryError, match="belongs to another query"):
        session.sql(other, folder=str(folder))
    assert session.views == {}
