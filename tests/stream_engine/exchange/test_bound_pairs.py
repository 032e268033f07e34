"""Pairs around a value, against one comparison after the other."""

import random

from stream_engine.exchange.bound_pairs import MOST_RECENT, BoundPairs


def test_pairs_come_and_go() -> None:
    chance = random.Random(1)
    pairs = BoundPairs()
    kept: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {}
    for number in range(12 * MOST_RECENT):
        if kept and chance.random() < (0.7 if number % 300 > 200 else 0.2):
            key = chance.choice(list(kept))
            del kept[key]
            pairs.remove(key)
        low = (chance.randrange(50), chance.randrange(2))
        high = (chance.randrange(60), chance.randrange(2))
        kept[f"q{number}"] = (low, high)
        pairs.add(f"q{number}", low, high)
        if number % 7 == 0:
            kept[f"q{number}"] = (low, (99, 1))
            pairs.remove(f"q{number}")
            pairs.add(f"q{number}", low, (99, 1))
        assert len(pairs) == len(kept)
        for value in (chance.randrange(-1, 61), chance.randrange(-1, 61) + 0.5):
            found = list(pairs.around(value))
            assert len(found) == len(set(found))
            assert set(found) == {
                key
                for key, (low, high) in kept.items()
                if (low[0] < value or (low[0] == value and not low[1]))
                and (value < high[0] or (value == high[0] and high[1]))
            }


def test_few_of_many_are_compared() -> None:
    class Counted(int):
        """A bound that counts comparisons."""

        compared = 0

        def __lt__(self, other: object) -> bool:
            Counted.compared += 1
            return int(self) < other  # type: ignore[operator]

        def __eq__(self, other: object) -> bool:
            return int(self) == other

        __hash__ = int.__hash__

    pairs = BoundPairs()
    for number in range(10_000):
        pairs.add(f"q{number}", (Counted(number), 0), (Counted(number + 2), 0))
    assert set(pairs.around(Counted(5_000))) == {"q5000", "q4999"}
    Counted.compared = 0
    assert set(pairs.around(Counted(7_000))) == {"q7000", "q6999"}
    assert Counted.compared < 200
