"""What an oracle is, and the tally of what it judged."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from streamsql.data.types import Row
from tests.random_queries.queries import Case

Held = Callable[[str], list[Row]]
"""The rows of a source or table, by its name."""


@dataclass(slots=True)
class Tally:
    """What became of the cases.

    Attributes:
        run: Cases that all our engines answered.
        compared: Those of them that the oracle answered too.
        shown: Those of them whose answer had rows at some time.
        by_gateway: Batches after which several gateways, each with a watermark of its own, had
            another answer than one would have.
        refused: Messages of statements that StreamSQL refused, and the oracle did not.
        refused_by_both: Statements that the oracle refused too.
        skipped: Why the oracle was not asked, or did not answer.
    """

    run: int = 0
    compared: int = 0
    shown: int = 0
    by_gateway: int = 0
    refused_by_both: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        lines = [
            f"{self.run} run, {self.compared} by the oracle, {self.shown} with rows, "
            f"{self.by_gateway} batches judged otherwise by several gateways, "
            f"{self.refused_by_both} refused by both"
        ]
        lines += [f"  not asked {n}: {why}" for why, n in self.skipped.most_common(12)]
        lines += [f"  refused {n}: {why}" for why, n in self.refused.most_common(40)]
        return "\n".join(lines)


class Oracle(Protocol):
    """A database that shares no code with the engines and computes every answer from scratch."""

    name: str

    def open(self, case: Case, tally: Tally) -> bool:
        """Create what a case reads; return whether it could."""
        ...

    def refuses(self, case: Case) -> bool:
        """Return whether it refuses a query that StreamSQL refuses."""
        ...

    def answer(self, case: Case, step: int, held: Held, tally: Tally) -> Counter[Row] | None:
        """Return the rows after a batch, or None where they cannot be judged."""
        ...
