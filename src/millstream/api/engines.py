"""The engines that execute queries: the reference, this process, and Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from millstream.logical import reference_answers
from millstream.logical.analysis import given_anew
from millstream.logical.catalog import Catalog
from millstream.logical.plan import Plan
from millstream.logical.reference import Reference
from millstream.model.elements import row_key
from millstream.model.errors import QueryError
from millstream.model.modes import Emit, EngineName
from millstream.model.records import Records

if TYPE_CHECKING:
    from millstream.optimizer.planned import PlannedQuery
    from millstream.runtime.executor import OpenExecutor
    from millstream.runtime.whole_answers import RandomDraws, RunAnswer

Inputs = Callable[[Plan], Mapping[str, Records]]  # all rows of the sources of a plan


class Engine(Protocol):
    """Executes planned queries."""

    @property
    def name(self) -> EngineName: ...

    def run(self, query: PlannedQuery, chance: RandomDraws) -> RunAnswer:
        """The whole answer over bounded inputs."""

    def snapshot(self, query: PlannedQuery, chance: RandomDraws, instant: int) -> RunAnswer:
        """The rows of the answer at one instant, over bounded inputs."""

    def opener(
        self, query: PlannedQuery, chance: RandomDraws, checkpoint: str | None, discards: bool
    ) -> OpenExecutor:
        """Opens the operators of a started query; `discards`: the answer is not needed."""

    def explained(self, query: PlannedQuery) -> str:
        """The operators of a query, and where they run."""


class ReferenceEngine:
    """The reference implementation, for small inputs and for comparison."""

    name = EngineName.REFERENCE

    def __init__(self, catalog: Catalog, inputs: Inputs) -> None:
        self._catalog = catalog
        self._inputs = inputs

    def run(self, query: PlannedQuery, chance: RandomDraws) -> RunAnswer:
        from millstream.runtime.whole_answers import RunAnswer

        reference = self._reference(query.bound, chance)
        elements = reference.result()
        schema, domain, granule = query.bound.schema, query.bound.domain, given_anew(query.bound)
        if query.emit is Emit.CHANGES:
            table = reference_answers.changes_table(schema, domain, elements)
        elif query.emit is Emit.EVERY and granule is not None:
            table = reference_answers.instants_table(schema, domain, elements, granule)
        else:
            table = reference_answers.final_table(schema, domain, elements, granule)
        return RunAnswer(table, list(reference.errors))

    def snapshot(self, query: PlannedQuery, chance: RandomDraws, instant: int) -> RunAnswer:
        from millstream.runtime.whole_answers import RunAnswer

        reference = self._reference(query.bound, chance)
        rows = sorted(reference.answer(instant).elements(), key=row_key)
        table = reference_answers.rows_table(query.bound.schema, rows)
        return RunAnswer(table, list(reference.errors))

    def _reference(self, plan: Plan, chance: RandomDraws) -> Reference:
        inputs = {name: records.elements() for name, records in self._inputs(plan).items()}
        functions, aggregates = self._catalog.functions, self._catalog.aggregates
        return Reference(plan, inputs, functions, aggregates, chance.kept)

    def opener(
        self, query: PlannedQuery, chance: RandomDraws, checkpoint: str | None, discards: bool
    ) -> OpenExecutor:
        raise QueryError(
            "the reference engine does not run queries continuously",
            help='use Session(engine="local")',
        )

    def explained(self, query: PlannedQuery) -> str:
        return _explained(query, self._catalog)


class LocalEngine:
    """In this process; with a checkpoint, in batches that are committed one by one."""

    name = EngineName.LOCAL

    def __init__(self, catalog: Catalog, inputs: Inputs) -> None:
        self._catalog = catalog
        self._inputs = inputs

    def run(self, query: PlannedQuery, chance: RandomDraws) -> RunAnswer:
        from millstream.physical.expressions import Draws
        from millstream.physical.operator import Context
        from millstream.runtime import bounded
        from millstream.runtime.whole_answers import RunAnswer, answer_table

        functions, aggregates = self._catalog.functions, self._catalog.aggregates
        context = Context(functions, aggregates, draws=Draws(chance.seed))
        batches = bounded.answers(query.physical, context, self._inputs(query.bound))
        table = answer_table(query.bound, query.emit, batches, context.beginning)
        return RunAnswer(table, list(context.errors))

    def snapshot(self, query: PlannedQuery, chance: RandomDraws, instant: int) -> RunAnswer:
        from millstream.physical.expressions import Draws
        from millstream.physical.operator import Context
        from millstream.runtime import bounded
        from millstream.runtime.whole_answers import RunAnswer, snapshot_of

        functions, aggregates = self._catalog.functions, self._catalog.aggregates
        context = Context(functions, aggregates, draws=Draws(chance.seed))
        inputs = self._inputs(query.bound)
        until = {name: records.until(instant) for name, records in inputs.items()}
        batch = bounded.answer(query.elements, context, until, instant + 1)
        table = snapshot_of(query.bound, batch, context.beginning, instant)
        return RunAnswer(table, list(context.errors))

    def opener(
        self, query: PlannedQuery, chance: RandomDraws, checkpoint: str | None, discards: bool
    ) -> OpenExecutor:
        from millstream.runtime.executor import InlineExecutor

        if checkpoint is None:
            return InlineExecutor
        from millstream.checkpoint.identity import identity
        from millstream.fragments.opening import Opener

        functions, aggregates = self._catalog.functions, self._catalog.aggregates
        own = identity(query.identified, query.emit, functions, aggregates)
        return Opener(own, chance.seed, checkpoint, discards=discards)

    def explained(self, query: PlannedQuery) -> str:
        return _explained(query, self._catalog)


def _explained(query: PlannedQuery, catalog: Catalog) -> str:
    from millstream.physical.signature import Signatures
    from millstream.physical.text import physical_text

    signatures = Signatures(catalog.functions, catalog.aggregates)
    return physical_text(query.physical, query.bound.domain, signatures)
