"""Sinks over REST: where answers go, and what their receivers did not take."""

from typing import Any

from fastapi import APIRouter, HTTPException

from ui.api.objects import sink_object
from ui.api.routes import Coordinator

router = APIRouter(prefix="/api")


@router.get("/sinks")
async def sinks(coordinator: Coordinator) -> list[dict[str, Any]]:
    """List the sinks with their dead letters, in the order they were made."""
    return [sink_object(info) for info in coordinator.sinks.infos()]


@router.get("/sinks/{name}")
async def sink(name: str, coordinator: Coordinator) -> dict[str, Any]:
    """Return a sink and its dead letters."""
    for info in coordinator.sinks.infos():
        if info.definition.name == name:
            return sink_object(info)
    raise HTTPException(404, f"there is no sink {name!r:.80}")


@router.post("/sinks/{name}/retry")
async def retry(name: str, coordinator: Coordinator) -> dict[str, Any]:
    """Send the dead letters of a sink again; `retried` counts them."""
    try:
        return {"sink": name, "retried": coordinator.sinks.retry(name)}
    except KeyError:
        raise HTTPException(404, f"there is no sink {name!r:.80}") from None


@router.get("/sinks/{name}/dead")
async def dead(name: str, coordinator: Coordinator) -> list[dict[str, Any]]:
    """List the dead letters of a sink, oldest first."""
    letters: list[dict[str, Any]] = (await sink(name, coordinator))["dead_letters"]
    return letters


@router.post("/sinks/{name}/discard")
async def discard(name: str, coordinator: Coordinator) -> dict[str, Any]:
    """Forget the dead letters of a sink; `discarded` counts them."""
    try:
        return {"sink": name, "discarded": coordinator.sinks.discard(name)}
    except KeyError:
        raise HTTPException(404, f"there is no sink {name!r:.80}") from None
