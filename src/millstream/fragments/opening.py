"""Opens the executor of a started query: shards in Spark tasks, or in this process with a
checkpoint."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from millstream.checkpoint.files import LocalFiles, Lock
from millstream.checkpoint.identity import Identity, claim, unreadable
from millstream.fragments.cutting import fragments_of
from millstream.fragments.pipeline import InProcess, Pipeline, TaskRunner
from millstream.fragments.plan_data import fragments_data, fragments_of_data
from millstream.fragments.remote import RemoteExecutor
from millstream.fragments.remote_query import RemoteQuery
from millstream.model.structures import StructureError
from millstream.physical.operator import Context, PhysicalPlan
from millstream.physical.plan_data import plan_data, plan_of
from millstream.physical.signature import Signatures
from millstream.runtime.graph import Receive

SHARDS_A_PLACE = 4  # allows more places after a restart


@dataclass(frozen=True)
class Opener:
    """Opens the executor of a query; without a checkpoint its state is in a temporary folder.
    `runner` runs the tasks, of which there are `places`. `discards`: the answer is not needed."""

    identity: Identity
    seed: int
    checkpoint: str | None
    places: int = 1
    runner: Callable[[RemoteQuery, LocalFiles], TaskRunner] = InProcess
    discards: bool = False

    def __call__(self, plan: PhysicalPlan, context: Context, receive: Receive) -> RemoteExecutor:
        root = self.checkpoint or tempfile.mkdtemp(prefix="millstream-")
        durable = self.checkpoint is not None
        close = _closing(Lock(root), root, durable)
        try:
            files = LocalFiles(root, durable)
            plan, work = self._claimed(files, plan, context)
            pipeline = Pipeline(work, files, self.runner(work, files))
        except BaseException:
            close()
            raise
        return RemoteExecutor(plan, context, receive, pipeline, files, close)

    def _claimed(
        self, files: LocalFiles, plan: PhysicalPlan, context: Context
    ) -> tuple[PhysicalPlan, RemoteQuery]:
        """The plan that the checkpoint was started with, if any."""
        shards = 1 if self.places == 1 else SHARDS_A_PLACE * self.places
        signatures = Signatures(context.functions, context.aggregates)
        own = {
            "plan": plan_data(plan),
            "fragments": fragments_data(fragments_of(plan, signatures)),
            "shards": shards,
            "seed": self.seed,
        }
        told = claim(files, self.identity, own)
        try:
            plan, fragments = plan_of(told["plan"]), fragments_of_data(told["fragments"])
        except StructureError as error:
            raise unreadable(
                files, f"the plan of the checkpoint cannot be read: {error}"
            ) from error
        functions, aggregates = context.functions, context.aggregates
        rest = functions, aggregates, told["seed"], self.discards
        return plan, RemoteQuery(fragments, told["shards"], self.places, *rest)


def _closing(lock: Lock, root: str, durable: bool) -> Callable[[], None]:
    def close() -> None:
        lock.release()
        if not durable:
            shutil.rmtree(Path(root), ignore_errors=True)

    return close
