"""Streams read from files: `SOURCE parquet('folder')`, `csv('…')`, `json('…')`.

    CREATE STREAM Bid (item STRING, price BIGINT, ts TIMESTAMP)
      SOURCE csv('bids', delimiter => ';', follow => true) ORDERED BY ts DELAY 5 SECONDS;

| option      | for  | means                                                            |
| ----------- | ---- | ---------------------------------------------------------------- |
| `path`      | all  | a file, a folder or a pattern; may be the first value             |
| `follow`    | all  | whether to wait for new files at the end; default: no             |
| `poll`      | all  | how often to look for new files; default: '1 second'              |
| `header`    | csv  | whether the first line has the column names; default: yes         |
| `delimiter` | csv  | the character between values; default: ','                        |
| `null`      | csv  | a string that means NULL, in addition to the empty value          |
| `max_line`  | csv, json | longer lines are bad rows; default: 16777216 bytes           |

Files are read in order of modification time, then name, each from beginning to end. A file counts
as complete once it has its final name.
"""

from __future__ import annotations

import codecs
import csv
import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from millstream.connectors.arguments import Arguments
from millstream.connectors.csv_rows import (
    CsvColumns,
    CsvFormat,
    csv_blocks,
    csv_rows,
    split_header,
)
from millstream.connectors.intake.moments import from_text
from millstream.connectors.json_rows import JsonLines
from millstream.connectors.lines import BLOCK_BYTES, LONGEST, Dropped, cut_lines
from millstream.connectors.listing import DataFile, is_pattern, listed_files
from millstream.connectors.parquet_rows import opened, parquet_rows
from millstream.connectors.raw_rows import RowLocation, check_text
from millstream.logical.catalog import Stream
from millstream.model.errors import DataError, one_of
from millstream.model.long_texts import MOST_BYTES
from millstream.model.records import Checked
from millstream.model.types import STRING, sql_name

FORMATS = {"parquet": "Parquet", "csv": "CSV", "json": "JSON lines"}


@dataclass(frozen=True)
class FileArguments:
    """The file options of a stream."""

    format: str
    path: str
    layout: CsvFormat
    follow: bool
    poll: float  # seconds
    longest: int = LONGEST  # bytes per line


def file_arguments(stream: Stream) -> FileArguments:
    given = Arguments(stream, ["path", "follow", "poll", *layout_options(stream)])
    return FileArguments(
        format_of(stream),
        given.text("path"),
        layout(stream, given),
        given.flag("follow", False),
        given.seconds("poll", "1 second"),
        longest_line(stream, given),
    )


def longest_line(stream: Stream, given: Arguments) -> int:
    """The maximum length of a line or CSV row, in bytes."""
    if format_of(stream) == "parquet":
        return LONGEST
    return given.whole("max_line", 1, MOST_BYTES, LONGEST)


def format_of(stream: Stream) -> str:
    assert stream.connector is not None
    return stream.connector.name.text.lower()


def layout_options(stream: Stream) -> list[str]:
    options = {"csv": ["header", "delimiter", "null", "max_line"], "json": ["max_line"]}
    return options.get(format_of(stream), [])


def layout(stream: Stream, given: Arguments) -> CsvFormat:
    """The CSV dialect; the default for other formats."""
    if format_of(stream) != "csv":
        return CsvFormat()
    check_text(stream, "csv")
    delimiter = given.text("delimiter", ",").replace("\\t", "\t")
    if len(delimiter.encode()) != 1:
        raise given.error("needs a delimiter of one character", "write delimiter => ';'")
    return CsvFormat(given.flag("header", True), delimiter, given.text("null", ""))


class StreamFiles:
    """Lists the files of a stream and reads their rows."""

    def __init__(self, stream: Stream, given: FileArguments, available_now: bool) -> None:
        self._stream = stream
        self._given = given
        self.follows = self._given.follow and not available_now
        self.may_grow = self._given.follow
        path = self._given.path
        if not is_pattern(path) and not Path(path).exists():
            raise self.error(f'there is no file or folder "{path}"')

    def present(self) -> list[DataFile]:
        """In reading order."""
        files = listed_files(self._given.path)
        if not files and not self._given.follow:
            raise self.error(
                f'there are no files in "{self._given.path}"', "follow => TRUE waits for them"
            )
        return files

    def follow(self, closed: threading.Event) -> Iterator[list[DataFile]]:
        """The files present, again after each `poll` if they are followed."""
        yield self.present()
        while self.follows and not closed.wait(self._given.poll):
            yield self.present()

    def error(self, message: str, help: str | None = None) -> DataError:
        return DataError(f'{self._stream.kind} "{self._stream.name}": {message}', None, help)

    def schema(self, file: DataFile) -> pa.Schema:
        """Of a Parquet file."""
        with self._telling(file), opened(file.path) as parquet:
            return parquet.schema_arrow

    def rows(self, file: DataFile) -> Iterator[Checked]:
        row = "row" if self._given.format == "parquet" else "line"
        place = RowLocation(f'file "{file.path}"', row, self._constants(file))
        read = {"parquet": self._parquet, "csv": self._csv, "json": self._json}
        with self._telling(file):
            yield from read[self._given.format](file, place)

    @contextmanager
    def _telling(self, file: DataFile) -> Iterator[None]:
        """Translate errors in reading a file."""
        try:
            yield
        except (OSError, pa.ArrowException, UnicodeDecodeError, csv.Error) as error:
            reason = str(error).split("\n")[0]
            format = FORMATS[self._given.format]
            raise self.error(f'file "{file.path}" cannot be read as {format}: {reason}') from error

    def _parquet(self, file: DataFile, place: RowLocation) -> Iterator[Checked]:
        with opened(file.path) as parquet:
            names = self._names(parquet.schema_arrow.names, place)
            yield from parquet_rows(self._stream, parquet, names, place)

    def _csv(self, file: DataFile, place: RowLocation) -> Iterator[Checked]:
        layout = self._given.layout
        names = [field.name for field in place.read_fields(self._stream)]
        if not names:
            raise self.error(
                f"{place.name} lies in folders that give the values of all declared columns",
                "declare a column of the file as well",
            )
        with _text_of(file) as source:
            blocks = csv_blocks(_chunks(source), layout, self._given.longest)
            there = names
            if layout.header:
                first = next(blocks, b"")
                if isinstance(first, Dropped):
                    raise self.error(f"{place.name} has no header: {first.why}")
                there, rest = split_header(first, layout)
                if not there:
                    return
                names = self._names(there, place)
                blocks = chain([rest], blocks)
            yield from csv_rows(self._stream, blocks, layout, CsvColumns(there, names), place)

    def _json(self, file: DataFile, place: RowLocation) -> Iterator[Checked]:
        reader = JsonLines(self._stream, place)
        with _text_of(file) as source:
            for lines in cut_lines(_chunks(source), self._given.longest):
                yield from reader.rows(lines)

    def _names(self, there: list[str], place: RowLocation) -> list[str]:
        """The names in the file of the columns to read: an exact match, or the only match ignoring
        case."""
        names = []
        for field in place.read_fields(self._stream):
            alike = [name for name in there if name.lower() == field.name.lower()]
            same = [name for name in alike if name == field.name] or alike
            if len(same) > 1:
                raise self.error(f'{place.name} has several columns "{field.name}"')
            if not same:
                help = one_of(field.name, there, "column")
                raise self.error(f'{place.name} has no column "{field.name}"', help)
            names += same
        return names

    def _constants(self, file: DataFile) -> dict[str, pa.Scalar]:
        """The declared columns whose values come from folder names."""
        found = {name.lower(): value for name, value in file.constants}
        constants = {}
        for field in self._stream.columns:
            if field.name.lower() in found:
                text = found[field.name.lower()]
                unit = self._stream.units.get(field.name)
                value = from_text(pa.array([text], STRING), field.type, unit).values[0]
                if text is not None and not value.is_valid:
                    what = f'{text!r} in column "{field.name}" is not {sql_name(field.type)}'
                    raise self.error(f'the folder of file "{file.path}": {what}')
                constants[field.name] = value
        return constants


def _text_of(file: DataFile) -> Any:
    """The bytes of a file, decompressed according to its name."""
    return io.BufferedReader(pa.input_stream(file.path, compression="detect"), BLOCK_BYTES)


def _chunks(source: Any) -> Iterator[bytes]:
    """The bytes of a text without its byte order mark."""
    chunk = source.read(BLOCK_BYTES).removeprefix(codecs.BOM_UTF8)
    while chunk:
        yield chunk
        chunk = source.read(BLOCK_BYTES)
