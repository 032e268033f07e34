"""Pages of alarms and displays; what lives in them comes over the REST interface."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from federated_optimizer.coordinator.contract.coordinator_api import CoordinatorApi
from streamsql.catalog.notices import DisplayDefinition
from ui.api.routes import Coordinator
from ui.pages.routes import templates

router = APIRouter(include_in_schema=False)


@router.get("/alarms", response_class=HTMLResponse)
async def alarms(request: Request) -> HTMLResponse:
    """What is raised, what was, and which alarms there are."""
    return templates.TemplateResponse(request, "alarms.html", {"page": "alarms"})


@router.get("/displays", response_class=HTMLResponse)
async def displays(request: Request, coordinator: Coordinator) -> HTMLResponse:
    """Which displays there are."""
    context = {"page": "displays", "displays": _displays(coordinator)}
    return templates.TemplateResponse(request, "displays.html", context)


@router.get("/displays/{name}", response_class=HTMLResponse)
async def display(request: Request, name: str, coordinator: Coordinator) -> HTMLResponse:
    """A display, for a screen of its own; where there is none of that name, which there are."""
    known = _displays(coordinator)
    for found in known:
        if found.name == name:
            context = {"page": "display", "display": found}
            return templates.TemplateResponse(request, "display.html", context)
    missing = {"page": "displays", "displays": known, "missing": name[:80]}
    return templates.TemplateResponse(request, "displays.html", missing, status_code=404)


def _displays(coordinator: CoordinatorApi) -> list[DisplayDefinition]:
    found = coordinator.definitions()
    return [definition for definition in found if isinstance(definition, DisplayDefinition)]
