"""Measured fragments: counts are those that the broker saw, since the query began to read them."""

from collections import Counter
from typing import Any

from federated_optimizer.coordinator.explaining import measured_fragments

AT_BASE = "SELECT l.src, l.dst, r.status FROM Link l JOIN RoomSensor r ON l.dst = r.rid"
JOIN = f"{AT_BASE} WITH (plan = 1)"
LEFT = AT_BASE.replace("JOIN", "LEFT JOIN")


def feed(federation: Any) -> None:
    federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
    federation.sites["gw-2"].put("link", ("a", "r1", 1.0))


class Observed:
    """Messages that the broker carries of a run from now on, by sender."""

    def __init__(self, federation: Any) -> None:
        self.messages: Counter[tuple[str, str]] = Counter()
        self.bytes: Counter[tuple[str, str]] = Counter()
        route = federation.broker.route

        def noting(topic: str, payload: bytes, qos: int, *, retain: bool) -> None:
            parts = federation.topics.parts(topic)
            if parts[0] == "q" and parts[2] in {"x", "out"}:
                self.messages[parts[1], parts[-1]] += 1
                self.bytes[parts[1], parts[-1]] += len(payload)
            route(topic, payload, qos, retain=retain)

        federation.broker.route = noting


async def moved(harness: Any, federation: Any, coordinator: Any, query: str, *states: str) -> None:
    """Let the room's state change, and wait until the query shows each."""
    for state in states:
        federation.sites["gw-1"].put("roomsensor", ("r1", state))
        await harness.until_rows(coordinator, query, [("a", "r1", state)])


def sent(coordinator: Any, query: str) -> dict[str, dict[str, int]]:
    data = coordinator.explain(query).data
    return {f["id"]: f["measured"]["sent"] for f in data["fragments"] if f["measured"]}


def test_a_query_of_a_shared_run_counts_from_its_own_start(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        whole = Observed(federation)
        feed(federation)
        first = await harness.start_query(coordinator, JOIN)
        await moved(harness, federation, coordinator, first, "shut", "open", "shut")
        await harness.until(lambda: coordinator.query(first).settled, "settled")
        second = await harness.start_query(coordinator, JOIN)
        since = Observed(federation)
        assert all(
            count == 0 for each in sent(coordinator, second).values() for count in each.values()
        )
        await moved(harness, federation, coordinator, second, "open", "shut")
        for query, seen in ((first, whole), (second, since)):
            wanted = {
                "f0": seen.messages[first, "base"],
                "f1 and f2": seen.messages[first, "gw-1"] + seen.messages[first, "gw-2"],
            }

            def told(query: str = query) -> dict[str, int]:
                found = sent(coordinator, query)
                return {
                    "f0": found["f0"]["messages"],
                    "f1 and f2": found["f1"]["messages"] + found["f2"]["messages"],
                }

            await harness.until(lambda t=told, w=wanted: t() == w, f"{query}: {told()} {wanted}")
            assert sent(coordinator, query)["f0"]["bytes"] == seen.bytes[first, "base"]
        assert since.messages[first, "base"] == 2
        data, text = coordinator.explain(second).data, coordinator.explain(second).text
        assert data["batches"]["base"]["sent"] == data["traffic"]["base"]["batches"] == 2
        assert f"Sent since this query began to read run {first}: " in text
        assert "Sent since this query began: " in coordinator.explain(first).text

    harness.run(scenario)


def test_a_fed_fragment_is_counted_where_it_runs(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        feed(federation)
        first = await harness.start_query(coordinator, JOIN)
        await moved(harness, federation, coordinator, first, "shut", "open")
        await harness.until(lambda: coordinator.query(first).settled, "settled")
        left = await harness.start_query(coordinator, LEFT)
        await harness.until(lambda: coordinator.query(left).settled, "settled")
        await moved(harness, federation, coordinator, left, "shut", "open", "shut")
        wanted = {"f1": (0, 0), "f2": (3, 6)}

        def found() -> dict[str, tuple[int, int]]:
            told = sent(coordinator, left)
            return {name: (told[name]["messages"], told[name]["rows"]) for name in wanted}

        await harness.until(lambda: found() == wanted, f"{found()}")
        fragments = {f["id"]: f for f in coordinator.explain(left).data["fragments"]}
        runs = [fragments[name]["measured"]["run"] for name in ("f0", "f1", "f2")]
        assert runs == [None, first, first]
        text = coordinator.explain(left).text
        assert "Sent since this query began: " in text
        assert f"began to read run {first}, which other queries read, too: f1 0 rows, 0 m" in text

    harness.run(scenario)


def test_a_result_that_a_query_reads_at_its_site_is_not_counted_as_sent(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        feed(federation)
        first = await harness.start_query(coordinator, AT_BASE)
        await moved(harness, federation, coordinator, first, "shut", "open")
        part = await harness.start_query(coordinator, f"{AT_BASE} WHERE r.status = 'open'")
        await harness.until_rows(coordinator, part, [("a", "r1", "open")])
        assert coordinator.query(part).run == part
        await moved(harness, federation, coordinator, first, "shut", "open", "shut")
        await harness.until_rows(coordinator, part, [])
        await harness.until(lambda: "f0" in sent(coordinator, part), "the base has reported")
        told = coordinator.explain(part).text
        assert "Fragment f1 reads node" in told
        assert "f1" not in sent(coordinator, part)
        assert "! f1" not in told

    harness.run(scenario)


def test_after_a_restart_of_the_coordinator_a_shared_query_counts_from_there(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        whole = Observed(federation)
        feed(federation)
        first = await harness.start_query(coordinator, JOIN)
        second = await harness.start_query(coordinator, JOIN)
        await moved(harness, federation, coordinator, first, "shut", "open", "shut")
        await coordinator.close()
        federation.coordinators.remove(coordinator)
        before = whole.messages[first, "base"]
        assert before >= 4
        again = await federation.coordinator()
        await harness.until(lambda: again.query(first).settled, "settled")
        running = again._queries.find(second)
        await harness.until(lambda: running.flows.marked("base") is not None, "marked")
        # It may have been asked for the result more than once by then, and answer after the mark.
        marked = running.flows.marked("base")[1].traffic.batches
        assert marked >= before
        await moved(harness, federation, again, second, "open", "shut")

        def told() -> tuple[int, int]:
            counts = (sent(again, query)["f0"]["messages"] for query in (first, second))
            return next(counts), next(counts)

        def wanted() -> tuple[int, int]:
            all_sent = whole.messages[first, "base"]
            return all_sent, all_sent - marked

        await harness.until(lambda: told() == wanted(), f"counted: {told()} {wanted()}")
        assert told()[1] >= 2
        assert again.explain(second).data["batches"]["base"]["sent"] == told()[1]

    harness.run(scenario)


def test_rates_are_measured_beside_what_was_expected(harness: Any, monkeypatch: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        feed(federation)
        query = await harness.start_query(coordinator, JOIN)
        await harness.until(lambda: coordinator.query(query).settled, "settled")
        running = coordinator._queries.find(query)
        await harness.until(lambda: running.flows.marked("gw-1") is not None, "marked")
        seen = Observed(federation)
        before = sent(coordinator, query)["f2"]["messages"]
        await moved(harness, federation, coordinator, query, "shut", "open", "shut", "open")
        await harness.until(
            lambda: sent(coordinator, query)["f2"]["messages"] >= before + 4, "they are counted"
        )
        start = max(running.flows.marked(site)[0] for site in ("gw-1", "gw-2", "base"))
        monkeypatch.setattr(measured_fragments, "monotonic_clock", lambda: start + 1_000_000_000)
        shown = coordinator.explain(query)
        f2 = next(f for f in shown.data["fragments"] if f["id"] == "f2")
        assert f2["measured"]["messages_per_second"] == round(4 / f2["measured"]["seconds"], 3)
        assert f2["measured"]["rows_per_second"] == round(8 / f2["measured"]["seconds"], 3)
        assert f2["measured"]["milliseconds"] is not None
        # Estimates of bytes have 48 for the header and topic of a message.
        around = seen.bytes[query, "gw-1"] + 48 * seen.messages[query, "gw-1"]
        assert f2["measured"]["bytes_per_second"] == round(around / f2["measured"]["seconds"], 3)
        assert "messages_per_second" in f2["measured"]["beyond"]
        assert "! f2 messages/s: 0.00" in shown.text
        monkeypatch.setattr(measured_fragments, "monotonic_clock", lambda: start)
        shown = coordinator.explain(query)
        assert "No rates are measured yet" in shown.text

    harness.run(scenario)
