"""What a site knows after it was brought back."""

from dataclasses import dataclass, field
from typing import Any

from stream_engine.snapshot.journal import Note


@dataclass(frozen=True, slots=True)
class Restored:
    """The outcome of restoring a snapshot and a journal.

    Attributes:
        now: The time up to which the state is known; 0 for a new site.
        host: The host's values in the snapshot, or None.
        notes: Its notes since, in order.
        unsaved: Queries whose former state is lost: since when they had run, and why.
        complaints: What went wrong while the journal was replayed.
        cut: Why the rest of the journal could not be read, or empty.
    """

    now: int = 0
    host: Any = None
    notes: list[Note] = field(default_factory=list)
    unsaved: dict[str, tuple[int, str]] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)
    cut: str = ""
