"""Pages, rendered on the server; what lives in them comes over the REST interface."""

from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from fastapi.templating import Jinja2Templates

from ui.pages.examples import examples_for

router = APIRouter(include_in_schema=False)
templates = Jinja2Templates(directory=Path(__file__).parent / "templates")


@router.get("/queries", response_class=HTMLResponse)
async def queries(request: Request) -> HTMLResponse:
    """The query console."""
    examples = examples_for(request.app.state.settings.layers)
    context = {"page": "queries", "examples": examples}
    return templates.TemplateResponse(request, "queries.html", context)


@router.get("/monitor", response_class=HTMLResponse)
async def monitor(request: Request) -> HTMLResponse:
    """A query's running plan, its numbers against time, and what may be changed about it."""
    return templates.TemplateResponse(request, "monitor.html", {"page": "monitor"})


@router.get("/network", response_class=HTMLResponse)
async def network(request: Request) -> HTMLResponse:
    """The links of a source, and what breaks without one."""
    return templates.TemplateResponse(request, "network.html", {"page": "network"})


@router.get("/gateways", response_class=HTMLResponse)
async def gateways(request: Request) -> HTMLResponse:
    """Gateways, base sites, static engine."""
    return templates.TemplateResponse(request, "gateways.html", {"page": "gateways"})


@router.get("/data", response_class=HTMLResponse)
async def data(request: Request) -> HTMLResponse:
    """Sources, tables, views."""
    return templates.TemplateResponse(request, "data.html", {"page": "data"})
