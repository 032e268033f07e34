"""Answers to questions about rows, as text for people and as data for programs."""

from collections.abc import Sequence
from math import floor
from typing import Any

from federated_optimizer.coordinator.contract.coordinator_model import ResultKind, StatementResult
from federated_optimizer.coordinator.explaining.chances import (
    base_text,
    chance_by,
    column_text,
    row_text,
)
from federated_optimizer.coordinator.explaining.known_base_rows import BaseRows
from federated_optimizer.coordinator.explaining.row_explainer import RowExplainer
from streamsql.algebra.row_explanations import BaseRow, Confidence, Confidences, WhatIf, Why
from streamsql.binder import (
    BoundConfidence,
    BoundLoss,
    BoundWhy,
    Deletion,
    GatewayDeletion,
    NodeDeletion,
)
from streamsql.data.schema import Schema
from streamsql.data.types import Row
from streamsql.errors import BindingError

MAX_LISTED = 1_000
"""Rows of one kind that an answer to WHAT IF lists."""

SHOWN = 20
"""Rows of one kind that its text shows."""

Object = dict[str, Any]


def why_result(
    schema: Schema, row: Row, answer: Why, columns: str, notes: Sequence[str]
) -> StatementResult:
    """Return the answer to WHY.

    `columns` says where probabilities come from.
    """
    data: Object = {
        "columns": list(schema.names),
        "row": schema.to_object(row),
        "holds": answer.holds,
        "supports": [[base_object(base) for base in support] for support in answer.supports],
        "complete": answer.complete,
        "known": answer.known,
        "confidence": None,
        "notes": [*answer.notes, *notes],
    }
    lines = _why_lines(row_text(schema, row), answer)
    if answer.confidence is not None:
        data["confidence"] = confidence_object(answer.confidence, columns)
        lines.append(_confidence_line(answer.confidence, columns))
    lines.extend(f"note: {note}" for note in data["notes"])
    return StatementResult(ResultKind.TEXT, text="\n".join(lines), data=data)


def _why_lines(row: str, answer: Why) -> list[str]:
    if not answer.holds:
        return [f"{row} is not in the result."]
    supports = answer.supports
    if len(supports) == 1 and not supports[0]:
        return [f"{row} is in the result for any base rows."]
    if len(supports) == 1 and answer.complete:
        lines = [f"{row} stays while all of these base rows exist:"]
        lines.extend(f"  {base_text(base)}" for base in supports[0])
        return lines
    lines = [f"{row} stays while all base rows of at least one line exist:"]
    for number, support in enumerate(supports, start=1):
        lines.append(f"  {number}. " + " AND ".join(map(base_text, support)))
    if answer.complete:
        lines.append(f"These {len(supports)} are all minimal combinations.")
    elif answer.known > len(supports):
        at_least = f"{len(supports)} of at least {answer.known}"
        lines.append(f"Cut off: {at_least} minimal combinations; WITH (limit = …) shows more.")
    else:
        lines.append(f"Cut off at {len(supports)}: there may be more minimal combinations.")
    return lines


def _confidence_line(confidence: Confidence, columns: str) -> str:
    reason = "" if confidence.exact else f" ({confidence.reason})"
    return f"Probability by {columns}: {_share(confidence)}{reason}"


def _share(confidence: Confidence | None) -> str:
    """Return a probability; a lower bound is never rounded up, and neither is what is not certain.

    Four decimals, or as many more as tell it from 0 and 1.
    """
    if confidence is None:
        return "unknown"
    value, digits = confidence.probability, 4
    while digits < 12 and 0 < value < 1 and float(f"{value:.{digits}f}") in (0.0, 1.0):
        digits += 2
    if confidence.exact:
        return f"{value:.{digits}f}"
    return f"at least {floor(value * 10**digits) / 10**digits:.{digits}f}"


def confidence_object(confidence: Confidence, columns: str) -> Object:
    """Return a probability as data."""
    return {
        "probability": confidence.probability,
        "exact": confidence.exact,
        "reason": confidence.reason,
        "columns": columns,
    }


def base_object(base: BaseRow) -> Object:
    """Return a base row as data; `key` names the columns that tell it from others."""
    scan = base.scan
    return {
        "source": scan.source,
        "key": [scan.columns.names[p] for p in scan.key],
        "row": scan.columns.to_object(base.row),
    }


def confidence_result(
    schema: Schema, answer: Confidences, using: str, notes: Sequence[str]
) -> StatementResult:
    """Return the answer to CONFIDENCE."""
    listed = [
        {
            "row": schema.to_object(row),
            "confidence": None if sure is None else confidence_object(sure, using),
        }
        for row, sure in answer.rows
    ]
    said = [*answer.notes, *notes]
    data = {"columns": list(schema.names), "rows": listed, "total": answer.total, "notes": said}
    lines = [f"Probability by {using}:"]
    for row, sure in answer.rows:
        lines.append(f"  {_share(sure):>15}  {row_text(schema, row)}")
    if answer.total > len(answer.rows):
        lines.append(f"{len(answer.rows)} of {answer.total} rows; LIMIT n shows more.")
    if not answer.total:
        lines.append("  the result has no rows")
    lines.extend(f"note: {note}" for note in said)
    return StatementResult(ResultKind.TEXT, text="\n".join(lines), data=data)


class WhatIfReport:
    """The answer to WHAT IF, query by query.

    Args:
        subjects: What stands for the base rows, where they are not listed one by one.
    """

    def __init__(self, subjects: Sequence[str] = ()) -> None:
        self._subjects = subjects
        self._deleted: dict[str, BaseRow] = {}
        self._queries: list[Object] = []
        self._lines: list[str] = []

    def add(self, name: str, schema: Schema, answer: WhatIf) -> None:
        """Add what would become of a query; `name` is empty for the one that was written."""
        for base in answer.deleted:
            self._deleted[base_text(base)] = base
        self._queries.append(
            {
                "query": name or None,
                "columns": list(schema.names),
                "rows": answer.rows,
                "gone": [schema.to_object(row) for row in answer.gone[:MAX_LISTED]],
                "come": [schema.to_object(row) for row in answer.come[:MAX_LISTED]],
                "gone_count": len(answer.gone),
                "come_count": len(answer.come),
                "notes": list(answer.notes),
            }
        )
        self._lines.extend(_what_if_lines(name, schema, answer))

    def fail(self, name: str, reason: str) -> None:
        """Say why nothing is known of a query."""
        self._queries.append({"query": name, "error": reason})
        self._lines.append(f"{name}: {reason}")

    def result(self, notes: Sequence[str]) -> StatementResult:
        """Return the answer."""
        data = {
            "deleted": [base_object(base) for base in list(self._deleted.values())[:MAX_LISTED]],
            "deleted_count": len(self._deleted),
            "queries": self._queries,
            "notes": list(notes),
        }
        lines = [f"Without {self._lost()}:", *self._lines] if self._deleted else list(self._lines)
        if not self._queries:
            lines.append(
                "no running query reads it; add FOR (query) or FOR view to ask about another query"
            )
        lines.extend(f"note: {note}" for note in notes)
        return StatementResult(ResultKind.TEXT, text="\n".join(lines), data=data)

    def _lost(self) -> str:
        if self._subjects:
            count = len(self._deleted)
            rows = f"{count} base row{'s' if count > 1 else ''}"
            return f"{' and '.join(self._subjects)} ({rows})"
        shown = list(self._deleted)[:SHOWN]
        more = [f"{len(self._deleted) - SHOWN} more"] if len(self._deleted) > SHOWN else []
        return " and ".join([*shown, *more])

    @property
    def deletes_nothing(self) -> bool:
        """Whether queries were looked at, and none reads a base row that was meant."""
        return not self._deleted and any("error" not in query for query in self._queries)


def subjects_of(losses: Sequence[BoundLoss]) -> list[str]:
    """Return what dies, in words, where it is a gateway or a node; else nothing."""
    if all(isinstance(loss, Deletion) for loss in losses):
        return []
    found: dict[str, None] = {}
    for loss in losses:
        match loss:
            case GatewayDeletion(gateway=gateway):
                found[f"gateway {gateway}"] = None
            case NodeDeletion(node=node):
                found[f"node {node}"] = None
            case Deletion(definition=definition):
                found[f"rows of {definition.name}"] = None
    return list(found)


def _what_if_lines(name: str, schema: Schema, answer: WhatIf) -> list[str]:
    whose = f"query {name}: " if name else ""
    gone, come = len(answer.gone), len(answer.come)
    if not gone and not come:
        return [f"{whose}nothing changes, all {answer.rows} rows stay"]
    lines = [f"{whose}{gone} of {answer.rows} rows go, {come} come"]
    for sign, rows in (("-", answer.gone), ("+", answer.come)):
        lines.extend(f"  {sign} {row_text(schema, row)}" for row in rows[:SHOWN])
        if len(rows) > SHOWN:
            lines.append(f"  {sign} … and {len(rows) - SHOWN} more")
    lines.extend(f"  note: {note}" for note in answer.notes)
    return lines


DEFAULT_CONFIDENCES = 100
"""Rows whose probability is computed when no number is given."""


def why_answer(engine: RowExplainer, asked: BoundWhy, base: BaseRows) -> StatementResult:
    """Return what a row rests on.

    Raises:
        FederationError: It takes too much work.
    """
    plan, column = asked.query.plan, asked.confidence
    chance = chance_by(column) if column is not None else None
    answer = engine.why(plan, base.contents, asked.row, limit=asked.limit, chance=chance)
    using = column_text(column) if column is not None else ""
    return why_result(asked.query.schema, asked.row, answer, using, base.notes)


def confidence_answer(
    engine: RowExplainer, asked: BoundConfidence, base: BaseRows
) -> StatementResult:
    """Return how probable the rows of a query are.

    Raises:
        FederationError: It takes too much work.
    """
    answer = engine.confidences(
        asked.query.plan,
        base.contents,
        limit=asked.limit or DEFAULT_CONFIDENCES,
        chance=chance_by(asked.using),
    )
    return confidence_result(asked.query.schema, answer, column_text(asked.using), base.notes)


def refuse_no_deletion(report: WhatIfReport) -> None:
    """Refuse a question about base rows that are not there.

    Raises:
        BindingError: None was meant.
    """
    if report.deletes_nothing:
        raise BindingError(
            "no base row has these values, so nothing would change",
            hint="query the source to see its rows",
        )
