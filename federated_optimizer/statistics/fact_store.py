"""All facts of a federation. Bounded: when there is no room, the oldest go."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from federated_optimizer.statistics.fact import DAY, Fact, Quantity, Subject, SubjectKind
from streamsql.data.types import MICROSECONDS

MAX_FACTS = 50_000
LONGEST_AGE = 30 * DAY
"""Facts that were measured longer ago are discarded, but for those of engines."""
_ROOM = 16
"""One in so many facts goes when there is no room, so that sorting them costs little a fact."""
_FIRST_TO_GO = (SubjectKind.PREDICATE, SubjectKind.COLUMN)
SAVED_MICROSECONDS = 600 * MICROSECONDS
SAVED_CHANGE = 0.01
"""A fact that says nearly the same as the saved one is saved again only after the time above."""
_Key = tuple[Subject, Quantity]


class Facts:
    """Facts by subject and quantity.

    State: at most `most` facts. When there is no room a sixteenth goes: those about predicates and
    columns first, for users write any number of them, then those measured longest ago.

    Attributes:
        version: Grows with every change.
    """

    def __init__(self, known: Iterable[Fact] = (), most: int = MAX_FACTS) -> None:
        self.version = 0
        self._most = most
        self._facts: dict[_Key, Fact] = {}
        self._parts: dict[tuple[SubjectKind, str, Quantity], dict[_Key, None]] = {}
        self._unsaved: dict[_Key, None] = {}
        self._saved: dict[_Key, Fact] = {}
        for fact in known:
            self._saved[fact.key] = fact
            self._put(fact)

    def __len__(self) -> int:
        return len(self._facts)

    def __iter__(self) -> Iterator[Fact]:
        return iter(tuple(self._facts.values()))

    def find(self, subject: Subject, quantity: Quantity) -> Fact | None:
        """Return a fact; None where nobody knows."""
        return self._facts.get((subject, quantity))

    def of_kind(self, kind: SubjectKind) -> Iterator[Fact]:
        """Yield the facts about all things of a kind."""
        for about in tuple(self._parts):
            if about[0] == kind:
                yield from [self._facts[key] for key in self._parts[about]]

    def about(self, kind: SubjectKind, name: str, quantity: Quantity) -> Iterator[Fact]:
        """Yield the facts of a quantity about all parts of a thing."""
        for key in self._parts.get((kind, name, quantity), ()):
            yield self._facts[key]

    def learn(self, fact: Fact) -> bool:
        """Take a fact, unless a surer one is known; return whether it was taken."""
        known = self._facts.get(fact.key)
        if known is not None and known.confidence_at(fact.at) > fact.confidence:
            return False
        self.put(fact)
        return True

    def put(self, fact: Fact) -> None:
        """Take a fact in place of an earlier one; one that is no finite number is not taken."""
        if not fact.is_finite:
            return
        key = self._put(fact)
        if _is_news(fact, self._saved.get(key)):
            self._unsaved[key] = None

    def discard(self, subject: Subject, quantity: Quantity) -> None:
        """Discard a fact, if there is one."""
        if (subject, quantity) in self._facts:
            self._remove([(subject, quantity)])

    def names(self, kind: SubjectKind) -> frozenset[str]:
        """Return the names of the things of a kind that facts are about."""
        return frozenset(name for of, name, _ in self._parts if of == kind)

    def forget_name(self, kind: SubjectKind, name: str) -> None:
        """Discard the facts about a thing, with all its parts."""
        of = [about for about in self._parts if about[:2] == (kind, name)]
        self._remove([key for about in of for key in self._parts[about]])

    def forget_part(self, kind: SubjectKind, part: str) -> None:
        """Discard the facts about a part: a site that was removed."""
        gone = [key for key in self._facts if key[0].kind == kind and key[0].part == part]
        self._remove(gone)

    def discard_old(self, now: int) -> None:
        """Discard facts that were measured too long ago."""
        self._remove(
            [
                key
                for key, fact in self._facts.items()
                if now - fact.at > LONGEST_AGE and key[0].kind != SubjectKind.ENGINE
            ]
        )

    def unsaved(self) -> dict[_Key, Fact | None]:
        """Return what differs from what is saved; None: it is gone."""
        return {key: self._facts.get(key) for key in self._unsaved}

    def saved(self, changes: Mapping[_Key, Fact | None]) -> None:
        """Note that changes are saved: those of now, or of a moment ago."""
        for key, fact in changes.items():
            if fact is None:
                self._saved.pop(key, None)
            else:
                self._saved[key] = fact
            now = self._facts.get(key)
            if now is fact or (now is not None and not _is_news(now, fact)):
                self._unsaved.pop(key, None)
            else:
                self._unsaved[key] = None

    def _put(self, fact: Fact) -> _Key:
        key = fact.key
        if key not in self._facts:
            if len(self._facts) >= self._most:
                self._make_room()
            self._parts.setdefault(_about(key), {})[key] = None
        self._facts[key] = fact
        self.version += 1
        return key

    def _make_room(self) -> None:
        def rank(key: _Key) -> tuple[int, int]:
            kind = key[0].kind
            if kind == SubjectKind.ENGINE:
                return (2, self._facts[key].at)
            return (int(kind not in _FIRST_TO_GO), self._facts[key].at)

        count = max(len(self._facts) // _ROOM, 1)
        self._remove(list(islice(sorted(self._facts, key=rank), count)))

    def _remove(self, keys: Iterable[_Key]) -> None:
        for key in keys:
            del self._facts[key]
            parts = self._parts[_about(key)]
            del parts[key]
            if not parts:
                del self._parts[_about(key)]
            if key in self._saved:
                self._unsaved[key] = None
            else:
                self._unsaved.pop(key, None)
            self.version += 1


def _about(key: _Key) -> tuple[SubjectKind, str, Quantity]:
    subject, quantity = key
    return (subject.kind, subject.name, quantity)


def _is_news(fact: Fact, saved: Fact | None) -> bool:
    if saved is None or fact.at - saved.at >= SAVED_MICROSECONDS or fact.origin != saved.origin:
        return True
    return abs(fact.value - saved.value) > SAVED_CHANGE * abs(saved.value)
