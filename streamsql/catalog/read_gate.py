"""The gate before a catalog: it is asked where names of relations are resolved."""

from collections.abc import Callable
from typing import NamedTuple

from streamsql.errors import BindingError, Span

NOT_ALLOWED = "not_allowed"
"""The code of every refusal for want of a right."""


class Read(NamedTuple):
    """A relation that a statement reads.

    Attributes:
        relation: Source, table or view, in lower case.
        within: The view of a user that reads it, in lower case, or empty where the statement does
            itself. A library view reads for whoever reads the library view.
    """

    relation: str
    within: str = ""


class Refusal(NamedTuple):
    """Why something may not be read.

    Attributes:
        reason: In a sentence.
        hint: To do about it.
    """

    reason: str
    hint: str

    def error(self, span: Span | None = None) -> BindingError:
        """Return it as the error of a statement."""
        return BindingError(self.reason, span=span, hint=self.hint, code=NOT_ALLOWED)


Gate = Callable[[Read], Refusal | None]
"""Says why a relation may not be read, or None where it may."""
