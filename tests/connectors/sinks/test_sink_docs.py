"""The page on sinks is true: its programs run, and print what it says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "sinks.md"

_PROGRAM = re.compile(r"^```python\n(.*?)^```\n\n```\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_programs_print_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    programs = _PROGRAM.findall(PAGE.read_text(encoding="utf-8"))
    assert len(programs) == 2
    for program, printed in programs:
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile(program, PAGE.name, "exec"), names)
        assert output.getvalue() == printed
