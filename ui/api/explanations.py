"""Questions about rows over REST: why a row is there, how probable rows are, what if."""

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from federated_optimizer.coordinator.contract.coordinator_model import QueryInfo
from streamsql.data.schema import Schema
from streamsql.data.types import MICROSECONDS, DataType
from streamsql.errors import BindingError
from ui.api.objects import result_object
from ui.api.routes import Coordinator, find_query

MAX_VALUES = 1_000
MAX_DELETIONS = 100
MAX_LIMIT = 10_000

router = APIRouter(prefix="/api")

JsonValue = bool | int | float | str | None
Limit = Annotated[int, Field(ge=1, le=MAX_LIMIT)]


class WhyQuestion(BaseModel):
    """Which row, and how much of the answer.

    The row is given as lists show it: an object by column name, or a list of values in order.
    """

    row: dict[str, JsonValue] | list[JsonValue] = Field(max_length=MAX_VALUES)
    limit: Limit = Field(10, description="Max combinations of base rows to list")
    confidence: str = Field(
        "", max_length=200, description="Column with probabilities of base rows, e.g. link.pdr"
    )


class ConfidenceQuestion(BaseModel):
    """Column with the probabilities of base rows."""

    column: str = Field(max_length=200, examples=["link.pdr"])
    limit: Limit | None = Field(None, description="Max rows to examine")


class BaseRows(BaseModel):
    """Rows of a source by values of its key, or of its first columns; null stands for any."""

    source: str = Field(max_length=200)
    values: list[JsonValue] = Field(min_length=1, max_length=MAX_VALUES)


class WhatIfQuestion(BaseModel):
    """Which base rows to think away, and from which query; without one from all that read them."""

    delete: list[BaseRows] = Field([], max_length=MAX_DELETIONS)
    gateways: list[Annotated[str, Field(max_length=64)]] = Field(
        [], max_length=MAX_DELETIONS, description="Gateway ids: all base rows that a gateway owns"
    )
    nodes: list[Annotated[str, Field(max_length=1_000)] | int] = Field(
        [],
        max_length=MAX_DELETIONS,
        description="Node names: all links of a node, and the rows with the node in their key",
    )
    query: str | None = Field(None, max_length=64)


@router.post("/queries/{query_id}/why")
async def why(query_id: str, body: WhyQuestion, coordinator: Coordinator) -> dict[str, Any]:
    """Return the minimal sets of base rows from which a row of a running query is derived."""
    found = find_query(coordinator, query_id)
    values = row_values(found, body.row)
    result = await coordinator.rows.why_row(
        found.id, values, limit=body.limit, confidence=body.confidence
    )
    return result_object(result)


@router.post("/queries/{query_id}/confidence")
async def confidence(
    query_id: str, body: ConfidenceQuestion, coordinator: Coordinator
) -> dict[str, Any]:
    """Return the probability of the rows of a running query."""
    found = find_query(coordinator, query_id)
    result = await coordinator.rows.confidence_of_rows(found.id, body.column, limit=body.limit)
    return result_object(result)


@router.post("/what-if")
async def what_if(body: WhatIfQuestion, coordinator: Coordinator) -> dict[str, Any]:
    """Return the rows that would disappear and appear if base rows were deleted."""
    query = find_query(coordinator, body.query).id if body.query is not None else None
    deletions = [(rows.source, rows.values) for rows in body.delete]
    if not (deletions or body.gateways or body.nodes):
        raise BindingError("no deletion is given", hint="set delete (base rows), gateways or nodes")
    result = await coordinator.rows.what_if_deleted(
        deletions, gateways=body.gateways, nodes=body.nodes, query_id=query
    )
    return result_object(result)


def row_values(query: QueryInfo, given: dict[str, JsonValue] | list[JsonValue]) -> list[object]:
    """Return a row as lists show it as values of the language.

    Raises:
        BindingError: It names other columns, or their names are not unique.
    """
    schema = query.schema
    if isinstance(given, list):
        return [_value(v, schema, p) for p, v in enumerate(given)]
    names = schema.names
    if len(set(names)) < len(names) or set(given) != set(names):
        raise BindingError(
            "the row must name each column of the query once",
            hint=f"send a list of values in this order: {schema}",
        )
    return [_value(given[name], schema, p) for p, name in enumerate(names)]


def _value(value: JsonValue, schema: Schema, position: int) -> object:
    """Undo `display`: intervals are shown in seconds."""
    is_interval = position < len(schema) and schema.dtypes[position] == DataType.INTERVAL
    if is_interval and isinstance(value, int | float) and not isinstance(value, bool):
        return round(value * MICROSECONDS)
    return value
