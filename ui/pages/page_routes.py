"""Pages, rendered on the server; what lives in them comes over the REST interface."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from fastapi.templating import Jinja2Templates

from federated_optimizer.coordinator.contract.coordinator_api import CoordinatorApi
from streamsql.catalog.notice_definitions import DisplayDefinition
from ui.api.routes import Coordinator
from ui.pages.examples import examples_for

router = APIRouter(include_in_schema=False)
templates = Jinja2Templates(directory=Path(__file__).parent / "templates")


def _plain(page: str) -> Callable[[Request], Awaitable[HTMLResponse]]:
    async def shown(request: Request) -> HTMLResponse:
        return templates.TemplateResponse(request, f"{page}.html", {"page": page})

    return shown


for _page in ("monitor", "network", "gateways", "data", "alarms", "history"):
    router.get(f"/{_page}", response_class=HTMLResponse)(_plain(_page))


router.get("/sources/new", response_class=HTMLResponse)(_plain("new_source"))


@router.get("/queries", response_class=HTMLResponse)
async def queries(request: Request) -> HTMLResponse:
    """The query console."""
    examples = examples_for(request.app.state.settings.layers)
    context = {"page": "queries", "examples": examples}
    return templates.TemplateResponse(request, "queries.html", context)


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
