"""The peers of the benchmarks do the same work as each other, and as the definitions say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.__main__ import main
from benchmarks.answers import checksum
from benchmarks.contenders.form import Form
from benchmarks.contest import contenders, measure
from benchmarks.report import text
from benchmarks.workloads import WORKLOADS, Workload, uniform, zipf

import millstream as ms


def small(name: str, rows: int = 80) -> Workload:
    """The workload with few rows and few keys: much happens within a window."""
    workload = WORKLOADS[name](0.0001)
    make = zipf if name in ("aggregate", "doubles", "filter", "map") else uniform
    streams = {s: make(i, rows, 2, 6) for i, s in enumerate(workload.streams)}
    return replace(workload, streams=streams)


def reference_answer(workload: Workload) -> pa.Table:
    session = ms.Session(engine="reference")
    for name, stream in workload.streams.items():
        session.stream(name, stream, time="t", unit="MICROSECONDS")
    return session.sql(workload.sql).run()


@pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")
@pytest.mark.parametrize("name", WORKLOADS)
def test_every_form_gives_the_answer_of_the_definitions(name: str) -> None:
    workload = small(name)
    expected = checksum(reference_answer(workload), workload.columns)
    for contender in contenders():
        prepared = contender.prepare(workload)
        for form in contender.FORMS[name]:
            if form.exact:
                answer = contender.answer(form.run(prepared))
                assert checksum(answer, workload.columns) == expected, (contender.NAME, form.name)


def test_times_ascend_strictly_and_shares_are_beginnings() -> None:
    workload = WORKLOADS["aggregate"](0.001)
    times = workload.streams["S"]["t"].to_numpy()
    assert (np.diff(times) > 0).all()
    part = workload.share(0.1).streams["S"]
    assert part.equals(workload.streams["S"].slice(0, len(part)))


def test_batches_are_the_streams() -> None:
    workload = WORKLOADS["join3"](0.00105)
    read: dict[str, list[pa.Table]] = {name: [] for name in workload.streams}
    for name, batch in workload.batches(rows=100):
        read[name].append(batch)
    for name, stream in workload.streams.items():
        assert pa.concat_tables(read[name]).equals(stream)


# --- answers --------------------------------------------------------------------------------------


def pieces(*rows: tuple[int, int, int]) -> pa.Table:
    k, valid_from, valid_to = zip(*rows, strict=True)
    return pa.table({"k": k, "valid_from": valid_from, "valid_to": valid_to})


def test_how_time_is_cut_does_not_matter() -> None:
    whole = checksum(pieces((7, 1, 9), (7, 3, 5)), ("k",))
    assert whole == checksum(pieces((7, 3, 9), (7, 1, 3), (7, 3, 5)), ("k",))
    assert whole == checksum(pieces((7, 1, 5), (7, 3, 9)), ("k",))


@pytest.mark.parametrize("other", [(7, 1, 8), (8, 1, 9), (7, 2, 9), (7, 2, 10)])
def test_what_is_said_matters(other: tuple[int, int, int]) -> None:
    assert checksum(pieces(other), ("k",)) != checksum(pieces((7, 1, 9)), ("k",))


# --- the run --------------------------------------------------------------------------------------


class Cheat:
    NAME = "Cheat"
    SHARE = 1.0
    FORMS = {"distinct": [Form("nothing", lambda _: pieces((1, 1, 2)))]}

    def prepare(self, workload: Workload) -> Workload:
        return workload

    def answer(self, result: pa.Table) -> pa.Table:
        return result


class Absent(Cheat):
    NAME = "Absent"
    FORMS = {"distinct": []}


def test_wrong_answers_and_absent_contenders_are_told() -> None:
    workload = WORKLOADS["distinct"](0.001)
    outcome = measure(workload, [*contenders(["duckdb"]), Cheat(), Absent()], repeat=1)
    verdicts = [entry.verdict for entry in outcome.entries]
    assert verdicts[0] == "same answer"
    assert verdicts[1].startswith("WRONG")
    assert not outcome.agreed
    assert text(outcome).splitlines()[-1].split() == ["Absent", "not", "there"]


class Several(Cheat):
    FORMS = {
        "distinct": [
            Form("fastest", lambda _: pieces((1, 1, 2))),
            Form("slower", lambda _: pieces((1, 1, 2))),
            Form("plain", lambda _: pieces((1, 1, 2)), always=True),
        ]
    }


@pytest.mark.parametrize(
    ("all_forms", "shown"),
    [(False, ["fastest", "plain"]), (True, ["fastest", "slower", "plain"])],
)
def test_which_forms_are_timed(all_forms: bool, shown: list[str]) -> None:
    workload = WORKLOADS["distinct"](0.001)
    outcome = measure(workload, [Several()], repeat=1, all_forms=all_forms)
    assert [entry.form.name for entry in outcome.entries] == shown


def test_the_command_writes_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "measured.json"
    options = ["filter", "--size", "0.001", "--repeat", "1", "--contender", "Polars"]
    assert main([*options, "--json", str(file)]) == 0
    assert capsys.readouterr().out.startswith("filter: ")
    written = json.loads(file.read_text())
    entry = written["workloads"][0]["entries"][0]
    assert entry["contender"] == "Polars"
    assert entry["verdict"] == "same answer"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["jion"], 'workload "jion" does not exist; there are join, aggregate, distinct, '),
        (["--contender", "SQLite"], "there are Millstream, DuckDB, Polars, Python"),
    ],
)
def test_unknown_names(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(options)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
