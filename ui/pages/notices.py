"""Pages of alarms and displays; what lives in them comes over the REST interface."""

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse

from streamsql.catalog.notices import DisplayDefinition
from ui.api.routes import Coordinator
from ui.pages.routes import templates

router = APIRouter(include_in_schema=False)


@router.get("/alarms", response_class=HTMLResponse)
async def alarms(request: Request) -> HTMLResponse:
    """What is raised, what was, and which alarms there are."""
    return templates.TemplateResponse(request, "alarms.html", {"page": "alarms"})


@router.get("/displays/{name}", response_class=HTMLResponse)
async def display(request: Request, name: str, coordinator: Coordinator) -> HTMLResponse:
    """A display, for a screen of its own."""
    for found in coordinator.definitions():
        if isinstance(found, DisplayDefinition) and found.name == name:
            context = {"page": "display", "display": found}
            return templates.TemplateResponse(request, "display.html", context)
    raise HTTPException(404, f"there is no display {name!r:.80}")
