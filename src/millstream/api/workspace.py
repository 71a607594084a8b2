"""What the queries of a session share: its settings, its catalog, the origins of rows, and the
engine."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from millstream.api.engines import Engine, LocalEngine, ReferenceEngine
from millstream.api.origins import Origins
from millstream.connectors.registry import Connectors
from millstream.logical.catalog import Catalog
from millstream.model.errors import QueryError, one_of
from millstream.model.modes import Emit, EngineName
from millstream.runtime.clock import Clock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.logical.plan import Plan
    from millstream.optimizer.planned import Options, PlannedQuery

APPROACHES = ("hybrid", "intervals", "signed")


@dataclass(frozen=True)
class Settings:
    """The arguments of `Session`."""

    engine: EngineName
    strict: bool = False
    on_error: str = "skip"
    approach: str = "hybrid"
    optimize: bool = True
    processors: float | None = None
    shed: bool = False
    memory: float | None = None
    area: str | None = None

    def __post_init__(self) -> None:
        if self.on_error not in ("skip", "stop"):
            raise QueryError(f'on_error is "skip" or "stop", not "{self.on_error}"')
        if self.approach not in APPROACHES:
            raise QueryError(
                f'approach is "hybrid", "intervals" or "signed", not "{self.approach}"'
            )
        if self.processors is not None and not self.processors > 0:
            raise QueryError(f"processors is a positive number, not {self.processors!r}")
        if self.memory is not None and not self.memory > 0:
            raise QueryError(f"memory is a positive number of bytes, not {self.memory!r}")


def engine_named(name: str | None, spark: bool) -> EngineName:
    """The engine that `Session(engine=…)` names, or else the environment, or else Spark."""
    given = name or ("spark" if spark else os.environ.get("MILLSTREAM_ENGINE", EngineName.SPARK))
    engines = [engine.value for engine in EngineName]
    if given not in engines:
        raise QueryError(f'engine "{given}" does not exist', help=one_of(given, engines, "engine"))
    return EngineName(given)


class Workspace:
    def __init__(self, settings: Settings, spark: SparkSession | None = None) -> None:
        self.settings = settings
        self.catalog = Catalog()
        self.connectors = Connectors()
        self.clock = Clock()
        self._spark = spark
        on_spark = settings.engine is EngineName.SPARK
        self.origins = Origins(
            self.catalog, self.connectors, (lambda: self.spark) if on_spark else None
        )

    @cached_property
    def spark(self) -> SparkSession:
        """The user's Spark session, or a local one that is started on first use."""
        from millstream.spark.starting import local_spark, taken_over

        return local_spark() if self._spark is None else taken_over(self._spark)

    @property
    def has_spark(self) -> bool:
        """Whether a Spark session exists already."""
        return self._spark is not None or "spark" in self.__dict__

    @property
    def processors(self) -> float:
        """How many processors a query may use."""
        if self.settings.processors is not None:
            return self.settings.processors
        if self.settings.engine is not EngineName.SPARK:
            return 1.0
        if self.has_spark:
            return float(self.spark.sparkContext.defaultParallelism)
        return float(os.cpu_count() or 1)

    @cached_property
    def engine(self) -> Engine:
        match self.settings.engine:
            case EngineName.REFERENCE:
                return ReferenceEngine(self.catalog, self.origins.inputs)
            case EngineName.LOCAL:
                return LocalEngine(self.catalog, self.origins.inputs)
        from millstream.spark.engine import SparkEngine

        return SparkEngine(self.catalog, self.origins, lambda: self.spark)

    # --- plans -----------------------------------------------------------------------------------

    def plan(self, plan: Plan, emit: Emit, before: PlannedQuery | None = None) -> PlannedQuery:
        """Plan the query of a bound plan; returns `before` if the facts about its sources have not
        changed."""
        from millstream.optimizer.planned import planned

        facts = self.origins.facts(plan)
        if before is not None and before.facts == facts:
            return before
        return planned(plan, emit, facts, self._options)

    def plan_once(self, plan: Plan) -> PlannedQuery:
        """Plan a query over stored rows, which answers once."""
        from millstream.optimizer.planned import SourceFacts, planned

        return planned(plan, Emit.ELEMENTS, SourceFacts(), self._options)

    @property
    def _options(self) -> Options:
        from millstream.optimizer.choice import Approach
        from millstream.optimizer.planned import Options
        from millstream.physical.joins.areas.forms import AreaChoice

        settings = self.settings
        together = settings.engine is EngineName.LOCAL
        approach = Approach(settings.approach)
        options = Options(
            settings.optimize, approach, together, settings.memory, AreaChoice(form=settings.area)
        )
        if settings.engine is not EngineName.SPARK:
            return options
        from millstream.fragments.cutting import placing

        return replace(options, placing=lambda plan: placing(plan, int(self.processors) or 1))
