"""The public API: a session has streams, functions and queries.

>>> import millstream as ms
>>> session = ms.Session()
>>> session.stream("Bid", [{"t": 1, "price": 5}, {"t": 3, "price": 9}], time="t")
>>> query = session.sql("SELECT MAX(price) AS best FROM Bid WINDOW(RANGE 4)")
>>> query.run().to_pylist()[:2]
[{'best': 5, 'valid_from': 1, 'valid_to': 3}, {'best': 9, 'valid_from': 3, 'valid_to': 7}]
>>> query.snapshot(2).to_pylist()
[{'best': 5}]
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.api.declaring import check_name, check_unit, one_delay, stream_of
from millstream.api.execution import Execution
from millstream.api.pulls import PullQuery
from millstream.api.query import Query
from millstream.api.state import SessionState
from millstream.api.tables import TableHandle
from millstream.api.views import View
from millstream.api.workspace import Settings, Workspace, engine_named
from millstream.connectors.contracts import OpenSink, RowSource
from millstream.connectors.intake.checking import records_of
from millstream.connectors.intake.data import is_spark_frame, schema_of, table_of
from millstream.connectors.registry import Connect
from millstream.logical.catalog import (
    Catalog,
)
from millstream.logical.evaluate import UserAggregate, UserFunction
from millstream.model.errors import (
    CatalogError,
    DataError,
    ParseError,
    QueryError,
    listed,
    located,
)
from millstream.model.modes import EngineName
from millstream.runtime.inbox import CAPACITY
from millstream.runtime.sources import Feed, Reader
from millstream.sql.calls import is_free_name
from millstream.sql.declarations import (
    as_table,
    declared_schema,
    type_named,
)
from millstream.sql.parser import parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.logical.expressions import AggregateCall
    from millstream.physical.accumulators import Accumulator


_ATTRIBUTES = ("strict", "on_error", "approach", "optimize", "shed", "memory")  # of version 0.1


class Session:
    """A set of streams, queries and functions.

    `engine` is "spark", "local" (in this process) or "reference" (slow, for small inputs); without
    one it is "spark" if you pass `spark`, else what the environment variable MILLSTREAM_ENGINE
    says, else "spark".
    `strict` turns unbounded state into an error; `on_error="stop"` ends a query at the first row
    that cannot be evaluated; otherwise the row is added to the query's `errors`.
    `approach` is what flows between operators: "hybrid", or for comparison "intervals" (operators
    wait for unknown ends of rows) or "signed" (every end is a separate element).
    `optimize=False` executes plans as bound, for comparison.
    `processors` is how many a query may use: by default those of Spark, and one on the local
    engine. A query whose streams declare rates that are too high for them cannot be started, unless
    `shed`, or SHED in its statement, lets it drop rows.
    `memory` is how many bytes the joins of a query should use if the rates of streams are known:
    with room to spare they drop expired rows later and in larger portions. It is not a limit.
    `area` names the form in which joins keep their inputs, for comparison: "calendar", or one that
    was registered with `register_area`. By default the form follows from how rows expire.
    `spark` is your Spark session for the engine "spark".
    """

    def __init__(
        self,
        engine: str | None = None,
        *,
        strict: bool = False,
        on_error: str = "skip",
        approach: str = "hybrid",
        optimize: bool = True,
        processors: float | None = None,
        shed: bool = False,
        memory: float | None = None,
        area: str | None = None,
        spark: SparkSession | None = None,
    ) -> None:
        settings = Settings(
            engine_named(engine, spark is not None),
            strict,
            on_error,
            approach,
            optimize,
            processors,
            shed,
            memory,
            area,
        )
        self._workspace = Workspace(settings, spark)
        self._state = SessionState(self._workspace)
        self._origins = self._workspace.origins

    # --- its life --------------------------------------------------------------------------------

    def close(self, timeout: float | None = None) -> bool:
        """Stop all queries and views of the session. Returns whether they have ended. Kept results
        stay readable."""
        running = [query.running for query in self._state.queries.values()]
        ended = [each.stop(timeout) for each in running if each is not None]
        ended += [view.stop(timeout) for view in self._state.kept.all]
        return all(ended)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- its settings ----------------------------------------------------------------------------

    @property
    def engine(self) -> EngineName:
        return self._workspace.settings.engine

    @property
    def settings(self) -> Settings:
        """The settings of the session."""
        return self._workspace.settings

    def __getattr__(self, name: str) -> Any:
        """Settings by their former names as attributes."""
        if name not in _ATTRIBUTES:
            raise AttributeError(f"'Session' object has no attribute {name!r}")
        _warn_of_attribute(f"session.{name} is deprecated: read session.settings.{name}")
        return getattr(self.settings, name)

    def __setattr__(self, name: str, value: object) -> None:
        """A changed setting applies to queries planned afterwards."""
        if name not in _ATTRIBUTES:
            return super().__setattr__(name, value)
        _warn_of_attribute(f"session.{name} = … is deprecated: write Session({name}=…)")
        self._workspace.settings = replace(self.settings, **{name: value})  # type: ignore[arg-type]
        return None

    @property
    def catalog(self) -> Catalog:
        return self._workspace.catalog

    @property
    def spark(self) -> SparkSession:
        """Your Spark session, or a local one that is started on first use."""
        return self._workspace.spark

    @property
    def processors(self) -> float:
        """How many processors a query may use."""
        return self._workspace.processors

    # --- streams ---------------------------------------------------------------------------------

    def stream(
        self,
        name: str,
        data: object,
        time: str | tuple[str, str] | None = None,
        *,
        delay: str | int | None = None,
        watermark: str | int | None = None,
        idle: str | int | None = None,
        unit: str | None = None,
        unique: Sequence[str] = (),
        schema: Mapping[str, str | pa.DataType] | pa.Schema | None = None,
    ) -> None:
        """Register data as a stream.

        `data` is an Arrow table or batches, a pandas or Polars frame, a Spark DataFrame, or an
        iterable of rows (dictionaries, or tuples with `schema`). `time` names the column that
        orders it, or the two columns between which each row is valid. Rows are sorted by time
        first. An iterator with a `schema` is read when a query needs it: a started one while it
        runs, `run` to its end. A streaming DataFrame is read by started queries. `delay` (or
        `watermark`) is how far rows may be behind the latest. `unique` names columns that together
        identify a row.
        """
        declared = None if schema is None else declared_schema(schema)
        delay = one_delay(delay, watermark)
        if declared is not None and isinstance(data, Iterator):
            stream = stream_of(name, declared, time, delay, idle, unit, unique)
            self.catalog.add_stream(stream)
            self._origins.hold(stream.name, Reader(stream, RowSource(lambda: data), shared=True))
            return
        check_name(name)
        if is_spark_frame(data):
            frame: Any = data
            if self.engine is EngineName.SPARK or frame.isStreaming:
                self._stream_frame(
                    name, frame, time=time, delay=delay, idle=idle, unit=unit, unique=unique
                )
                return
            data = frame.toArrow()
        given = None if declared is not None else table_of(data, None, name)
        columns = declared if given is None else schema_of(given, name)
        assert columns is not None
        stream = stream_of(name, columns, time, delay, idle, unit, unique, bounded=True)
        if given is None:
            given = table_of(data, stream.columns, name, stream.units)
        else:
            check_unit(stream)
        records = records_of(stream, given)
        self.catalog.add_stream(stream)
        self._origins.hold(stream.name, records)

    def _stream_frame(self, name: str, frame: Any, **declared: Any) -> None:
        from millstream.spark.schemas import stream_columns

        if self.engine is not EngineName.SPARK:
            raise QueryError(
                f'stream "{name}" is a streaming DataFrame, which only Spark can read',
                help='use Session(engine="spark")',
            )
        if ".connect." in type(frame).__module__:
            raise QueryError(
                f'stream "{name}" is a DataFrame of Spark Connect, whose server runs no tasks here',
                help="use a classic Spark session",
            )
        columns = stream_columns(frame.schema, name)
        stream = stream_of(name, columns, **declared, bounded=not frame.isStreaming)
        check_unit(stream)
        self.catalog.add_stream(replace(stream, numbered=False))
        self._origins.hold(stream.name, frame)

    def feed(
        self,
        name: str,
        schema: Mapping[str, str | pa.DataType] | pa.Schema,
        time: str | tuple[str, str] | None = None,
        *,
        delay: str | int | None = None,
        watermark: str | int | None = None,
        idle: str | int | None = None,
        unit: str | None = None,
        unique: Sequence[str] = (),
        capacity: int = CAPACITY,
    ) -> Feed:
        """Register a stream that this program pushes: `feed.send(rows)`.

        `capacity` is the number of rows that the queue of a query holds before `send` blocks.
        """
        delay = one_delay(delay, watermark)
        stream = stream_of(name, declared_schema(schema), time, delay, idle, unit, unique)
        feed = Feed(stream, capacity)
        self.catalog.add_stream(stream)
        self._origins.hold(stream.name, feed)
        return feed

    def table(
        self,
        name: str,
        data: object = None,
        *,
        key: str | Sequence[str] = (),
        changes: str = "retroactive",
        time: str | tuple[str, str] | None = None,
        unit: str | None = None,
        schema: Mapping[str, str | pa.DataType] | pa.Schema | None = None,
    ) -> TableHandle:
        """Register a table, whose rows stay until they are removed.

        `data` and `schema` are as for `stream`; with only a `schema` it is empty. No two rows have
        the same `key`. `changes` is "retroactive" (stream rows see changes while they are valid),
        "non retroactive" (only later stream rows do) or "constant" (no changes). `time` names the
        column with the start of a row, or the two between which it is valid.
        """
        declared = None if schema is None else declared_schema(schema)
        check_name(name)
        if data is None and declared is None:
            raise DataError(f'table "{name}" has neither data nor a schema')
        rows = data if declared is not None else table_of(data, None, name)
        columns = declared if declared is not None else schema_of(rows, name)
        stream = stream_of(name, columns, time, None, None, unit, ())
        if declared is None:
            check_unit(stream)
        handle = self._state.add_table(as_table(stream, key, changes))
        if rows is not None:
            handle.insert(rows)
        return handle

    def source(
        self,
        name: str,
        connect: Connect,
        decode: Callable[[Any], Any] | None = None,
        *,
        replays: bool = True,
    ) -> None:
        """Register a connector: `CREATE STREAM … SOURCE name(…)` calls `connect` with its values
        and options; `decode` turns each item into a row. `replays=False`: it does not return the
        same rows in the same order when called again, so a query with a checkpoint stores them
        there until they are answered."""
        self._workspace.connectors.add_source(name, connect, decode, replays)

    def sink(self, name: str, open: OpenSink) -> None:
        """Register a sink: INSERT INTO name(…), or `start(ms.sink(name, …))`, calls `open` with a
        `SinkContext` and its values and options when the query starts. `open` returns an object
        with `give(table, batch)` and `close()`, or a function `f(table, batch)`."""
        self._workspace.connectors.add_sink(name, open)

    # --- functions -------------------------------------------------------------------------------

    def function(
        self, name: str, function: Callable[..., pa.Array], *, returns: str | pa.DataType
    ) -> None:
        """Register a scalar function: pyarrow arrays in, one pyarrow array of that length out."""
        self._check_function_name(name, self.catalog.aggregates)
        result = type_named(returns)
        self.catalog.functions[name.lower()] = UserFunction(name.lower(), function, result)

    def aggregate(
        self,
        name: str,
        init: Callable[..., object],
        merge: Callable[[object, object], object],
        eval: Callable[[object], object],
        *,
        remove: Callable[[object, object], object] | None = None,
        dump: Callable[[object], object] | None = None,
        load: Callable[[object], object] | None = None,
        accumulator: Callable[[AggregateCall], Accumulator] | None = None,
        returns: str | pa.DataType,
    ) -> None:
        """Register an aggregate: `init(value…)` creates the partial aggregate of one row, `merge`
        combines two of them in any order, `eval` returns the value; `remove` undoes a merge.

        A checkpoint holds the rows of each group, and partial aggregates that are plain values;
        others are recomputed from the rows, unless `dump` converts them to plain values and `load`
        converts them back.

        `accumulator(call)` makes an object that computes the same values over arrays; it is used
        instead of the functions, except with DISTINCT and on the reference engine."""
        self._check_function_name(name, self.catalog.functions)
        if (dump is None) != (load is None):
            given, lacking = ("load", "dump") if dump is None else ("dump", "load")
            raise CatalogError(
                f'aggregate "{name}" has "{given}" and no "{lacking}"',
                help="pass both or neither",
            )
        self.catalog.aggregates[name.lower()] = UserAggregate(
            name.lower(), init, merge, eval, type_named(returns), remove, dump, load, accumulator
        )

    def _check_function_name(self, name: str, others: Mapping[str, object]) -> None:
        if not name.isidentifier():
            raise CatalogError(f'"{name}" is not a name for a function')
        if not is_free_name(name):
            raise CatalogError(f'function "{name}" is built in', help="choose another name")
        if name.lower() in others:
            raise CatalogError(f'"{name}" names a function and an aggregate already')
        users = self.catalog.users_of_function(name.lower())
        if users:
            raise CatalogError(
                f'function "{name}" is in use by {listed(users)}', help="drop what uses it first"
            )

    # --- statements ------------------------------------------------------------------------------

    def sql(self, text: str, /, **parameters: object) -> Any:
        """Run the statements of `text`; the result is that of the last one.

        A SELECT returns a `Query`, registered but not started; SHOW returns an Arrow table. `:name`
        in the text stands for the value of the parameter `name`.
        """
        return self.run_script(text, None, parameters)

    def run_script(
        self, text: str, file: str | None = None, parameters: Mapping[str, object] | None = None
    ) -> Any:
        """As `sql`, with the name of the file that messages show."""
        results = self.run_statements(text, file, parameters)
        return results[-1] if results else None

    def run_statements(
        self, text: str, file: str | None = None, parameters: Mapping[str, object] | None = None
    ) -> list[Any]:
        """As `run_script`, with the result of every statement, in order."""
        if not isinstance(text, str):
            raise ParseError(f"statements are text, not {type(text).__name__}")
        text = text.removeprefix("\ufeff")  # messages show the text without the BOM
        results: list[Any] = []
        with located(text, file):
            execution = Execution(self._state, text, file, parameters or {})
            for statement in parse(text, parameters or {}):
                try:
                    results.append(execution.carry_out(statement))
                except RecursionError:
                    raise ParseError(
                        "the statement is nested too deeply",
                        help="compute parts of it in a derived stream: CREATE STREAM … AS SELECT …",
                    ) from None
        return results

    @property
    def views(self) -> dict[str, View]:
        """The materialized views, by name."""
        return self._state.kept.views

    @property
    def queries(self) -> dict[str, Query | PullQuery]:
        """The registered queries, by name."""
        return self._state.queries


def _warn_of_attribute(message: str) -> None:
    """At the line that reads or sets it."""
    warnings.warn(message, DeprecationWarning, stacklevel=3)
