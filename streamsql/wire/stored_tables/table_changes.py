"""Changes of a stored table: what the coordinator asks, and the static engine answers.

Both are MessagePack: the request on the command topic `change`, the answer on the topic of
responses.
"""

import msgspec

from streamsql.algebra.expressions import Expression
from streamsql.algebra.operators import Plan
from streamsql.algebra.row_changes import NewValues, RowMerge
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import Value
from streamsql.wire.bounds import Count, Epoch, Name, Text

CHANGE = "change"
"""The verb of the command."""


class TableChange(msgspec.Struct, frozen=True):
    """Rows to add to a table, to take from it, or to change in it.

    Attributes:
        id: Of the request; the same one that comes again is answered and not done again.
        epoch: Of the static engine that is meant: a later one cannot know what came of it.
        definition: The table, as the coordinator knows it.
        rows: To add, in the order of the table's columns; with `merge`: the rows of USING.
        given: Positions of the columns that the statement names; empty: all. Others are NULL in
            `rows`; a database may give them something else.
        delete: Rows go instead.
        predicate: Which ones go, or are updated; None: all.
        update: UPDATE: new values of the rows, read from the old ones.
        merge: MERGE.
        query: What the static engine computes in place of `rows`, over stored tables and the past;
            its scans of the past stand still. Only for managed tables.
    """

    id: Name
    epoch: Epoch
    definition: SourceDefinition
    rows: tuple[tuple[Value, ...], ...] = ()
    delete: bool = False
    predicate: Expression | None = None
    given: tuple[int, ...] = ()
    update: NewValues = ()
    merge: RowMerge | None = None
    query: Plan | None = None


class TableChanged(msgspec.Struct, frozen=True):
    """The outcome of a change.

    Attributes:
        rows: How many rows have come, gone or changed.
        code: Of the error; empty: it is done. With one nothing has changed; only with `no_answer`
            that is not known.
        message: What is wrong, or empty.
        hint: What to do about it, or empty.
    """

    id: Name
    rows: Count = 0
    code: Name = ""
    message: Text = ""
    hint: Text = ""
