"""The true answer of every query, computed from the feed with plain Python and networkx.

Nothing here is the engine's. How much of its recording a gateway has taken in when an answer is
made nobody outside can know to the reading. So an answer is right if it is that of some moment of
each gateway: of none that its clock has not reached, and, where gateways can be judged one by one,
of none before that of an earlier right answer.
"""

import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import networkx as nx

from benchmarks._soak.feed import ALARM, GATEWAYS, SECOND, Car, Feed, Heard, Seat, owners

Row = tuple[object, ...]
Rows = frozenset[Row]
Places = Mapping[str, int | None]
"""How many readings of each gateway are in an answer; None: it is away, and so are its rows."""

Gap = tuple[float, float]
"""From when to when readings are said to be missing, in microseconds."""

LAST = 7
MOMENTS = 40
"""How many moments of a gateway are tried where those of all decide together."""
TRIES = 4_000
UNDERWAY = 5 * SECOND
"""How long a reading may be on its way before it has come in."""


@dataclass(frozen=True)
class Question:
    """A standing query and its truth.

    Attributes:
        text: The statement.
        source: Which readings it is about.
        answer: What it has to answer when so many readings of each gateway are in it.
        by_gateway: Each row rests on one gateway alone, which its first column names.
        keeps_rows: Its rows stay when their gateway goes, and it is not settled then.
    """

    text: str
    source: Literal["seats", "cars", "links"]
    answer: Callable[[Places], Rows]
    by_gateway: bool = True
    keeps_rows: bool = False


@dataclass(frozen=True)
class Match:
    """The moments of gateways at which an answer is true.

    Attributes:
        newest: The last such moment of each.
        oldest: The first of each that is there, where gateways can be judged one by one: no later
            answer may go back before it.
    """

    newest: dict[str, int | None]
    oldest: dict[str, int]


class Truth:
    """The standing queries over one feed, and what may be seen of it."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self._closure = cache(self._closure_of)
        self.questions = {
            "filter": Question("SELECT mid, v FROM seat WHERE v >= 500", "seats", self._filter),
            "stored": Question(
                "SELECT s.mid, s.v, o.owner FROM seat s JOIN owner o ON o.mid = s.mid",
                "seats",
                self._stored,
            ),
            "alarm": Question(f"SELECT mid FROM seat WHERE v >= {ALARM}", "seats", self._alarm),
            "total": Question(
                "SELECT lane, COUNT(*) AS n, SUM(n) AS total FROM car GROUP BY lane",
                "cars",
                self._total,
            ),
            "join": Question(
                "SELECT a.mid AS mid, b.mid AS other, a.v - b.v AS more FROM seat a "
                "JOIN seat b ON b.mid = a.partner WHERE a.v > b.v",
                "seats",
                self._join,
                by_gateway=False,
            ),
            "last": Question(
                f"SELECT lane, n, ts FROM car [ROWS {LAST}]",
                "cars",
                self._last,
                by_gateway=False,
                keeps_rows=True,
            ),
            "reach": Question(
                "WITH RECURSIVE reach (a, b) AS (SELECT src, dst FROM link UNION "
                "SELECT r.a, l.dst FROM reach r JOIN link l ON l.src = r.b) SELECT a, b FROM reach",
                "links",
                self._reach,
                by_gateway=False,
            ),
        }

    # Answers ----------------------------------------------------------------------------------

    def _seats(self, places: Places) -> dict[str, Seat]:
        """Return the newest reading of every machine."""
        readings = (s for name in places for s in self.feed[name].seats[: places[name] or 0])
        return {seat.mid: seat for seat in readings}

    def _cars(self, places: Places) -> list[Car]:
        return [c for name in places for c in self.feed[name].cars[: places[name] or 0]]

    def _filter(self, places: Places) -> Rows:
        return frozenset((s.mid, s.value) for s in self._seats(places).values() if s.value >= 500)

    def _alarm(self, places: Places) -> Rows:
        return frozenset((s.mid,) for s in self._seats(places).values() if s.value >= ALARM)

    def _stored(self, places: Places) -> Rows:
        seats = self._seats(places)
        return frozenset((mid, seats[mid].value, who) for mid, who in owners() if mid in seats)

    def _total(self, places: Places) -> Rows:
        found = {name: self._cars({name: places[name]}) for name in places}
        return frozenset(
            (n, len(cars), sum(c.n for c in cars)) for n, cars in found.items() if cars
        )

    def _join(self, places: Places) -> Rows:
        seats = self._seats(places)
        pairs = ((s, seats[s.partner]) for s in seats.values() if s.partner in seats)
        return frozenset((a.mid, b.mid, a.value - b.value) for a, b in pairs if a.value > b.value)

    def _last(self, places: Places) -> Rows:
        newest = sorted(self._cars(places), key=lambda car: car.ts)[-LAST:]
        return frozenset((car.lane, car.n, car.ts) for car in newest)

    def _reach(self, places: Places) -> Rows:
        return self._closure(tuple((name, places[name] or 0) for name in GATEWAYS))

    def _closure_of(self, places: tuple[tuple[str, int], ...]) -> Rows:
        newest: dict[tuple[str, str], Heard] = {}
        for name, place in places:
            newest |= {(h.src, h.dst): h for h in self.feed[name].links[:place]}
        graph = nx.DiGraph([ends for ends, heard in newest.items() if heard.is_there])
        closed = nx.transitive_closure(graph, reflexive=False)
        return frozenset(closed.edges)

    # What may be seen -------------------------------------------------------------------------

    def times(self, question: Question, gateway: str) -> list[int]:
        """Return the times of a gateway's readings."""
        return [reading.ts for reading in getattr(self.feed[gateway], question.source)]

    def first(self, question: Question, gateway: str) -> int:
        """Return how many readings a gateway has at its first moment."""
        times = self.times(question, gateway)
        return bisect_right(times, times[0])

    def moments(self, question: Question, gateway: str, floor: int, now: int) -> list[int]:
        """Return how many readings there are at each moment until now, the newest first."""
        times = self.times(question, gateway)
        until = bisect_right(times, now)
        ends = {bisect_right(times, ts) for ts in times[:until]} | {0}
        return sorted((place for place in ends if place >= floor), reverse=True)

    def _likely(
        self, question: Question, gateway: str, floor: int, clocks: Mapping[str, int]
    ) -> list[int]:
        """Return how many readings there are at each moment, the likely ones first.

        A clock that was ahead may be right again: then its newest moment is that of the others.
        """
        found = self.moments(question, gateway, floor, clocks[gateway])
        times, now = self.times(question, gateway), min(clocks.values())

        def lag(place: int) -> int:
            ts = times[place - 1] if place else 0
            return (now if ts <= now else clocks[gateway]) - ts

        return sorted(found, key=lag)

    def match(
        self,
        question: Question,
        rows: Rows,
        floors: Mapping[str, int],
        clocks: Mapping[str, int],
        away: frozenset[str],
    ) -> Match | None:
        """Return the moments of the gateways at which these are the rows; None if there are none.

        Args:
            question: The query.
            rows: Its rows.
            floors: Below which no gateway can be.
            clocks: The time of each gateway.
            away: Gateways that are said to be away.
        """
        options: dict[str, list[int | None]] = {}
        for name in GATEWAYS:
            gone = [None] if name in away and not question.keeps_rows else []
            floor = floors.get(name, 0)
            if question.by_gateway:
                options[name] = [*gone, *self.moments(question, name, floor, clocks[name])]
            else:
                options[name] = [*gone, *self._likely(question, name, floor, clocks)[:MOMENTS]]
        if not question.by_gateway:
            for places in itertools.islice(_nearest_first(options), TRIES):
                if question.answer(places) == rows:
                    return Match(places, {})
            return None
        matched = Match({}, {})
        for name, places_of in options.items():
            mine = frozenset(row for row in rows if str(row[0]).startswith(name))
            rows -= mine
            fitting = [place for place in places_of if question.answer({name: place}) == mine]
            if not fitting:
                return None
            matched.newest[name] = fitting[0]
            if fitting[-1] is not None:
                matched.oldest[name] = fitting[-1]
        return None if rows else matched

    def explained(self, name: str, rows: Rows, clocks: Mapping[str, int], gaps: list[Gap]) -> bool:
        """Whether all missing readings fall into named gaps."""
        lost = {
            car
            for gateway in GATEWAYS
            for car in self.feed[gateway].cars
            if any(since <= car.ts + UNDERWAY and car.ts <= until for since, until in gaps)
        }
        match name:
            case "last":
                return self._lacks_only(rows, clocks, lost)
            case "total":
                return all(self._counts(row, clocks, lost) for row in rows)
            case _:
                return False

    def _lacks_only(self, rows: Rows, clocks: Mapping[str, int], lost: set[Car]) -> bool:
        fed = {(c.lane, c.n, c.ts): c for g in GATEWAYS for c in self.feed[g].cars}
        if not rows <= fed.keys():
            return False
        shown = {fed[row] for row in rows}  # type: ignore[index]
        oldest = min((car.ts for car in shown), default=0) if len(rows) == LAST else 0
        newest = {g: max((c.ts for c in shown if c.lane == g), default=0) for g in GATEWAYS}
        return all(car.ts <= clocks[car.lane] for car in shown) and all(
            car in shown or car in lost
            for car in fed.values()
            if oldest < car.ts <= newest[car.lane]
        )

    def _counts(self, row: Row, clocks: Mapping[str, int], lost: set[Car]) -> bool:
        lane, count, total = row
        cars = [car for car in self.feed[str(lane)].cars if car.ts <= clocks[str(lane)]]
        least = sum(car not in lost for car in cars)
        behind = sum(car.ts > clocks[str(lane)] - UNDERWAY for car in cars)
        n = int(str(count))
        return bool(cars) and least - behind <= n <= len(cars) and total == n * cars[0].n


def _nearest_first(options: Mapping[str, Sequence[int | None]]) -> Iterator[dict[str, int | None]]:
    """Yield all combinations, those of the newest moments first."""
    names = list(options)
    sizes = [len(options[name]) for name in names]
    for distance in range(sum(sizes)):
        for steps in itertools.product(*(range(min(size, distance + 1)) for size in sizes[:-1])):
            last = distance - sum(steps)
            if 0 <= last < sizes[-1]:
                every = zip(names, (*steps, last), strict=True)
                yield {name: options[name][step] for name, step in every}
