"""REST: stored tables: what is known of each, some rows, and the values of its columns."""

from typing import Annotated

from fastapi import APIRouter, Query

from streamsql.data.types import timestamp_text
from streamsql.wire.stored_tables.lake_messages import (
    MAX_ROWS,
    ColumnFigures,
    LakeRequest,
    LakeSample,
    LakeTask,
    TableFigures,
)
from ui.api.lineage import readers_by_source
from ui.api.objects import Object
from ui.api.resources.lake_routes import sample_object
from ui.api.routes import Coordinator

router = APIRouter(prefix="/api/tables")

MAX_NAME = 200


@router.get("")
async def tables(coordinator: Coordinator) -> Object:
    """List the stored tables: where they are, how large, how fresh, and who reads them."""
    answer = await coordinator.lake.ask(LakeRequest("", 0, LakeTask.STORED))
    return {
        "tables": [stored_object(table) for table in answer.stored],
        "more": answer.more,
        "readers": readers_by_source(coordinator, (table.name for table in answer.stored)),
    }


@router.get("/{table}/sample")
async def sample(
    table: str,
    coordinator: Coordinator,
    rows: Annotated[int, Query(ge=0, le=MAX_ROWS)] = 20,
) -> Object:
    """Return the first rows of a table and figures of its columns; it is read if need be."""
    asked = LakeRequest("", 0, LakeTask.STORED, table=table[:MAX_NAME], rows=rows)
    answer = await coordinator.lake.ask(asked)
    found = sample_object(answer.sample or LakeSample())
    return {
        "columns": found["columns"],
        "rows": found["rows"],
        "figures": [figures_object(figures) for figures in answer.figures],
        "looked": answer.looked,
        "whole": not found["cut"],
    }


def stored_object(table: TableFigures) -> Object:
    """Return a stored table; `rows` may be an estimate."""
    return {
        "name": table.name,
        "source": table.source,
        "place": table.place,
        "rows": table.rows,
        "bytes": table.bytes,
        "read": None if table.read is None else timestamp_text(table.read),
        "refresh": table.refresh,
        "columns": [{"name": column.name, "type": column.type} for column in table.columns],
        "problem": table.problem,
        "told": table.told,
    }


def figures_object(figures: ColumnFigures) -> Object:
    """Return the figures of one column."""
    return {
        "name": figures.name,
        "nulls": figures.nulls,
        "distinct": figures.distinct,
        "least": figures.least,
        "greatest": figures.greatest,
        "bars": [
            {"label": label, "count": count}
            for label, count in zip(figures.labels, figures.counts, strict=False)
        ],
        "others": figures.others,
    }
