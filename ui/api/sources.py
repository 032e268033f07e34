"""Sources over REST: which gateways send their rows, and which rows are missing."""

from typing import Any

from fastapi import APIRouter

from federated_optimizer.coordinator.statements.source_listings import SOURCE_COLUMNS, source_row
from streamsql.catalog.definitions import SourceDefinition
from ui.api.routes import Coordinator

router = APIRouter(prefix="/api")


@router.get("/sources")
async def sources(coordinator: Coordinator) -> list[dict[str, Any]]:
    """List the sources as SHOW SOURCES does, in the order they were made."""
    sites = coordinator.sites()
    defined = [d for d in coordinator.definitions() if isinstance(d, SourceDefinition)]
    rows = [source_row(source, sites) for source in defined]
    return [dict(zip(SOURCE_COLUMNS, row, strict=True)) for row in rows]
