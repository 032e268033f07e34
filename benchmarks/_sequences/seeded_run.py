"""The sequence of a seed: how it shares, its actions, and the least story of a failure."""

import traceback
from collections import Counter
from collections.abc import Sequence as Listed
from dataclasses import dataclass
from functools import cache

from benchmarks._sequences.actions import Action
from benchmarks._sequences.bound_templates import aggregates_of_users
from benchmarks._sequences.network_sequence import Sequence, Setting
from benchmarks._sequences.random_actions import RandomActions
from benchmarks._sequences.rows_of_sites import PlainTables
from federated_optimizer.sharing.strategy import Materialize, Strategy

MOST_TRIES = 400
"""Times that a story is played again to make it shorter."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A sequence with a wrong row, or an error.

    Attributes:
        setting: Of the sequence.
        actions: A short story with the same kind of failure.
        words: The difference or error at its end.
    """

    setting: Setting
    actions: tuple[Action, ...]
    words: str

    def __str__(self) -> str:
        """Return the story as Python, which a test can play."""
        lines = "".join(f"    {action!r},\n" for action in self.actions)
        of = self.setting
        ways = f"Strategy.{of.strategy.name}, Materialize.{of.materialize.name}"
        setting = f"Setting({of.seed}, {ways}, {of.bases!r}, {of.colocated})"
        return f"{self.words}\n\nplayed(\n    {setting},\n{lines})"


def setting_of(seed: int) -> Setting:
    """Return how the queries of a sequence share: two thirds of them all that they can."""
    others = list(Strategy)
    strategy = Strategy.ALL if seed % 3 else others[seed // 3 % len(others)]
    bases = ("base", "base-2") if seed % 5 == 0 else ("base",)
    return Setting(seed, strategy, list(Materialize)[seed % 2], bases, seed % 4 > 1)


def run_seed(seed: int, actions: int) -> Counter[str] | Failure:
    """Return the counts of a seed's sequence, or how it failed."""
    setting = setting_of(seed)
    sequence = Sequence(setting, tables())
    chance = RandomActions(sequence)
    done: list[Action] = []
    try:
        with aggregates_of_users():
            for _ in range(actions):
                for action in chance.draw():
                    done.append(action)
                    sequence.do(action)
            sequence.end()
    except Exception as error:  # noqa: BLE001  (whatever fails is a finding)
        return shortened(Failure(setting, tuple(done), _words(error)), type(error))
    return sequence.counts


def played(setting: Setting, *actions: Action) -> Counter[str]:
    """Play a story; return its counts.

    Raises:
        WrongRowsError: A query has other rows than an oracle says.
    """
    sequence = Sequence(setting, tables())
    with aggregates_of_users():
        sequence.play(actions)
    return sequence.counts


def shortened(failure: Failure, kind: type[Exception]) -> Failure:
    """Return a failure of the same kind after fewer actions: parts are left out while it fails."""
    tries = MOST_TRIES
    size = max(1, len(failure.actions) // 2)
    while size:
        start = 0
        while start < len(failure.actions) and tries:
            tries -= 1
            fewer = failure.actions[:start] + failure.actions[start + size :]
            shorter = _failing(failure.setting, fewer, kind)
            if shorter is None:
                start += size
            else:
                failure = shorter
        size //= 2
    return failure


def _failing(setting: Setting, actions: Listed[Action], kind: type[Exception]) -> Failure | None:
    try:
        played(setting, *actions)
    except Exception as error:  # noqa: BLE001  (see `run_seed`)
        return Failure(setting, tuple(actions), _words(error)) if type(error) is kind else None
    return None


@cache
def tables() -> PlainTables:
    """Return DuckDB, one connection a process."""
    return PlainTables()


def _words(error: Exception) -> str:
    if isinstance(error, AssertionError) and str(error):
        return str(error)
    return "".join(traceback.format_exception(error))
