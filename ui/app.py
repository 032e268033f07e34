"""The console as a FastAPI application over a coordinator."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from federated_optimizer.coordinator.contract.coordinator_api import CoordinatorApi
from federated_optimizer.coordinator.contract.people_model import (
    PeopleApi,
    PeopleError,
    SignInRefusedError,
    TooManyAttemptsError,
)
from host.clocks import wall_clock
from streamsql.errors import FederationError, InternalError, QueryError
from ui.api.explanations import router as explanations
from ui.api.many_changes import router as many_changes
from ui.api.objects import error_object
from ui.api.resources.cost_routes import router as costs
from ui.api.resources.fleet_routes import router as fleet
from ui.api.resources.grant_routes import router as grants
from ui.api.resources.history_routes import router as history_trials
from ui.api.resources.lake_routes import router as lake
from ui.api.resources.metrics_routes import router as metrics
from ui.api.resources.network_routes import router as computations
from ui.api.resources.notice_routes import router as notices
from ui.api.resources.sink_routes import router as sinks
from ui.api.resources.site_settings_routes import router as site_settings
from ui.api.resources.source_trial_routes import router as source_trials
from ui.api.resources.table_routes import router as tables
from ui.api.routes import router as api
from ui.api.sources import router as sources
from ui.console_names import Hosts
from ui.console_settings import ConsoleSettings
from ui.map.map_routes import router as live_map
from ui.map.map_service import MapService
from ui.pages.page_routes import router as pages
from ui.pages.page_routes import templates
from ui.request_checks import Guard, problem
from ui.sign_in.exposure import is_loopback, proxies
from ui.sign_in.page_links import offer_links
from ui.sign_in.people_routes import pages as people_pages
from ui.sign_in.people_routes import router as people_api
from ui.sign_in.provider.provider_routes import router as provider_pages
from ui.sign_in.provider.provider_sign_in import ProviderSignIn
from ui.sign_in.session_cookie import SessionCookie
from ui.sign_in.sign_in_layer import SignInLayer
from ui.sign_in.sign_in_routes import pages as sign_in_pages
from ui.sign_in.sign_in_routes import people_problem
from ui.sign_in.sign_in_routes import router as sign_in_api

STATIC = Path(__file__).parent / "static"
_STATUS = {"not_allowed": 403, "quota_exceeded": 429}
"""Of errors whose code says more than their class."""
_CODES = {404: "not_found", 413: "too_large"}


def create_app(
    coordinator: CoordinatorApi, settings: ConsoleSettings, people: PeopleApi | None = None
) -> FastAPI:
    """Return the application; `coordinator` must be running already.

    Its `state.closing` is set by whoever serves it when it is time to go: streams end then.

    Args:
        coordinator: What everything is asked of.
        settings: See `ConsoleSettings`.
        people: Who may sign in; without them whoever asks may do everything.

    Raises:
        DeploymentError: The site file is wrong.
    """
    live = MapService(coordinator, settings)

    @contextlib.asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        await live.start()
        try:
            yield
        finally:
            await live.close()

    app = FastAPI(
        title="Pando",
        summary="Sensor federation: queries, results, gateways",
        version="1",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.coordinator = coordinator
    app.state.settings = settings
    app.state.map = live
    app.state.closing = asyncio.Event()
    app.state.people = people
    app.state.session_cookie = SessionCookie(settings.port)
    app.state.wall_clock = wall_clock
    app.state.provider = None if settings.oidc is None else ProviderSignIn(settings.oidc)
    offer_links()
    for router in (
        api,
        explanations,
        costs,
        site_settings,
        fleet,
        sources,
        source_trials,
        history_trials,
        lake,
        tables,
        many_changes,
        computations,
        grants,
        notices,
        sinks,
        metrics,
        live_map,
        pages,
        sign_in_api,
        sign_in_pages,
        people_api,
        people_pages,
        provider_pages,
    ):
        app.include_router(router)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    if people is not None:
        is_exposed = not is_loopback(settings.host) or bool(proxies(settings.trusted_proxy))
        app.add_middleware(
            SignInLayer, people=people, cookie=app.state.session_cookie, is_exposed=is_exposed
        )
    app.add_middleware(Guard, hosts=Hosts(settings.host, settings.host_names))
    app.exception_handler(FederationError)(_federation_error)
    for kind in (PeopleError, SignInRefusedError, TooManyAttemptsError):
        app.exception_handler(kind)(people_problem)
    app.exception_handler(HTTPException)(_http_error)
    app.exception_handler(RequestValidationError)(_validation_error)
    app.exception_handler(ClientDisconnect)(_gone)
    app.exception_handler(Exception)(_defect)
    return app


async def _federation_error(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, FederationError):
        raise error
    status = 400 if isinstance(error, QueryError) else 409
    status = _STATUS.get(error.code, status)
    status = 500 if isinstance(error, InternalError) else status
    return JSONResponse(error_object(error), status)


async def _http_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code == 404 and _is_for_people(request):
        context = {"page": "missing", "path": request.url.path[:80]}
        return templates.TemplateResponse(request, "missing.html", context, status_code=404)
    return problem(error.status_code, _CODES.get(error.status_code, "refused"), str(error.detail))


def _is_for_people(request: Request) -> bool:
    """Whether somebody typed an address into a browser, rather than a program asking the API."""
    wants_page = "text/html" in request.headers.get("accept", "")
    return wants_page and not request.url.path.startswith(("/api/", "/static/"))


async def _gone(_request: Request, _error: Exception) -> Response:
    """Answer who hung up within a request: nobody reads it, and nothing has failed here."""
    return Response(status_code=400)


async def _defect(_request: Request, error: Exception) -> JSONResponse:
    """Answer; the server writes the traceback to its log."""
    return problem(500, InternalError.code, f"the console failed: {type(error).__name__}: {error}")


async def _validation_error(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, RequestValidationError):
        raise error
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:])
    return problem(422, "invalid", f"{place or 'request'}: {first['msg']}")
