"""Batches of the pipeline: segments become rows of the lake, each batch once.

A batch may be repeated at any moment, after a crash of whatever took part. Then it sees the same
segments and the same packs as seen, decides the same, and each table that has its number already
stays as it is. Dead letters are committed first: a message whose fate is another in the repetition,
since a definition came meanwhile, is kept in one of both places, or in both.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyroaring import BitMap64

from static_engine.lake.former_states import discard_former_states
from static_engine.lake.lake import Lake
from static_engine.lake.lake_errors import DAMAGE, LakeBusyError, LakeError
from static_engine.lake.message_tables import SystemTable, ensure_system
from static_engine.lake.readings_files import remove_files
from static_engine.pipeline.known_definitions import KnownDefinitions
from static_engine.pipeline.lake_packs import packs_of_lake, recent_digests
from static_engine.pipeline.pack_numbers import PackNumbers
from static_engine.pipeline.repeated_rows import without_digests, without_packs
from static_engine.pipeline.seen_packs import SeenPacks
from static_engine.pipeline.segment_contents import SegmentContents, contents_of, set_aside
from static_engine.pipeline.staged_files import Staged, StagePlan, Target, Work
from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import DeploymentError
from streamsql.wire.topics import Topics

MAX_DIGESTS = 200_000
"""Messages that are no packs, and are known when they come again."""
MAX_DRIFT = 20
_ORDER = (SystemTable.DEAD_LETTERS, SystemTable.BIRTHS, SystemTable.STATES, SystemTable.ALARMS)
ALL = 2**62
"""Number after all batches."""
_ORIGIN = "origin"
_HANDED_OVER = "handed_over"
REPLAYING = "replaying"
"""Fact of `SeenPacks`: packs are being kept that no batch has; empty: none are."""
log = logging.getLogger(__name__)


@dataclass(slots=True)
class BatchReport:
    """Outcome of a batch.

    Attributes:
        number: Of the batch.
        messages: In its segments.
        rows: Readings kept.
        packs: That they came in.
        repeated: Packs that came again.
        dead: Dead letters.
        arrived: When its first message arrived, in microseconds; None: it had none.
        seconds: That it took.
        drift: A sentence for each column that a source had not before.
        learned: Sources that have a definition now that they had not.
        damaged: Segments that could not be read, and why.
    """

    number: int
    messages: int = 0
    rows: int = 0
    packs: int = 0
    repeated: int = 0
    dead: int = 0
    arrived: int | None = None
    seconds: float = 0.0
    drift: list[str] = field(default_factory=list)
    learned: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)


class PipelineBatches:
    """The driver's part of the pipeline. One thread at a time uses it.

    Args:
        lake: Where rows are kept.
        site: Name of the federation.
        definitions: By which packs are read.
        folder: Of the pipeline's own files.
        origin: Who numbers the batches: another one for each checkpoint.

    Raises:
        LakeError: What the pipeline knows of packs cannot be read.
    """

    def __init__(
        self, lake: Lake, site: str, definitions: KnownDefinitions, folder: Path, origin: str
    ) -> None:
        self.lake = lake
        self.topics = Topics(site)
        self.definitions = definitions
        self.seen = SeenPacks(folder / "seen_packs.db")
        self._origin = f"pipeline-{origin}"
        self._ensured: dict[tuple[str, int], Target] = {}
        self._recent: OrderedDict[bytes, None] = OrderedDict()
        is_other = self.seen.fact(_ORIGIN) != self._origin
        was_handed_over = self.seen.fact(_HANDED_OVER) == "1"
        if self.seen.is_new or self.seen.fact(REPLAYING) or (is_other and not was_handed_over):
            self._begin()
        elif is_other:
            self.seen.renumber()
        self.seen.note(**{_ORIGIN: self._origin, _HANDED_OVER: ""})
        self._system = {each: ensure_system(lake, each) for each in SystemTable}
        for digest in recent_digests(self._system.values(), MAX_DIGESTS):
            self._recent[digest] = None

    def run(self, number: int, segments: Sequence[Path], work: Work) -> BatchReport:
        """Keep what is in segments.

        Args:
            number: Of the batch; the same one again has the same segments.
            segments: Those that are gone or damaged give nothing.
            work: See `staged_files.Work`.

        Raises:
            FederationError: The lake cannot be changed; the batch is to be repeated.
            OSError: Likewise.
        """
        began = time.perf_counter()
        contents = contents_of(segments, self.topics)
        report = BatchReport(number, contents.messages, arrived=contents.arrived)
        for path, reason in contents.damaged:
            _set_aside(path, reason, report)
        report.learned = self.definitions.learn(contents.shapes)
        if contents.messages:
            plan = self.plan(number, contents, report.drift)
            self._keep(number, work(plan, [str(path) for path in segments]), report)
        report.seconds = time.perf_counter() - began
        return report

    def plan(self, number: int, contents: SegmentContents, drift: list[str]) -> StagePlan:
        """Return what tasks need to know; tables and columns that are missing are made.

        Args:
            number: Of the batch: tasks know the packs of those before it.
            contents: Of its segments.
            drift: What is new of sources is appended to it.
        """
        seen = self.seen.before(number)
        refused: dict[str, str] = {}
        sources = sorted(set(contents.sources) - self.definitions.unkept)
        return StagePlan(
            self.topics.site,
            number,
            tuple(self.targets(sources, drift, refused)),
            {each.value: table.location() for each, table in self._system.items()},
            dict(self.lake.settings.options),
            {key: packs for key, packs in seen.items() if key[0] in contents.gateways},
            tuple(sorted(self.definitions.unkept)),
            refused,
        )

    def targets(
        self, sources: Iterable[str], drift: list[str], refused: dict[str, str]
    ) -> list[Target]:
        """Return where packs of sources go.

        Args:
            sources: Their names.
            drift: What is new of them is appended to it.
            refused: Gets the sources that have a definition that the lake cannot take, and why.

        Raises:
            LakeBusyError: The batch is to be repeated.
            OSError: Likewise.
        """
        found = []
        for name in sources:
            newest = self.definitions.find(name, 0)
            for layout, definition in self.definitions.of(name).items():
                try:
                    target = self._target(definition, layout, drift, newest=definition == newest)
                except LakeBusyError:
                    raise
                except DAMAGE as error:
                    # A source that no repetition makes good keeps nothing from the others.
                    why = error.message if isinstance(error, LakeError) else repr(error)
                    refused[name] = f"the lake cannot take source {name!r:.80}: {why:.300}"
                    log.warning("%s", refused[name])
                    continue
                found.append(target)
        return found

    def _target(
        self, definition: SourceDefinition, layout: int, drift: list[str], *, newest: bool
    ) -> Target:
        key = (definition.name, layout)
        target = self._ensured.get(key)
        if target is None or target.newest != newest:
            table, words = self.lake.ensure(definition)
            drift += [f"source {definition.name}: {each}" for each in words]
            for each in words[:MAX_DRIFT]:
                log.warning("source %s: %s", definition.name, each)
            schema = self.lake.schema_of(definition, table)
            target = Target(
                definition, layout, newest, table.location(), schema.serialize().to_pybytes()
            )
            self._ensured[key] = target
        return target

    def _keep(self, number: int, found: Sequence[Staged], report: BatchReport) -> None:
        new = PackNumbers()
        digests: OrderedDict[bytes, None] = OrderedDict()
        files: dict[tuple[bool, str], list[str]] = {}
        _check_seen(found)
        for each in found:
            if each.gone:
                continue  # it has been kept before
            report.repeated += each.repeated
            if each.damaged is not None:
                _set_aside(Path(each.damaged[0]), each.damaged[1], report)
                continue
            if each.is_system:
                kept = self._once_messages(each, digests)
                if each.table == SystemTable.DEAD_LETTERS:
                    report.dead += kept.rows
            else:
                kept = self._once_packs(each, new, report)
                report.rows += kept.rows
            files.setdefault((each.is_system, each.table), []).extend(kept.paths)
        for table in _ORDER:
            self._commit(number, table.value, files.pop((True, table.value), []), system=True)
        for (_, name), paths in sorted(files.items()):
            self._commit(number, name, paths, system=False)
        self.seen.add(number, dict(new.items()))
        report.packs = sum(len(numbers) for _, numbers in new.items())
        self._recent.update(digests)
        while len(self._recent) > MAX_DIGESTS:
            self._recent.popitem(last=False)

    def _once_packs(self, found: Staged, new: PackNumbers, report: BatchReport) -> Staged:
        """Return files without packs that another task has, too."""
        again: dict[tuple[str, int], BitMap64] = {}
        known = dict(new.items())
        for gateway, epoch, serialized in found.packs:
            numbers = BitMap64.deserialize(serialized)
            both = numbers & known.get((gateway, epoch), BitMap64())
            if both:
                again[gateway, epoch] = both
                report.repeated += len(both)
            new.add_all(gateway, epoch, numbers)
        return without_packs(found, again, self.lake.io()) if again else found

    def _once_messages(self, found: Staged, digests: OrderedDict[bytes, None]) -> Staged:
        """Return files without messages that came before."""
        again = {each for each in found.digests if each in self._recent or each in digests}
        digests.update(dict.fromkeys(found.digests))
        return without_digests(found, again, self.lake.io()) if again else found

    def _commit(self, number: int, name: str, paths: list[str], *, system: bool) -> None:
        if not paths:
            return
        table = self._system[SystemTable(name)] if system else self.lake.table(name)
        if self.lake.commit(table, paths, number, self._origin):
            discard_former_states(table)
        else:
            remove_files(paths, table.io)  # an earlier attempt has committed its own

    def _begin(self) -> None:
        """Take what the lake has for what was seen."""
        packs = packs_of_lake(self.lake)
        if not self.seen.is_new:
            for (gateway, epoch), known in self.seen.before(ALL).items():
                packs.add_all(gateway, epoch, BitMap64.deserialize(known))
        self.seen.begin(dict(packs.items()))
        self.seen.note(**{REPLAYING: ""})

    def hand_over(self) -> None:
        """Note that the last batch is complete: another checkpoint goes on from here.

        Whoever comes next need not look at all of the lake.
        """
        self.seen.note(**{_HANDED_OVER: "1"})

    def close(self) -> None:
        """Close what it has open."""
        self.seen.close()


def _check_seen(found: Sequence[Staged]) -> None:
    """Check that every worker sees the folder of segments.

    Raises:
        DeploymentError: One does not: what it does not see would be lost.
    """
    unseen = next((each.gone for each in found if each.gone and Path(each.gone).exists()), None)
    if unseen is not None:
        raise DeploymentError(
            f"a worker of Spark does not see segment {unseen}, which is there",
            hint="let every worker see the folder of segments under the same path",
        )


def _set_aside(path: Path, reason: str, report: BatchReport) -> None:
    report.damaged.append(f"segment {set_aside(path)} cannot be read: {reason}")
    log.warning("%s", report.damaged[-1])
