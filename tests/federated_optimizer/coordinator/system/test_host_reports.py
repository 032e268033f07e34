"""Reports of the coordinator's results: of many queries what has changed, and the rest in turns."""

from types import SimpleNamespace
from typing import Any

import pytest

from federated_optimizer.coordinator.system import host_reports
from federated_optimizer.coordinator.system.host_reports import PERIOD_SECONDS, TURNS, HostReports
from streamsql.wire.codec import decode_json
from streamsql.wire.messages import SystemRows

MANY = 40


class Reported:
    """Results of queries, and what is published of them."""

    def __init__(self, count: int) -> None:
        self.queries = [
            SimpleNamespace(
                id=f"q{n}", result=SimpleNamespace(size=0, changes=0, readers=()), warnings=()
            )
            for n in range(count)
        ]
        self.packs: list[bytes] = []
        shared: Any = SimpleNamespace(
            settings=SimpleNamespace(static="static", host="coordinator"),
            presence=SimpleNamespace(epoch=1),
            topics=SimpleNamespace(reports=lambda _s: "ask", observation=lambda *_: "told"),
            client=SimpleNamespace(publish=self._publish),
        )
        self._reports = HostReports(shared)
        self._now = 0

    def _publish(self, topic: str, payload: bytes, **_options: Any) -> None:
        if topic == "told":
            self.packs.append(payload)

    def look(self, *, wanted: bool = True) -> set[str]:
        """Return the queries of the next report."""
        self._now += int(PERIOD_SECONDS * 1_000_000)
        before = len(self.packs)
        everyone: Any = lambda: self.queries  # noqa: E731
        self._reports.look(wanted, everyone, self._now)
        packs = self.packs[before:]
        return {row[0] for pack in packs for row in decode_json(pack, SystemRows).rows}


def test_few_are_reported_each_time_and_only_while_somebody_reads() -> None:
    reported = Reported(MANY)
    assert reported.look(wanted=False) == set()
    assert len(reported.look()) == len(reported.look()) == MANY


def test_of_many_each_has_its_turn_and_what_changes_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host_reports, "MOST_QUIET", 10)
    reported = Reported(MANY)
    assert len(reported.look()) == MANY  # nobody has been told of any of them
    turns = [reported.look() for _ in range(TURNS)]
    assert set().union(*turns) == {query.id for query in reported.queries}
    assert {len(turn) for turn in turns} == {MANY // TURNS}
    for query in reported.queries[3:6]:
        query.result.changes += 1
    assert {"q3", "q4", "q5"} <= reported.look()
    assert len(reported.look()) == MANY // TURNS
