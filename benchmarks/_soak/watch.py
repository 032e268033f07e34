"""Polls of all queries, each compared with the truth: what they say, and what they say of it."""

import re
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from benchmarks._soak.closing import TEXT, Windows
from benchmarks._soak.faults import CLOCK, JUMP_SECONDS, Fault
from benchmarks._soak.federation import FAKED, Federation
from benchmarks._soak.feed import GATEWAYS, SECOND, WINDOW, Feed
from benchmarks._soak.raised import Raised
from benchmarks._soak.truth import Gap, Row, Rows, Truth
from host.clocks import wall_clock
from streamsql.data.types import DataType, coerce

STALE_SECONDS = 20.0
"""From when on a settled answer without a reading is counted, though every gateway runs."""
CURRENT_SECONDS = 6.0
"""A query has recovered when it is settled, right and lacks nothing older."""
AFTERMATH = 30 * SECOND
"""How long after a fault what it has done may still be named for the first time."""
WINDOWS, ALARM_QUERY = "windows", "alarm"
EXAMPLES = 20

_STRETCH = re.compile(r"from (the beginning|[\d:. -]+ UTC) to ([\d:. -]+ UTC)")


@dataclass
class Tally:
    """Counts of poll results.

    Attributes:
        polls: Answers looked at.
        unanswered: Rounds of polls that the console did not answer to the end.
        settled: Answers that claimed to be complete.
        right: Of those: the truth of the gateways that are there.
        wrong: Of those: not the truth of any moment.
        explained: Degraded answers that lack only what they name.
        stale: Settled answers that lack readings of long ago of gateways that run.
        degraded: Answers that said that something is missing.
        unnamed: Of those: without a word what or who.
        gaps: Stretches named as missing.
        false_gaps: Of those: without any fault then.
        false_words: Windows given wrongly or twice, alarms cleared by a fault, and the like.
    """

    polls: int = 0
    unanswered: int = 0
    settled: int = 0
    right: int = 0
    wrong: int = 0
    explained: int = 0
    stale: int = 0
    degraded: int = 0
    unnamed: int = 0
    gaps: int = 0
    false_gaps: int = 0
    false_words: int = 0

    @property
    def lies(self) -> int:
        """Everything that must never be."""
        return self.wrong + self.unnamed + self.false_gaps + self.false_words


@dataclass(frozen=True)
class Episode:
    """When a fault was there, in microseconds; `until` grows while it lasts."""

    fault: Fault
    since: int
    until: int


@dataclass
class Watch:
    """All queries of a federation, and what was found so far.

    Attributes:
        tally: Where polls are counted now.
        examples: The first lies, in words.
        behind: What was not complete and right at the last poll.
        lag: The most seconds that a settled answer lacked, by query.
        named: What was said of each gap when it was first named.
    """

    federation: Federation
    truth: Truth
    feed: Feed
    tally: Tally = field(default_factory=Tally)
    examples: list[str] = field(default_factory=list)
    lag: Counter[str] = field(default_factory=Counter)
    named: list[str] = field(default_factory=list)
    episodes: list[Episode] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin with nothing seen."""
        self.windows, self.raised = Windows(self.feed), Raised(self.feed)
        self.ids: dict[str, str] = {}
        self._floors: dict[str, dict[str, int]] = {name: {} for name in self.truth.questions}
        self._ahead = 0
        self._gap_seen: set[str] = set()
        self.behind: list[str] = []

    def ask(self) -> None:
        """Start the queries and the alarm."""
        for name, question in self.truth.questions.items():
            if name == ALARM_QUERY:
                self.federation.run(f"CREATE ALARM high AS {question.text} SEVERITY 'critical'")
            else:
                self.ids[name] = self.federation.run(question.text)["query"]["id"]
        self.ids[WINDOWS] = self.federation.run(TEXT)["query"]["id"]
        (alarm,) = self.federation.get("/api/alarms")
        self.ids[ALARM_QUERY] = alarm["query"]

    def begin(self, fault: Fault) -> None:
        """Note that a fault begins."""
        self.episodes.append(Episode(fault, wall_clock(), wall_clock()))
        if fault.kind in CLOCK:
            self._ahead = JUMP_SECONDS * SECOND

    def poll(self, *, lasts: bool = False) -> bool:
        """Look at all queries once; whether all are current and right."""
        if self.episodes and lasts:
            last = self.episodes[-1]
            self.episodes[-1] = Episode(last.fault, last.since, wall_clock())
        try:
            self.behind = [name for name in self.ids if not self._poll_one(name)]
            if not self._poll_alarm():
                self.behind.append("rows of the alarm")
        except httpx.HTTPError:
            self.tally.unanswered += 1
            self.behind = ["the console"]
        return not self.behind

    def _poll_one(self, name: str) -> bool:
        asked = wall_clock()
        found = self.federation.get(f"/api/queries/{self.ids[name]}/rows")
        query, rows = found["query"], found["rows"]
        self.tally.polls += 1
        self.tally.settled += query["settled"]
        is_whole = query["settled"] and query["status"] == "running"
        gaps = self._words_of(name, query)
        if name == WINDOWS:
            return self._judge_windows(rows, asked, gaps, is_whole=is_whole)
        if not query["settled"]:
            return False
        return self._judge(name, query, _plain(rows), asked, gaps)

    def _words_of(self, name: str, query: Mapping[str, Any]) -> list[Gap]:
        """Check what a query says is missing; return the gaps that it names."""
        if query["status"] == "failed":
            self._lie("false_words", f"{name} has failed: {query['error']}")
        if query["status"] != "degraded":
            return []
        self.tally.degraded += 1
        if not (query["waiting_for"] or query["error"] or query["warnings"]):
            self._lie("unnamed", f"{name} is degraded without a word")
        gaps = []
        for since, until in _STRETCH.findall(query["error"]):
            start = 0.0 if since == "the beginning" else float(_micros(since))
            gaps.append((start, float(_micros(until))))
            if f"{name} {since} {until}" not in self._gap_seen:
                self._gap_seen.add(f"{name} {since} {until}")
                self.tally.gaps += 1
                self.named.append(f"{name}: {query['error']}"[:600])
                if not self._is_due(gaps[-1]):
                    self._lie("false_gaps", f"{name}: no fault from {since} to {until}")
        return gaps

    def _is_due(self, gap: Gap) -> bool:
        since, until = gap
        return any(
            e.fault.loses and e.since <= until and since <= e.until + AFTERMATH
            for e in self.episodes
        )

    def _judge(
        self, name: str, query: Mapping[str, Any], rows: Rows, asked: int, gaps: list[Gap]
    ) -> bool:
        question, clocks = self.truth.questions[name], self._clocks()
        away = frozenset(query["waiting_for"])
        if not away <= set(GATEWAYS):
            away |= set(GATEWAYS)  # who computes the answer, or feeds it, is away
        floors = self._floors[name]
        found = self.truth.match(question, rows, floors, clocks, away)
        if found is None:
            if gaps and self.truth.explained(name, rows, clocks, gaps):
                self.tally.explained += 1
                return True
            self._lie("wrong", f"{name} ({query['status']}): {self._difference(name, rows)}")
            return False
        self.tally.right += 1
        floors |= found.oldest
        lag = 0.0
        for gateway, place in found.newest.items():
            times = self.truth.times(question, gateway)
            if place is not None and place < len(times):
                lag = max(lag, (asked - times[place]) / SECOND)
        is_running = query["status"] == "running"
        if is_running:
            self.lag[name] = max(self.lag[name], round(lag, 1))  # type: ignore[assignment]
            if lag > STALE_SECONDS + self._ahead / SECOND:
                self.tally.stale += 1
        return (is_running or bool(gaps and not away)) and lag < CURRENT_SECONDS

    def _difference(self, name: str, rows: Rows) -> str:
        question, now = self.truth.questions[name], self._clocks()
        newest = {g: self.truth.moments(question, g, 0, now[g])[0] for g in GATEWAYS}
        expected = question.answer(newest)
        return f"extra {sorted(rows - expected)[:4]}, missing {sorted(expected - rows)[:4]}"

    def _judge_windows(
        self, rows: list[dict[str, Any]], asked: int, gaps: list[Gap], *, is_whole: bool
    ) -> bool:
        def excuse(gateway: str, end: int) -> bool:
            named = any(since <= end and end - WINDOW <= until for since, until in gaps)
            return named or any(
                gateway in e.fault.touches and end - WINDOW <= e.until + AFTERMATH
                for e in self.episodes
                if e.since <= wall_clock()
            )

        listed = [(_micros(row["window_end"]), row["n"], row["total"]) for row in rows]
        for lie in self.windows.check(listed, excuse, is_whole=is_whole):
            self._lie("false_words", lie)
        newest = max(self.windows.given, default=0)
        age = (asked - newest - WINDOW) / SECOND
        return (is_whole or bool(gaps)) and age < 2 * CURRENT_SECONDS

    def _poll_alarm(self) -> bool:
        (alarm,) = self.federation.get("/api/alarms")
        for lie in self.raised.check(alarm["rows"], self._clocks()):
            self._lie("false_words", f"alarm: {lie}")
        return bool(alarm["unknown"] == 0)

    def begun(self) -> None:
        """Note that all first readings are answered; acknowledge what is raised by them.

        From now on no gateway that is there is without a row, and an acknowledgement stays.
        """
        for name, question in self.truth.questions.items():
            for gateway in GATEWAYS:
                first = self.truth.first(question, gateway)
                self._floors[name][gateway] = max(self._floors[name].get(gateway, 0), first)
        self.federation.http.post("/api/alarms/high/acknowledge").raise_for_status()

    def _clocks(self) -> dict[str, int]:
        """Return how far each gateway's clock may have come."""
        now = wall_clock()
        return {name: now + (self._ahead if name == FAKED else 0) for name in GATEWAYS}

    def _lie(self, kind: str, words: str) -> None:
        setattr(self.tally, kind, getattr(self.tally, kind) + 1)
        if len(self.examples) < EXAMPLES:
            told = self.episodes[-1].fault if self.episodes else "no fault"
            self.examples.append(f"{told}: {words}"[:600])
            print(self.examples[-1], file=sys.stderr, flush=True)


def _plain(rows: list[dict[str, Any]]) -> Rows:
    """Return rows with times as microseconds."""
    plain: list[Row] = [
        tuple(_micros(value) if key == "ts" else value for key, value in row.items())
        for row in rows
    ]
    doubled = len(plain) != len(set(plain))
    return frozenset([*plain, ("doubled",)] if doubled else plain)


def _micros(text: str) -> int:
    found = coerce(text.replace(" UTC", "Z"), DataType.TIMESTAMP)
    if not isinstance(found, int):
        raise TypeError(f"not a time: {text}")
    return found
