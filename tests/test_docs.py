"""The documents are true: what they show runs, and prints what they say."""

from __future__ import annotations

import dataclasses
import re
import runpy
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from docs.document import DOCUMENTS, ROOT, blocks_of, name_of, write_anew
from docs.player import Player
from docs.tables import answer, lines_of
from millstream.logical import aggregates
from millstream.logical.functions import registry as functions
from millstream.model.metrics import OperatorMetrics, Progress, SourceMetrics

# What runs on Spark too, or at all, shares the process that has it.
ENGINES = {
    "README.md": ("local", "reference", "spark"),
    "docs/language": ("local", "reference"),
    "docs/spark.md": ("spark",),
}
ON_SPARK = {"docs/tutorial.md"}

#: How many blocks people alone can run, and why; a document that is not here has none.
NOT_RUN = {
    "docs/sources.md": ["it needs a Kafka server."],
    "docs/spark.md": ["it needs a cluster."] * 3,
    "docs/tables-elsewhere.md": ["it needs a PostgreSQL server."],
}

#: Blocks that are no programs of ours: those of other systems, a grammar.
TEXTS = {"docs/comparison.md": 4, "docs/language.md": 1}


def _cases() -> list[object]:
    found = []
    for document in DOCUMENTS:
        name = name_of(document)
        for engine in ENGINES.get(name) or ENGINES.get(name_of(document.parent)) or ("local",):
            spark = name in ON_SPARK or engine == "spark"
            marks = [pytest.mark.xdist_group("spark")] if spark else []
            found.append(pytest.param(document, engine, marks=marks, id=f"{name}-{engine}"))
    return found


@pytest.mark.parametrize(("document", "engine"), _cases())
def test_it_prints_what_it_says(
    document: Path,
    engine: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.setenv("MILLSTREAM_ENGINE", engine)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # as in an activated environment
    monkeypatch.chdir(tmp_path)
    player = Player()
    anew: dict[int, str] = {}
    try:
        for block in blocks_of(document):
            texts = player.play(block)
            own = {block.line: block.text}
            if block.output is not None:
                own[block.output.line] = block.output.text
            if request.config.getoption("--accept"):
                anew |= {line: text for line, text in texts.items() if text != own[line]}
            else:
                assert texts == {line: own[line] for line in texts}, block.where
    finally:
        player.end()
    if anew:
        write_anew(document, anew)


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_what_is_not_run_is_told(document: Path) -> None:
    blocks = blocks_of(document)
    reasons = [block.not_run for block in blocks if block.not_run is not None]
    assert reasons == NOT_RUN.get(name_of(document), [])
    texts = [block for block in blocks if block.language == "text"]
    assert len(texts) == TEXTS.get(name_of(document), 0)
    tokens = MarkdownIt().parse(document.read_text(encoding="utf-8"))
    assert not [token.map for token in tokens if token.type == "code_block"], "indented code"


def test_programs_that_are_files_are_run() -> None:
    """A file of Python or of statements that no command names would be shown in vain."""
    for document in DOCUMENTS:
        blocks = blocks_of(document)
        commands = "".join(block.text for block in blocks if block.language == "console")
        files = [block.file for block in blocks if block.file is not None]
        programs = [file for file in files if file.endswith((".py", ".sql"))]
        assert [file for file in programs if file not in commands] == [], document.name


def test_all_metrics_are_told_of() -> None:
    told = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    told = told[told.index("## What to watch") : told.index("## After a crash")]
    names = {
        field.name
        for kind in (Progress, SourceMetrics, OperatorMetrics)
        for field in dataclasses.fields(kind)
    }
    missing = {name for name in names if not re.search(rf"\b{name}\b", told)}
    assert missing == set()


# --- the tables of functions ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "names"),
    [("expressions", functions.names()), ("aggregates", aggregates.names())],
    ids=["functions", "aggregates"],
)
def test_all_functions_are_there_and_give_what_is_said(
    page: str, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    document = ROOT / "docs" / "language" / f"{page}.md"
    player = Player()
    for block in blocks_of(document):
        player.play(block)
    told: set[str] = set()
    wrong = []
    for line in lines_of(document):
        given, called = answer(player.session, line)
        told |= called
        if line.gives is not None and given != line.gives:
            wrong.append((line.text, line.gives, given))
    assert wrong == []
    assert sorted(set(names) - told) == []


# --- pictures -------------------------------------------------------------------------------------


def test_pictures_are_what_the_system_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """`python docs/pictures/draw.py` redraws them."""
    folder = ROOT / "docs" / "pictures"
    monkeypatch.syspath_prepend(folder)
    drawn = runpy.run_path(str(folder / "draw.py"))["PICTURES"]
    assert {path.stem for path in folder.glob("*.svg")} == set(drawn)
    for name, draw in drawn.items():
        assert (folder / f"{name}.svg").read_text(encoding="utf-8") == draw(), name
