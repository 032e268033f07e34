"""Pairs around a value, and pieces in a text, against one comparison after the other."""

import random

from stream_engine.exchange.bound_pairs import MOST_RECENT, BoundPairs, TextPieces


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
    assert Counted.compared < 50, "neighbours are enough"
    pairs.add("wide", (Counted(-1), 0), (Counted(20_000), 0))
    pairs._order()
    Counted.compared = 0
    assert set(pairs.around(Counted(7_000))) == {"q7000", "q6999", "wide"}
    assert Counted.compared < 200


def test_pieces_come_and_go() -> None:
    chance = random.Random(2)
    pieces, kept = TextPieces[int](), dict[tuple[str, int], None]()

    def some(size: int) -> str:
        return "".join(chance.choices("abé", k=size))

    ways = set[bool]()
    for number in range(600):
        piece = some(chance.randrange(1, 90 if number % 5 == 0 else 8))
        for holder in (number, number % 3):
            pieces.add(piece, holder)
            kept[piece, holder] = None
        while kept and chance.random() < (0.9 if number % 200 > 150 else 0.3):
            gone = chance.choice(list(kept))
            del kept[gone]
            pieces.remove(*gone)
        assert len(pieces) == len({piece for piece, _holder in kept})
        text = some(chance.randrange(20)) + chance.choice([piece, ""]) + some(3)
        ways.add(len(pieces) > len(text) * len(pieces._sizes))
        found = list(pieces.inside(text))
        assert len(found) == len(set(found))
        holders = {(piece, holder) for piece in found for holder in pieces[piece]}
        assert holders == {each for each in kept if each[0] in text}
    assert ways == {True, False}, "pieces were looked up, and searched for"
    for gone in kept:
        pieces.remove(*gone)
    assert not any((pieces._holders, pieces._begun, pieces._sizes))


def test_few_pieces_of_many_are_looked_at() -> None:
    asked = list[str]()

    class Text(str):
        __slots__ = ()

        def __contains__(self, piece: object) -> bool:
            asked.append(str(piece))
            return super().__contains__(str(piece))

    pieces = TextPieces[int]()
    for number in range(10_000):
        pieces.add(f"/{number}/", number)
    assert set(pieces.inside(Text("rooms/17/123456/doors"))) == {"/17/"}
    assert asked == ["/17/"]
    for number in range(100_000, 100_100):
        pieces.add(f"/{number}/and more", number)
    asked.clear()
    assert set(pieces.inside(Text("rooms/100017/and more/4711/"))) == {"/100017/and more", "/4711/"}
    assert len(asked) <= 1 + 10, "one in ten has the same beginning of 14 characters"
