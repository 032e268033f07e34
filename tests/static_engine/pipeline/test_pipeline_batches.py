"""Batches keep what was landed once, whatever is interrupted, repeated or damaged."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from static_engine.lake.lake import SYSTEM, Lake
from static_engine.landing.segment_files import LandedMessage, SegmentWriter
from static_engine.pipeline import lake_packs, pipeline_batches
from static_engine.pipeline.known_definitions import KnownDefinitions
from static_engine.pipeline.lake_packs import packs_of_lake
from static_engine.pipeline.pack_numbers import PackNumbers
from static_engine.pipeline.pipeline_batches import BatchReport, PipelineBatches
from static_engine.pipeline.replayed_letters import replay_letters
from static_engine.pipeline.staged_files import Staged, StagePlan, staged_segments
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row, Value
from streamsql.errors import DeploymentError, FederationError
from streamsql.wire.codec import encode_json
from streamsql.wire.messages import ObservationPack, SystemRows
from streamsql.wire.senml import records_of_rows
from streamsql.wire.site_messages import Birth, SiteRole, SiteState
from streamsql.wire.source_shapes import layout_of, shape_of
from streamsql.wire.topics import Topics
from tests.static_engine.lake.lake_rows import lake_in

TOPICS = Topics("demo")
AT = 1_767_225_600_000_000
DAY = 86_400_000_000
HEAT = SourceDefinition(
    "heat", SourceKind.STREAM, Schema.of(("v", DataType.INTEGER), ("room", DataType.TEXT))
)
SEAT = SourceDefinition("seat", SourceKind.STREAM, Schema.of(("v", DataType.INTEGER)))
WARM = msgspec.structs.replace(HEAT, schema=Schema.of(("v", DataType.TEXT)))


def birth(*definitions: SourceDefinition, gateway: str = "gw-1") -> LandedMessage:
    shapes = tuple(shape_of(each.scan()) for each in definitions)
    payload = encode_json(Birth(gateway, 1, 0, AT, shapes=shapes))
    return LandedMessage(TOPICS.birth(gateway), payload, AT)


def pack(  # noqa: PLR0913 - each is one fact of a pack
    seq: int,
    of: SourceDefinition = HEAT,
    *,
    value: Value = None,
    gateway: str = "gw-1",
    ts: int = AT,
    withdrawn: tuple[int, ...] = (),
) -> LandedMessage:
    row: Row = (seq if value is None else value, *["L1"] * (len(of.schema) - 1))
    records = tuple(records_of_rows([("dev", ts, row), ("dev", ts + DAY, row)], of.schema))
    found = ObservationPack(1, seq, records, layout=layout_of(of.scan()), d=withdrawn)
    topic = TOPICS.observation(gateway, of.name)
    return LandedMessage(topic, encode_json(found), AT + seq)


class Landing:
    """Segments of a test, and a pipeline over them that has tasks of two segments each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lake = lake_in(folder)
        self.segments = SegmentWriter(folder / "segments", "lander", 1, 10**9)
        self.pipeline = self.opened()

    def opened(self, origin: str = "one") -> PipelineBatches:
        """Return a pipeline as a new process has it."""
        definitions = KnownDefinitions(self.folder / "definitions.json")
        return PipelineBatches(self.lake, "demo", definitions, self.folder, origin)

    def land(self, *messages: LandedMessage) -> Path:
        return self.segments.write(messages, AT / 1_000_000)

    def run(self, number: int, *segments: Path) -> BatchReport:
        """Keep segments by two tasks that know nothing of each other."""
        return self.pipeline.run(number, segments, in_two_tasks)


def in_two_tasks(plan: StagePlan, paths: Sequence[str]) -> list[Staged]:
    return [*staged_segments(paths[::2], plan), *staged_segments(paths[1::2], plan)]


@pytest.fixture
def landing(tmp_path: Path) -> Iterator[Landing]:
    found = Landing(tmp_path)
    yield found
    found.pipeline.close()


def values(lake: Lake, source: str = "heat", column: str = "v") -> list[object]:
    """Of both rows of each pack."""
    rows = [row for batch in lake.plan(source).batches() for row in batch.to_pylist()]
    return sorted((row[column] for row in rows if row[column] is not None), key=str)


def messages(lake: Lake, table: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = lake.table(table, SYSTEM).scan().to_arrow().to_pylist()
    return found


def test_what_was_landed_is_kept(landing: Landing) -> None:
    state = LandedMessage(TOPICS.state("gw-1"), encode_json(SiteState(True, 1, AT)), AT)
    rows = SystemRows(4, 1, (("q1", "e", "job", "rows", 5.0),))
    job = LandedMessage(TOPICS.observation("static", "sys_stream"), encode_json(rows), AT + 9)
    report = landing.run(0, landing.land(birth(HEAT, SEAT), pack(1), state, pack(2, SEAT), job))
    assert (report.messages, report.rows, report.packs, report.dead) == (5, 5, 3, 0)
    assert values(landing.lake) == [1, 1]
    assert values(landing.lake, "seat") == [2, 2]
    assert values(landing.lake, "sys_stream", "value") == [5.0]
    assert values(landing.lake, "sys_stream", "site") == ["static"]
    assert [row["site"] for row in messages(landing.lake, "states")] == ["gw-1"]
    assert len(messages(landing.lake, "births")) == 1
    assert len(landing.lake.plan("heat", AT, AT + 1).files) == 1  # a file a day


def test_a_source_that_is_not_kept_leaves_no_row_and_no_letter(landing: Landing) -> None:
    landing.pipeline.definitions.unkept = frozenset({"seat"})
    report = landing.run(0, landing.land(birth(HEAT, SEAT), pack(1), pack(2, SEAT)))
    assert (report.rows, report.packs, report.dead) == (2, 1, 0)
    assert "seat" not in landing.lake.kept_sources()
    landing.pipeline.definitions.unkept = frozenset()
    assert landing.run(1, landing.land(pack(3, SEAT))).rows == 2


def test_packs_and_messages_that_come_again_are_kept_once(landing: Landing) -> None:
    born = birth(HEAT)
    first = landing.land(born, pack(1), pack(1), pack(2))
    second = landing.land(born, pack(2), pack(3, withdrawn=(0,)))
    landing.run(0, first, second)
    landing.run(1, landing.land(pack(3), born, pack(4)))
    assert values(landing.lake) == [1, 1, 2, 2, 3, 3, 4, 4]
    assert len(messages(landing.lake, "births")) == 1
    gone = [row for batch in landing.lake.plan("heat").batches() for row in batch.to_pylist()]
    assert [row["v"] for row in gone if row["_withdrawn"]] == [3]


def test_poison_is_a_dead_letter_and_a_damaged_segment_is_set_aside(landing: Landing) -> None:
    topic = TOPICS.observation("gw-1", "heat")
    good = landing.land(birth(HEAT), pack(1), LandedMessage(topic, b"\xff\x00{", AT))
    bad = landing.land(pack(2))
    bad.write_bytes(bad.read_bytes()[:-40])
    # Its footer is whole: only who reads all of it knows.
    late = landing.land(pack(5))
    content = bytearray(late.read_bytes())
    content[4:40] = bytes(36)
    late.write_bytes(content)
    other = landing.folder / "segments" / "20260101T000000-x-1-000000001.parquet"
    other.write_bytes(b"")
    report = landing.run(0, good, bad, other, late)
    assert values(landing.lake) == [1, 1]
    assert report.dead == 1
    assert [str(path.name) for path in (landing.folder / "damaged").iterdir()]
    assert len(report.damaged) == 3
    assert "cannot be read" in report.damaged[0]
    assert [row["payload"] for row in messages(landing.lake, "dead_letters")] == [b"\xff\x00{"]


def test_a_source_that_drifts_goes_on_in_columns_of_its_own(landing: Landing) -> None:
    landing.run(0, landing.land(birth(HEAT), pack(1)))
    segment = landing.land(birth(WARM), pack(2, WARM, value="warm"), pack(3))
    report = landing.run(1, segment)
    assert report.drift == ["source heat: column v is now v TEXT; it is kept as v__2"]
    assert values(landing.lake) == [1, 1, 3, 3]
    assert values(landing.lake, column="v__2") == ["warm", "warm"]


def test_dead_letters_are_replayed_once_they_can_be_read(landing: Landing) -> None:
    landing.run(0, landing.land(birth(HEAT), pack(1), pack(2, SEAT), pack(3, WARM, value="warm")))
    assert {row["reason"] for row in messages(landing.lake, "dead_letters")} == {
        "there is no source 'seat'",
        "the pack was made by another definition of source 'heat' than any known here",
    }
    assert replay_letters(landing.pipeline).recovered == 0
    landing.pipeline.definitions.learn([shape_of(SEAT.scan())])
    report = replay_letters(landing.pipeline)
    assert (report.tried, report.recovered, report.rows) == (2, 1, 2)
    assert len(messages(landing.lake, "dead_letters")) == 1
    landing.run(1, landing.land(pack(2, SEAT), pack(4, SEAT)))
    assert values(landing.lake, "seat") == [2, 2, 4, 4]


def test_letters_that_nothing_mends_keep_none_from_being_replayed(landing: Landing) -> None:
    topic = TOPICS.observation("gw-1", "heat")
    junk = [LandedMessage(topic, b"%d {" % number, AT) for number in range(300)]
    nobody = [
        LandedMessage(TOPICS.observation("gw-1", f"x{number}"), b"{", AT) for number in range(300)
    ]
    landing.run(0, landing.land(birth(HEAT), *junk, *nobody, pack(2, SEAT)))
    landing.pipeline.definitions.learn([shape_of(SEAT.scan())])
    report = replay_letters(landing.pipeline, limit=100)
    assert (report.tried, report.recovered) == (100, 1)
    assert values(landing.lake, "seat") == [2, 2]
    assert len(messages(landing.lake, "dead_letters")) == 600
    assert replay_letters(landing.pipeline).tried == 300  # of nobody's source nothing is tried


def test_another_checkpoint_begins_with_what_the_lake_has(landing: Landing) -> None:
    first, second = landing.land(birth(HEAT), pack(1)), landing.land(pack(2))
    landing.run(7, first, second)
    landing.pipeline.close()
    (landing.folder / "seen_packs.db").unlink()
    landing.pipeline = landing.opened("two")
    landing.run(0, first, second, landing.land(pack(3)))
    assert values(landing.lake) == [1, 1, 2, 2, 3, 3]
    assert len(messages(landing.lake, "births")) == 1


def test_a_checkpoint_that_was_handed_over_is_gone_on_from(
    landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = landing.land(birth(HEAT), pack(1), pack(2))
    landing.run(7, first)
    landing.pipeline.hand_over()
    landing.pipeline.close()
    with monkeypatch.context() as patched:
        patched.setattr(pipeline_batches, "packs_of_lake", None)  # nobody looks at the lake
        landing.pipeline = landing.opened("two")
    assert landing.run(0, first, landing.land(pack(1), pack(3))).repeated == 3
    assert values(landing.lake) == [1, 1, 2, 2, 3, 3]
    # Whoever came after it has not handed over: it may have ended in a batch.
    landing.pipeline.close()
    looked: list[Lake] = []

    def look(lake: Lake) -> PackNumbers:
        looked.append(lake)
        return packs_of_lake(lake)

    monkeypatch.setattr(pipeline_batches, "packs_of_lake", look)
    landing.pipeline = landing.opened("three")
    assert looked
    assert landing.run(0, first).repeated == 2


def test_messages_are_kept_once_though_a_clock_was_ahead(
    landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake_packs, "wall_clock", lambda: AT + 60_000_000)
    state = SiteState(True, 3, AT, SiteRole.GATEWAY, ready=True)
    usual = LandedMessage(TOPICS.state("gw-1"), encode_json(state), AT)
    ahead = LandedMessage(TOPICS.state("gw-2"), encode_json(state), AT + 366 * DAY)
    landing.run(0, landing.land(birth(HEAT), usual), landing.land(ahead))
    landing.pipeline.close()
    landing.pipeline = landing.opened()
    landing.run(1, landing.land(usual, ahead))  # the broker delivers them again
    assert len(messages(landing.lake, "states")) == 2


def test_a_worker_that_does_not_see_the_segments_loses_none(landing: Landing) -> None:
    segments = [landing.land(birth(HEAT), pack(1)), landing.land(pack(2))]

    def elsewhere(plan: StagePlan, paths: Sequence[str]) -> list[Staged]:
        away = [path.replace("/segments/", "/not mounted/") for path in paths[1:]]
        found = [*staged_segments(paths[:1], plan), *staged_segments(away, plan)]
        return [
            msgspec.structs.replace(each, gone=each.gone.replace("/not mounted/", "/segments/"))
            for each in found
        ]

    with pytest.raises(DeploymentError, match=r"does not see segment .*, which is there"):
        landing.pipeline.run(0, segments, elsewhere)
    landing.run(0, *segments)
    assert values(landing.lake) == [1, 1, 2, 2]
    segments[0].unlink()
    assert landing.run(1, *segments).repeated == 1  # one that is really gone was kept


class Stop(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("left", range(4))
@pytest.mark.parametrize("after", [False, True])
def test_a_batch_that_is_interrupted_and_repeated_changes_nothing(
    landing: Landing, left: int, after: bool
) -> None:
    junk = LandedMessage(TOPICS.observation("gw-1", "heat"), b"{", AT)
    commit = landing.lake.commit
    landing.run(0, landing.land(birth(HEAT, SEAT), pack(1), pack(2, SEAT)))
    segments = [
        landing.land(junk, pack(1), pack(2, SEAT), pack(3), pack(4, SEAT)),
        landing.land(pack(3), pack(5), birth(HEAT, SEAT)),
    ]
    for number in (left, 0):
        _interrupt(landing, commit, number, after=after)
        with contextlib.suppress(Stop):
            landing.run(1, *segments)
        landing.lake.commit = commit  # type: ignore[method-assign]
        landing.pipeline.close()
        landing.pipeline = landing.opened()
    landing.run(1, *segments)
    landing.run(2, landing.land(pack(6), *[pack(seq) for seq in (1, 3, 5)]))
    assert values(landing.lake) == [1, 1, 3, 3, 5, 5, 6, 6]
    assert values(landing.lake, "seat") == [2, 2, 4, 4]
    assert len(messages(landing.lake, "dead_letters")) == 1
    assert len(messages(landing.lake, "births")) == 1


def _interrupt(landing: Landing, commit: Callable[..., bool], left: int, *, after: bool) -> None:
    counts = [left]

    def stopping(*arguments: Any) -> bool:
        counts[0] -= 1
        if counts[0] < 0 and not after:
            raise Stop
        done = commit(*arguments)
        if counts[0] < 0:
            raise Stop
        return done

    landing.lake.commit = stopping  # type: ignore[assignment, method-assign]


def test_a_full_disk_is_an_error_and_the_batch_is_repeated(landing: Landing) -> None:
    segment = landing.land(birth(HEAT), pack(1))

    def full(_plan: StagePlan, _paths: Sequence[str]) -> list[Staged]:
        raise OSError(28, "No space left on device")

    with pytest.raises((OSError, FederationError), match="No space left"):
        landing.pipeline.run(0, [segment], full)
    landing.run(0, segment)
    assert values(landing.lake) == [1, 1]
