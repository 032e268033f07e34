"""Whatever a gateway sends or a disk does to a segment, the batch is kept, and says what was not.

Each attack is landed between two good packs. What is bad of it is a dead letter with its reason, or
a segment set aside; the good packs of all sources are rows of the lake.
"""

import errno
import json
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from static_engine.care.lake_figures import LakeFigures
from static_engine.history.past_readings import PastReadings
from static_engine.lake.lake import folder_of
from static_engine.landing.segment_files import LandedMessage
from static_engine.pipeline.known_definitions import definition_of_shape
from streamsql.history.past_plans import fixed
from streamsql.wire.codec import encode_json
from streamsql.wire.site_messages import Birth
from streamsql.wire.source_shapes import SourceShape, layout_of
from tests.static_engine.pipeline.test_pipeline_batches import (
    AT,
    DAY,
    HEAT,
    TOPICS,
    Landing,
    birth,
    messages,
    pack,
    values,
)
from tests.streamsql.from_text import bound_query, catalog_of

LAYOUT = layout_of(HEAT.scan())
TOPIC = TOPICS.observation("gw-1", "heat")
ROW = '{"bn":"d:","bt":1767225600,"n":"v","v":1}'
MEGABYTE = "x" * 1_000_000
Columns = tuple[tuple[str, str], ...]


@pytest.fixture
def landing(tmp_path: Path) -> Landing:
    return Landing(tmp_path)


def heat(records: str, *, seq: int = 50, more: str = "") -> bytes:
    return f'{{"epoch":1,"seq":{seq},"layout":{LAYOUT},"e":[{records}]{more}}}'.encode()


def days(count: int, step: float = 86_400.0) -> str:
    rows = [{"n": "v", "v": 1, "t": step * number + 1} for number in range(count)]
    return json.dumps([{"bn": "d:"} | rows[0], *rows[1:]])[1:-1]


POISON: tuple[tuple[bytes, str], ...] = (
    (b"", "truncated"),
    (b'{"epoch":1,"seq":5,"e":[{"bn":"\xff\xfe"}]}', "utf-8"),
    (b'{"epoch":1,"seq":5,"x":' + b"[" * 50_000 + b"]" * 50_000 + b"}", "nested too deeply"),
    (b'{"epoch":1,"seq":5,"e":[' + b"{}," * 600_000 + b"{}]}", "length <= 100000"),
    (heat(f'{ROW},{{"n":"room","vs":"{MEGABYTE}"}}'), "length <= 100000"),
    (heat(f'{ROW},{{"n":"room","vs":"{MEGABYTE * 3}"}}'), "the max is 2000000"),
    (heat(f'{ROW},{{"n":"room","vs":"\\ud800"}}'), "ObservationPack"),
    (heat(ROW, seq=2**63), "ObservationPack"),
    (heat(ROW, seq=-1), "ObservationPack"),
    (heat('{"bn":"d:","bt":NaN,"n":"v","v":1}'), "malformed"),
    (heat('{"bn":"d:","bt":1e999,"n":"v","v":1}'), "out of range"),
    (heat('{"bn":"d:","bt":1e300,"n":"v","v":1}'), "row 1 of a pack of heat"),
    (heat('{"bn":"d:","bt":-62135596801,"n":"v","v":1}'), "outside the years 1 to 9999"),
    (heat('{"bn":"d:","bt":253402300800,"n":"v","v":1}'), "outside the years 1 to 9999"),
    (heat('{"bn":"d:","bt":1e9,"n":"v","vs":"hot"}'), "is not a INTEGER"),
    (heat('{"bn":"d:","bt":1e9,"n":"nobody","v":1}'), "unknown column 'nobody'"),
    (heat(ROW, more=',"d":[9223372036854775807]'), "is withdrawn"),
    (heat(days(2_001)), "of 2,001 days; the max is 2,000"),
    (b'{"epoch":1,"seq":5,"layout":4711,"e":[' + ROW.encode() + b"]}", "another definition"),
)


def test_a_poisoned_reading_is_a_letter_and_the_batch_goes_on(landing: Landing) -> None:
    bad = [LandedMessage(TOPIC, payload, AT) for payload, _ in POISON]
    report = landing.run(0, landing.land(birth(HEAT), pack(1), *bad, pack(2)))
    assert values(landing.lake) == [1, 1, 2, 2]
    assert report.dead == len(POISON)
    reasons = {row["payload"]: str(row["reason"]) for row in messages(landing.lake, "dead_letters")}
    for payload, reason in POISON:
        assert reason in reasons[payload], payload[:80]


def test_numbers_that_jump_are_numbers(landing: Landing) -> None:
    far = [LandedMessage(TOPIC, heat(ROW, seq=seq), AT) for seq in (2**62, 2**63 - 1)]
    landing.run(0, landing.land(birth(HEAT), pack(1), *far, pack(2)))
    assert landing.run(1, landing.land(*far, pack(3))).repeated == 2
    assert values(landing.lake) == [1, 1, 1, 1, 2, 2, 3, 3]
    landing.pipeline.close()
    landing.pipeline = landing.opened("another checkpoint")
    assert landing.run(2, landing.land(*far, pack(1))).repeated == 3


def test_readings_of_any_year_are_kept_on_their_days(landing: Landing) -> None:
    times = (-62_135_596_800, -2_208_988_800.5, -1, 0, 253_402_300_799)
    found = [
        LandedMessage(TOPIC, heat(f'{{"bn":"d:","bt":{ts},"n":"v","v":7}}', seq=50 + n), AT)
        for n, ts in enumerate(times)
    ]
    landing.run(0, landing.land(birth(HEAT), pack(1), *found))
    assert values(landing.lake) == [1, 1, 7, 7, 7, 7, 7]
    for ts in times:  # each is on the day that a query of its time reads
        begin = int(ts * 1_000_000)
        scan = landing.lake.plan("heat", begin, begin + 1)
        assert len(scan.files) == 1
        assert sum(batch.num_rows for batch in scan.batches()) == 1
    assert len(landing.lake.plan("heat", AT, AT + DAY).files) == 1


def test_many_days_in_a_pack_take_no_time_that_grows_with_their_square(landing: Landing) -> None:
    message = LandedMessage(TOPIC, heat(days(20_000, step=60.0)), AT)
    report = landing.run(0, landing.land(birth(HEAT), message))
    assert (report.rows, report.dead) == (20_000, 0)
    assert len(landing.lake.plan("heat").files) == 14


def strange(name: str, columns: Columns, *, seq: int = 1) -> list[LandedMessage]:
    """Return the birth of a source as no catalog would make it, and a pack of it."""
    shape = SourceShape(name, False, columns)
    records: list[dict[str, object]] = [{"n": each, "v": 1.5} for each, _ in columns]
    records[0] |= {"bn": "dev:", "bt": AT / 1_000_000}
    layout = layout_of(definition_of_shape(shape).scan())
    content = {"epoch": 1, "seq": seq, "e": records, "layout": layout}
    born = encode_json(Birth("gw-9", 1, 0, AT, shapes=(shape,)))
    return [
        LandedMessage(TOPICS.birth("gw-9"), born, AT),
        LandedMessage(TOPICS.observation("gw-9", name), json.dumps(content).encode(), AT),
    ]


NAMES = ("é" * 60, "x" * 900, "x' OR \"1\"='1'; --", " ", "..", "a\tb", "\N{GRINNING FACE}")
COLUMNS: tuple[Columns, ...] = (
    (("a.b", "DOUBLE"), ("a", "DOUBLE")),
    (("A", "DOUBLE"), ("a", "DOUBLE")),
    (("_gateway", "DOUBLE"), ("_event_time", "DOUBLE")),
    (("x'\"`;--", "DOUBLE"), ("..", "DOUBLE"), (".", "DOUBLE")),
)


def test_a_source_may_have_any_name_that_a_topic_has(landing: Landing) -> None:
    sent = [strange(name, (("v", "DOUBLE"),), seq=seq) for seq, name in enumerate(NAMES)]
    landing.run(0, landing.land(birth(HEAT), *(each for two in sent for each in two), pack(1)))
    assert values(landing.lake) == [1, 1]
    for name in NAMES:
        assert values(landing.lake, name) == [1.5]
        folder = landing.folder / "lake" / "readings" / folder_of(name)
        assert len([path for path in folder.rglob("*.parquet") if path.is_file()]) == 1


def test_columns_may_have_any_name(landing: Landing) -> None:
    sent = [strange(f"odd{n}", columns, seq=n) for n, columns in enumerate(COLUMNS)]
    landing.run(0, landing.land(birth(HEAT), *(each for two in sent for each in two), pack(1)))
    assert values(landing.lake) == [1, 1]
    for n, columns in enumerate(COLUMNS):
        kept = landing.lake.columns_of(landing.lake.table(f"odd{n}"))
        for name, _ in columns:
            column = next(each.column for each in kept.columns if each.name == name)
            assert values(landing.lake, f"odd{n}", column) == [1.5]


def test_a_source_that_the_lake_cannot_take_stops_no_other(landing: Landing) -> None:
    wide = tuple((f"c{number}", "DOUBLE") for number in range(2_001))
    report = landing.run(0, landing.land(birth(HEAT), *strange("wide", wide), pack(1)))
    assert values(landing.lake) == [1, 1]
    assert report.dead == 1
    (letter,) = messages(landing.lake, "dead_letters")
    reason = str(letter["reason"])
    assert reason.startswith("the lake cannot take source 'wide'")
    assert "2,001 columns" in reason


@pytest.mark.parametrize("checkpoint", ["one", "another"])
def test_a_table_that_is_damaged_stops_no_other_source(checkpoint: str, landing: Landing) -> None:
    odd = (("v", "DOUBLE"),)
    landing.run(0, landing.land(birth(HEAT), *strange("odd", odd), pack(1)))
    for path in (landing.folder / "lake" / "readings" / "odd" / "metadata").glob("*.json"):
        path.write_text("{", encoding="utf-8")
    landing.pipeline.close()
    landing.pipeline = landing.opened(checkpoint)
    report = landing.run(1, landing.land(*strange("odd", odd, seq=2), pack(2)))
    assert values(landing.lake) == [1, 1, 2, 2]
    assert report.dead == 1
    # Queries of its past say so; those of other sources are answered.
    past = PastReadings(landing.lake)
    plans = []
    for name in ("odd", "heat"):
        known = catalog_of(f"CREATE SOURCE {name} (v DOUBLE)")
        query = bound_query(f"SELECT v FROM {name} FOR SYSTEM_TIME ALL", known)
        plans.append(fixed(query.plan, AT + 9 * DAY))
    past.look(plans)
    problem = past.problem(plans[0])
    assert problem is not None
    assert "cannot read the lake" in problem.message
    assert past.problem(plans[1]) is None
    assert past.rows(plans[1]) == 4
    tables, _ = LakeFigures(landing.lake).tables()
    assert {table.name for table in tables if table.problem} == {"odd"}


def test_no_damage_of_a_segment_stops_the_pipeline_or_makes_a_row(landing: Landing) -> None:
    """Of a damaged segment all is kept or nothing; nothing that nobody has sent."""
    landing.run(0, landing.land(birth(HEAT)))
    chance = random.Random(5)
    sent: dict[int, list[int]] = {}
    number = 0
    for batch in range(1, 13):
        segments = []
        for _ in range(4):
            packs = [pack(number := number + 1) for _ in range(3)]
            path = landing.land(*packs)
            content = bytearray(path.read_bytes())
            for _ in range(chance.choice((1, 1, 3))):
                content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
            path.write_bytes(content)
            segments.append(path)
            sent[len(sent)] = [number - 2, number - 1, number]
        whole = landing.land(pack(number := number + 1))
        sent[len(sent)] = [number]
        landing.run(batch, *segments, whole)
    kept = values(landing.lake)
    letters = messages(landing.lake, "dead_letters")
    aside = len(list((landing.folder / "damaged").iterdir()))
    assert aside > 20
    assert not letters, [str(each["reason"]) for each in letters]
    for numbers in sent.values():
        found = sorted(each for each in kept if each in numbers)
        assert found in ([], sorted([*numbers, *numbers]))
    assert set(kept) <= {each for numbers in sent.values() for each in numbers}


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOMEM, errno.ESTALE])
def test_a_segment_that_cannot_be_read_just_now_is_not_taken_for_damaged(
    number: int, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = landing.land(birth(HEAT), pack(1))
    with monkeypatch.context() as patched:

        def refused(*_: object, **__: object) -> None:
            raise OSError(number, "not now")

        patched.setattr(pq, "ParquetFile", refused)
        with pytest.raises(OSError, match="not now"):
            landing.run(0, segment)
    assert segment.exists()
    landing.run(0, segment)
    assert values(landing.lake) == [1, 1]
    assert pq.read_metadata(segment).num_rows == 2
