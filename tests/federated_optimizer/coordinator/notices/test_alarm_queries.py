"""Alarms and displays of a whole federation: raised, cleared, kept over restarts, in use."""

import asyncio
import threading
from typing import Any

import pytest

from federated_optimizer.alarm_life_cycle import AlarmRow, AlarmState
from federated_optimizer.coordinator.contract.coordinator_model import ChangeBatch
from federated_optimizer.coordinator.notices import followed_answers
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from host.clocks import monotonic_clock
from host.mqtt import Message
from streamsql.errors import BindingError
from streamsql.wire.alarm_messages import AlarmChange
from streamsql.wire.codec import decode_json, encode_json
from streamsql.wire.site_messages import SiteRole, SiteState
from tests.loop_turns import loop_turns

ALARM = "CREATE ALARM open AS SELECT rid FROM RoomSensor WHERE status = 'open' SEVERITY 'warning'"


def states(coordinator: Any) -> list[tuple[str, AlarmState]]:
    (info,) = coordinator.alarms()
    return [(row.row[0], row.state) for row in info.rows]


def test_an_alarm_is_raised_and_cleared_and_survives_a_restart(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        first = await federation.standard()
        (made,) = await first.execute(ALARM)
        assert made.message == "alarm open created"
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        federation.sites["gw-2"].put("roomsensor", ("r2", "open"))
        await harness.until(lambda: first.alarms()[0].raised == 2)
        federation.sites["gw-2"].put("roomsensor", ("r2", "dark"))
        await harness.until(lambda: states(first)[-1:] == [("r2", AlarmState.CLEARED)])
        (row,) = [row for row in first.alarms()[0].rows if row.row == ("r1",)]
        first.acknowledge(row.id)
        with pytest.raises(KeyError):
            first.acknowledge(4711)
        with pytest.raises(KeyError):
            first.acknowledge_all("closed")
        (shown,) = await first.execute("SHOW ALARMS")
        assert shown.rows[0][:4] == ("open", "warning", "raised", 1)
        await first.close()  # at once
        federation.sites["gw-1"].put("roomsensor", ("r3", "open"))  # while nobody listens
        second = await federation.coordinator()
        assert ("r1", AlarmState.ACKNOWLEDGED) in states(second)
        assert second.acknowledge(row.id).raised == row.raised
        expected = {
            ("r1", AlarmState.ACKNOWLEDGED),
            ("r3", AlarmState.RAISED),
            ("r2", AlarmState.CLEARED),
        }
        await harness.until(lambda: set(states(second)) == expected)
        numbers = [row.id for row in second.alarms()[0].rows]
        assert len(set(numbers)) == 3
        federation.sites["gw-1"].put("roomsensor", ("r1", "dark"), ("r3", "dark"))
        await harness.until(lambda: second.alarms()[0].raised == 0)
        assert second.alarms()[0].state == "clear"

    harness.run(scenario)


async def with_open_rooms(
    harness: Any, federation: Any, rooms: dict[str, tuple[str, ...]], gateways: int = 2
) -> Any:
    """Return a coordinator whose alarm is raised for rooms that sensors of gateways see open."""
    coordinator = await federation.standard(gateways=gateways)
    await coordinator.execute(ALARM)
    for site, names in rooms.items():
        federation.sites[site].put("roomsensor", *((name, "open") for name in names))
    count = sum(map(len, rooms.values()))
    await harness.until(lambda: coordinator.alarms()[0].raised == count)
    return coordinator


async def crash(federation: Any, site: str) -> None:
    """Cut a site's link, so that the broker sends its will, and end it."""
    federation.broker.cut(site)
    await federation.sites[site].stop()


def test_what_a_dead_gateway_fed_is_unknown_until_it_is_back(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await with_open_rooms(
            harness, federation, {"gw-1": ("r1",), "gw-2": ("r2", "r3")}
        )
        ids = {row.row[0]: row.id for row in coordinator.alarms()[0].rows}
        coordinator.acknowledge(ids["r2"])
        await crash(federation, "gw-2")
        raised, unknown = AlarmState.RAISED, AlarmState.UNKNOWN
        await harness.until(
            lambda: set(states(coordinator)) == {("r1", raised), ("r2", unknown), ("r3", unknown)}
        )
        (info,) = coordinator.alarms()
        assert (info.state, info.unknown, info.away) == ("raised", 2, ("gw-2",))
        # Once the query has settled without the gateway, what others take back is cleared.
        followed = coordinator._alarms._followed["open"]
        await harness.until(lambda: followed._missing == {"gw-2"})
        federation.sites["gw-1"].put("roomsensor", ("r1", "dark"))
        await harness.until(lambda: ("r1", AlarmState.CLEARED) in states(coordinator))
        assert coordinator.alarms()[0].state == "unknown"
        # It stays unknown over a restart of the coordinator.
        await coordinator.close()
        coordinator = await federation.coordinator()
        await harness.until(lambda: coordinator._alarms._followed["open"].is_met)
        found = [(row, state) for row, state in states(coordinator) if row != "r1"]
        assert sorted(found) == [("r2", unknown), ("r3", unknown)]
        # The gateway is back: one room is as it was, the other has changed meanwhile.
        back = await federation.site("gw-2", epoch=2)
        back.put("roomsensor", ("r2", "open"), ("r3", "dark"))
        expected = {
            ("r1", AlarmState.CLEARED),
            ("r2", AlarmState.ACKNOWLEDGED),
            ("r3", AlarmState.CLEARED),
        }
        await harness.until(lambda: set(states(coordinator)) == expected)
        assert {row.row[0]: row.id for row in coordinator.alarms()[0].rows} == ids
        assert coordinator.alarms()[0].unacknowledged == 2
        assert coordinator.acknowledge_all("open") == 2
        assert coordinator.alarms()[0].unacknowledged == 0

    harness.run(scenario)


def test_counts_that_pass_while_a_gateway_comes_back_raise_nothing(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        await coordinator.execute(
            "CREATE ALARM many AS SELECT COUNT(*) AS n FROM RoomSensor HAVING COUNT(*) > 2 "
            "SEVERITY 'info'"
        )
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"), ("r2", "open"))
        federation.sites["gw-2"].put("roomsensor", ("r3", "open"), ("r4", "open"))
        book = coordinator._alarms._followed["many"].book
        await harness.until(lambda: coordinator.alarms()[0].raised == 1)
        (whole,) = [row for row in book.rows if row.row == (4,)]
        seen = {row.id for row in book.rows}
        await crash(federation, "gw-2")
        await harness.until(lambda: coordinator.alarms()[0].unknown == 1)
        back = await federation.site("gw-2", epoch=2)
        await harness.until(
            lambda: coordinator.sites() and coordinator._shared.membership.is_online("gw-2")
        )
        back.put("roomsensor", ("r3", "open"))
        back.put("roomsensor", ("r4", "open"))
        await harness.until(lambda: coordinator.alarms()[0].raised == 1)
        await harness.until(lambda: coordinator.query("alarm many").settled)
        assert {row.id for row in book.rows} <= seen
        assert next(row for row in book.rows if row.id == whole.id).state == AlarmState.RAISED

    harness.run(scenario)


def test_a_gateway_that_is_removed_leaves_nothing_unknown(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await with_open_rooms(harness, federation, {"gw-2": ("r2",)})
        await crash(federation, "gw-2")
        await harness.until(lambda: states(coordinator) == [("r2", AlarmState.UNKNOWN)])
        await coordinator.remove_gateway("gw-2")
        await harness.until(lambda: states(coordinator) == [("r2", AlarmState.CLEARED)])

    harness.run(scenario)


def test_a_base_site_that_restarts_clears_nothing(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await with_open_rooms(harness, federation, {"gw-1": ("r1",)}, gateways=1)
        seen: list[AlarmState] = []
        book = coordinator._alarms._followed["open"].book
        note = book._note

        def noted(entry: AlarmRow) -> None:
            seen.append(entry.state)
            note(entry)

        book._note = noted
        await crash(federation, "base")
        await harness.until(lambda: coordinator.alarms()[0].status == "degraded")
        await federation.site("base", "base", epoch=2)
        await harness.until(lambda: coordinator.alarms()[0].status == "running")
        await harness.until(lambda: coordinator.query("alarm open").settled)
        assert states(coordinator) == [("r1", AlarmState.RAISED)]
        assert AlarmState.CLEARED not in seen

    harness.run(scenario)


def test_rows_that_go_before_a_query_has_settled_again_are_unknown(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await with_open_rooms(harness, federation, {"gw-2": ("r2",)})
        followed = coordinator._alarms._followed["open"]
        await harness.until(followed.query.is_settled)
        # The broker was away. All sites are heard again, and then a base retracts a gateway's rows
        # that it had given up meanwhile.
        with monkeypatch.context() as patch:
            patch.setattr(RunningQuery, "is_settled", lambda _self: False)
            coordinator._shared.membership.lost_touch(monotonic_clock())
            followed.look()
            assert followed.away == {"base", "gw-1", "gw-2"}
            for site in followed.away:
                coordinator._shared.membership.hear_live(site, 1)
            assert not followed.away
            federation.sites["gw-2"].put("roomsensor", ("r2", "dark"))
            await harness.until(lambda: states(coordinator) != [("r2", AlarmState.RAISED)])
            assert states(coordinator) == [("r2", AlarmState.UNKNOWN)]
        await harness.until(lambda: states(coordinator) == [("r2", AlarmState.CLEARED)])

    harness.run(scenario)


def never_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """No query settles from now on, as under a constant stream of readings."""
    monkeypatch.setattr(RunningQuery, "is_settled", lambda _self: False)


def leave_and_return(federation: Any, coordinator: Any, site: str) -> None:
    """Deliver a will and the state after it in one burst: no look of the alarms comes between."""
    epoch = federation.sites[site].epoch
    burst = []
    for online in (False, True):
        state = SiteState(
            online=online, epoch=epoch, ts=coordinator._shared.clock(), role=SiteRole.GATEWAY
        )
        burst.append(Message(federation.topics.state(site), encode_json(state)))
    coordinator._receiver.on_messages(burst)


@pytest.mark.usefixtures("impatient")
def test_a_query_that_never_settles_decides_its_rows_after_a_bound(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await with_open_rooms(harness, federation, {"gw-2": ("r2", "r3", "r4")})
        await harness.until(lambda: coordinator.query("alarm open").settled)
        ids = {row.row[0]: row.id for row in coordinator.alarms()[0].rows}
        coordinator.acknowledge(ids["r3"])
        coordinator.acknowledge(ids["r4"])
        never_settled(monkeypatch)
        before = coordinator._shared.clock()
        leave_and_return(federation, coordinator, "gw-2")
        federation.sites["gw-2"].put("roomsensor", ("r2", "dark"), ("r3", "dark"), ("r4", "dark"))
        await harness.until(lambda: coordinator.alarms()[0].unknown == 3)
        (info,) = coordinator.alarms()
        assert (info.state, info.away) == ("unknown", ())
        assert before <= info.unsettled_since <= coordinator._shared.clock()
        federation.sites["gw-2"].put("roomsensor", ("r4", "open"))
        await harness.until(lambda: ("r4", AlarmState.ACKNOWLEDGED) in states(coordinator))
        # All sites are there, and have reported: no retraction of that absence can come any more.
        monkeypatch.setattr(followed_answers, "DOUBT_MICROSECONDS", 0)
        cleared = {("r2", AlarmState.CLEARED), ("r3", AlarmState.CLEARED)}
        await harness.until(lambda: cleared < set(states(coordinator)))
        (info,) = coordinator.alarms()
        assert (info.unknown, info.unsettled_since, info.unacknowledged) == (0, None, 1)
        federation.sites["gw-2"].put("roomsensor", ("r4", "dark"))
        await harness.until(lambda: ("r4", AlarmState.ACKNOWLEDGED) not in states(coordinator))
        assert ("r4", AlarmState.CLEARED) in states(coordinator)
        assert {row.row[0]: row.id for row in coordinator.alarms()[0].rows} == ids

    harness.run(scenario)


@pytest.mark.usefixtures("impatient")
def test_the_bound_waits_for_a_report_of_every_site_that_is_there(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await with_open_rooms(harness, federation, {"gw-2": ("r2",)})
        followed = coordinator._alarms._followed["open"]
        await harness.until(followed.query.is_settled)
        never_settled(monkeypatch)
        monkeypatch.setattr(followed_answers, "DOUBT_MICROSECONDS", 0)
        leave_and_return(federation, coordinator, "gw-2")
        followed.look()
        followed.query.result.answer._show({("r2",): -1}, None)
        assert states(coordinator) == [("r2", AlarmState.UNKNOWN)]
        await harness.until(lambda: states(coordinator) == [("r2", AlarmState.CLEARED)])
        assert not followed.query.flows.outdated

    harness.run(scenario)


def test_a_site_that_is_back_before_the_next_look_was_away(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await with_open_rooms(harness, federation, {"gw-1": ("r1",), "gw-2": ("r2",)})
        followed = coordinator._alarms._followed["open"]
        await harness.until(lambda: not followed._is_unsettled)
        result = followed.query.result
        never_settled(monkeypatch)
        leave_and_return(federation, coordinator, "gw-2")
        result.answer._show({("r2",): -1}, None)
        assert states(coordinator) == [("r2", AlarmState.UNKNOWN), ("r1", AlarmState.RAISED)]
        result.answer._show({("r3",): 1}, None)  # new rows wait: the answer is filled again
        assert ("r3", AlarmState.WAITING) in states(coordinator)
        # So it is when the broker was away between two looks.
        followed._is_unsettled = False
        coordinator._on_connection(False)
        coordinator._on_connection(True)
        for site in followed.away:
            coordinator._shared.membership.hear_live(site, 1)
        assert not followed.away
        result.answer._show({("r1",): -1}, None)
        assert ("r1", AlarmState.UNKNOWN) in states(coordinator)

    harness.run(scenario)


def test_a_site_that_restarts_without_a_will_was_away(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await with_open_rooms(harness, federation, {"gw-2": ("r2",)})
        followed = coordinator._alarms._followed["open"]
        await harness.until(lambda: not followed._is_unsettled)
        never_settled(monkeypatch)
        state = SiteState(
            online=True, epoch=2, ts=coordinator._shared.clock(), role=SiteRole.GATEWAY
        )
        message = Message(federation.topics.state("gw-2"), encode_json(state))
        coordinator._receiver.on_messages([message])
        followed.query.result.answer._show({("r2",): -1}, None)
        assert states(coordinator) == [("r2", AlarmState.UNKNOWN)]

    harness.run(scenario)


def test_an_answer_shown_in_part_is_doubted_for_a_bounded_time(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await with_open_rooms(harness, federation, {"gw-2": ("r2", "r3")})
        followed = coordinator._alarms._followed["open"]
        await harness.until(lambda: followed.query.started and not followed._is_unsettled)
        never_settled(monkeypatch)
        monkeypatch.setattr(RunningQuery, "has_arrived", lambda _self: False)
        result = followed.query.result
        result.answer._hold()
        result.release(is_partial=True)
        result.answer._show({("r2",): -1}, None)
        assert states(coordinator) == [("r3", AlarmState.RAISED), ("r2", AlarmState.UNKNOWN)]
        monkeypatch.setattr(followed_answers, "DOUBT_MICROSECONDS", 0)
        result.answer._show({("r3",): -1}, None)
        assert ("r3", AlarmState.CLEARED) in states(coordinator)
        await harness.until(lambda: ("r2", AlarmState.CLEARED) in states(coordinator))

    harness.run(scenario)


def test_rows_that_are_being_written_do_not_outlive_their_alarm(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        await coordinator.execute(ALARM)
        store = coordinator._shared.store
        put, drop = store.put_alarm_rows, store.drop_alarm
        began, may_go = threading.Event(), threading.Event()
        done = []

        def slowly(changed: Any) -> None:
            began.set()
            assert may_go.wait(60)
            put(changed)
            done.append("rows written")

        def noted(name: str) -> None:
            drop(name)
            done.append("alarm dropped")

        monkeypatch.setattr(store, "put_alarm_rows", slowly)
        monkeypatch.setattr(store, "drop_alarm", noted)
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        await harness.until(began.is_set)
        dropping = asyncio.create_task(coordinator.execute("DROP ALARM open"))
        await harness.until(lambda: coordinator.alarms() == ())
        await loop_turns()  # it would begin to drop the rows that are not there yet
        may_go.set()
        await dropping
        assert done == ["rows written", "alarm dropped"]
        assert store.alarm_rows() == {}

    harness.run(scenario)


def test_an_alarm_that_comes_and_goes_between_two_looks_is_not_missed(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        await coordinator.execute(ALARM)
        (info,) = coordinator.alarms()
        await harness.until(lambda: coordinator._alarms._followed["open"].is_met)
        result = coordinator._find(info.query).result
        result.answer._show({("r1",): 1}, None)
        result.answer._show({("r1",): -1}, None)
        assert states(coordinator) == [("r1", AlarmState.CLEARED)]

    harness.run(scenario)


def test_for_goes_by_the_time_in_the_answer(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        await coordinator.execute(f"{ALARM} FOR '1 h'")
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        await harness.until(lambda: states(coordinator) == [("r1", AlarmState.WAITING)])
        (info,) = coordinator.alarms()
        result = coordinator._find(info.query).result
        wall = coordinator._shared.clock()
        result.time.heard(wall + 7_200_000_000, wall)  # what a batch of a fast replay says
        await harness.until(lambda: states(coordinator) == [("r1", AlarmState.RAISED)])
        (row,) = coordinator.alarms()[0].rows
        assert row.raised == row.since + 3_600_000_000

    harness.run(scenario)


def test_what_alarms_and_displays_use_stays(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        await coordinator.execute(f"{ALARM}; CREATE DISPLAY lobby WITH (x = 1, y = 2)")
        (info,) = coordinator.alarms()
        with pytest.raises(BindingError, match="used by alarm open"):
            await coordinator.execute("DROP SOURCE RoomSensor")
        with pytest.raises(BindingError, match="belongs to alarm open") as refusal:
            await coordinator.stop(info.query)
        assert refusal.value.code == "in_use"
        query = await harness.start_query(
            coordinator, "SELECT rid FROM RoomSensor OUTPUT TO DISPLAY lobby", name="rooms"
        )
        assert coordinator.query(query).display == "lobby"
        with pytest.raises(BindingError, match="display 'lobby' is used by query rooms"):
            await coordinator.execute("DROP DISPLAY lobby")
        (shown,) = await coordinator.execute("SHOW DISPLAYS")
        assert shown.rows == (("lobby", "0", "1.0", "2.0", "", "rooms"),)
        (described,) = await coordinator.execute("DESCRIBE open")
        assert described.rows[-1] == ("", "", "alarm: warning")
        for number in range(2, 9):
            await harness.start_query(
                coordinator, f"SELECT rid, {number} AS n FROM RoomSensor OUTPUT TO DISPLAY lobby"
            )
        with pytest.raises(BindingError, match="already shows 8 results"):
            await coordinator.execute("SELECT status FROM RoomSensor OUTPUT TO DISPLAY lobby")
        await coordinator.execute("DROP ALARM open")
        assert coordinator.alarms() == ()
        assert info.query not in [found.id for found in coordinator.queries()]
        assert coordinator._shared.store.alarm_rows() == {}

    harness.run(scenario)


def test_a_query_keeps_its_display_over_a_restart(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        first = await federation.standard(gateways=1)
        await first.execute("CREATE DISPLAY lobby WITH (x = 1, y = 2)")
        query = await harness.start_query(
            first, "SELECT rid FROM RoomSensor OUTPUT TO DISPLAY lobby"
        )
        await first.close()
        second = await federation.coordinator()
        assert second.query(query).display == "lobby"
        with pytest.raises(BindingError, match="used by query"):
            await second.execute("DROP DISPLAY lobby")

    harness.run(scenario)


def test_progress_is_told_once_the_answer_has_settled(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        text = "SUBSCRIBE TO (SELECT rid, status FROM RoomSensor) WITH (PROGRESS)"
        query = await harness.start_query(coordinator, text)
        assert coordinator.query(query).progress
        reader = coordinator.subscribe(query, progress=True)
        plain = coordinator.subscribe(query)
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        seen: list[ChangeBatch] = []
        while not (seen and seen[-1].progress and any(b.changes for b in seen)):
            seen.append(await harness.next_batch(reader))
        assert coordinator.query(query).settled
        while not (seen[-1].changes):
            seen.append(await harness.next_batch(plain))
        assert all(batch.progress is None for batch in plain._waiting)
        await reader.close()
        await plain.close()

    harness.run(scenario)


def test_alarms_are_a_table_of_the_system(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        await coordinator.execute(ALARM)
        text = "SELECT alarm, severity, state, row, cleared IS NULL AS open FROM sys_alarms"
        query = await harness.start_query(coordinator, text)
        await harness.until_rows(coordinator, query, [])
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        raised = ("open", "warning", "raised", '{"rid":"r1"}', True)
        await harness.until_rows(coordinator, query, [raised])
        federation.sites["gw-1"].put("roomsensor", ("r1", "dark"))
        cleared = ("open", "warning", "cleared", '{"rid":"r1"}', False)
        await harness.until_rows(coordinator, query, [cleared])
        with pytest.raises(BindingError, match="an alarm about alarms would trigger itself"):
            await coordinator.execute(
                "CREATE ALARM many AS SELECT COUNT(*) AS n FROM sys_alarms SEVERITY 'info'"
            )

    harness.run(scenario)


def test_changes_of_alarms_are_published_for_the_lake(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        heard: list[AlarmChange] = []

        def take(burst: list[Message]) -> None:
            heard.extend(decode_json(message.payload, AlarmChange) for message in burst)

        reader = federation.broker.client("lander")
        reader.on_messages(take)
        await reader.connect()
        await reader.subscribe(federation.topics.alarms())
        coordinator = await with_open_rooms(harness, federation, {"gw-1": ("r1",)})
        federation.sites["gw-1"].put("roomsensor", ("r1", "dark"))
        await harness.until(lambda: coordinator.alarms()[0].raised == 0)
        await harness.until(lambda: [change.state for change in heard] == ["raised", "cleared"])
        assert {(change.alarm, change.columns, change.row) for change in heard} == {
            ("open", ("rid",), ("r1",))
        }
        assert heard[1].cleared is not None
        await reader.close()

    harness.run(scenario)
