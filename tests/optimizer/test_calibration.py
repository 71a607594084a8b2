"""Constants that are measured: found again from what they explain, written and read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import millstream as ms
from millstream.api import calibration
from millstream.api.calibration import OperatorTiming, calibrate, fitted
from millstream.cli.main import run_command
from millstream.optimizer.cost import Constants, Primitive, known_constants
from millstream.optimizer.cost.work import BATCHES, PRIMITIVES, calibration_file


def test_constants_are_found_that_explain_what_was_observed() -> None:
    random = np.random.default_rng(1)
    true = Constants({p: float(random.integers(1, 100)) for p in Primitive}, dict(BATCHES))
    observations = []
    for operator in BATCHES:
        for _ in range(12):
            work = {p: float(random.integers(0, 1_000_000)) for p in Primitive}
            batches = float(random.integers(1, 100))
            took = true.cost(operator, work, batches)
            observations.append(OperatorTiming(operator, work, batches, took))
    found = fitted(observations)
    for each in observations:
        cost = found.cost(each.operator, each.work, each.batches)
        assert cost == pytest.approx(each.nanoseconds, rel=0.02)
    assert found.primitives == pytest.approx(true.primitives, rel=0.05)


def test_what_was_not_observed_keeps_its_default() -> None:
    found = fitted([OperatorTiming("Filter", {Primitive.EXPRESSION: 1000.0}, 0.0, 5000.0)])
    assert found.primitives[Primitive.EXPRESSION] == pytest.approx(5.0)
    assert found.primitives[Primitive.RANK] == PRIMITIVES[Primitive.RANK]
    assert found.batches["Join"] == BATCHES["Join"]


def test_the_command_measures_and_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(calibration, "QUERIES", calibration.QUERIES[:2])
    monkeypatch.setattr(calibration, "LOOPS", ())
    monkeypatch.setattr(calibration, "AT_ONCE", ())
    monkeypatch.setattr(calibration, "REPEATS", 1)
    assert run_command(["calibrate"]) == 0
    out, err = capsys.readouterr()
    assert err == f"written to {tmp_path}/millstream/costs.json\n"
    assert [line.split()[0] for line in out.splitlines()] == [p.value for p in Primitive] + [
        *BATCHES
    ]
    assert known_constants().batches["Source"] > 0
    assert run_command(["doctor"]) in (0, 1)
    assert f"measured ({tmp_path}/millstream/costs.json)" in capsys.readouterr().out


def test_progress_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "QUERIES", calibration.QUERIES[:2])
    monkeypatch.setattr(calibration, "LOOPS", ())
    monkeypatch.setattr(calibration, "AT_ONCE", ())
    monkeypatch.setattr(calibration, "REPEATS", 1)
    told: list[tuple[int, int]] = []
    calibrate(lambda done, all: told.append((done, all)))
    assert told == [(0, 2), (1, 2)]


def test_constants_are_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "millstream" / "costs.json"
    assert known_constants(path) == Constants()
    own = Constants(dict.fromkeys(Primitive, 2.0), dict.fromkeys(BATCHES, 7.0))
    own.write(path)
    assert known_constants(path) == own


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"primitives": {}}', '{"primitives": {"key": -1}, "batches": {}}']
)
def test_a_damaged_file_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "costs.json"
    path.write_text(text)
    with pytest.raises(ms.QueryError, match="cannot be read") as caught:
        known_constants(path)
    assert caught.value.diagnostic.help == "run millstream calibrate"


def test_the_file_is_among_the_settings_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/settings")
    assert calibration_file() == Path("/settings/millstream/costs.json")
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert calibration_file() == Path("/home/me/.config/millstream/costs.json")
