"""The page `/metrics`: figures of console, coordinator, broker and all sites for Prometheus."""

from fastapi import APIRouter
from fastapi.responses import Response

from host.metrics.exposition import CONTENT_TYPE, exposition
from ui.api.federation_figures import federation_figures
from ui.api.routes import Coordinator

router = APIRouter()


@router.get("/metrics", response_class=Response)
async def metrics(coordinator: Coordinator) -> Response:
    """Return all figures in Prometheus' text form."""
    text = exposition(federation_figures(coordinator))
    return Response(text, headers={"Content-Type": CONTENT_TYPE})
