"""Options of a query for its readers: a display, snapshots, progress, upserts by key."""

from dataclasses import dataclass

from streamsql.algebra.streams import Emit
from streamsql.binder import key_positions
from streamsql.data.schema import Schema
from streamsql.errors import BindingError, QueryError
from streamsql.syntax import Query, Subscribe, parse_statement
from streamsql.syntax.statements import Statement

MAX_PER_DISPLAY = 8
"""Queries that one display shows, one below the other."""


@dataclass(frozen=True, slots=True)
class Presentation:
    """Defaults for readers of an answer that choose nothing.

    Attributes:
        display: Where it is shown, or empty.
        snapshot: Whether readers begin with the rows there are.
        progress: Whether they are told up to when the answer is complete.
        key: Positions of the columns by which changes come as upserts; empty for signed rows.
    """

    display: str = ""
    snapshot: bool = True
    progress: bool = False
    key: tuple[int, ...] = ()


def presentation_of(
    statement: Statement, schema: Schema, emit: Emit = Emit.RELATION
) -> Presentation:
    """Return what a statement says about its readers.

    Raises:
        BindingError: The key names no column of the answer, or the answer is a stream.
    """
    match statement:
        case Query(display=display) if display is not None:
            return Presentation(display=display.text)
        case Subscribe():
            key = key_positions(statement.key, schema, emit)
            return Presentation("", statement.snapshot, statement.progress, key)
        case _:
            return Presentation()


def presentation_of_text(text: str, schema: Schema) -> Presentation:
    """Return what the text of a query that runs says about its readers."""
    try:
        return presentation_of(parse_statement(text), schema)
    except QueryError:
        return Presentation()  # of another release; its answer is given as signed rows


def check_room_on(statement: Statement, shown: int) -> None:
    """Refuse one answer too many on a display.

    Raises:
        BindingError: It shows as many as it may.
    """
    if isinstance(statement, Query) and statement.display and shown >= MAX_PER_DISPLAY:
        raise BindingError(
            f"display {statement.display.text!r} already shows {shown} results",
            span=statement.display.span,
            hint="stop one of its queries, or create another display",
            code="limit_exceeded",
        )
