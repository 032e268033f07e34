"""The console as a FastAPI application over a coordinator."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.middleware.base import RequestResponseEndpoint

from federated_optimizer.coordinator.model import CoordinatorApi
from streamsql.errors import FederationError, InternalError, QueryError
from ui.api.objects import error_object
from ui.api.routes import router as api
from ui.pages.routes import router as pages
from ui.settings import ConsoleSettings

STATIC = Path(__file__).parent / "static"
MAX_BODY = 1_000_000


def create_app(coordinator: CoordinatorApi, settings: ConsoleSettings) -> FastAPI:
    """Return the application; `coordinator` must be running already.

    Args:
        coordinator: What everything is asked of.
        settings: See `ConsoleSettings`.
    """

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await _install_layers(app)
        yield

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
    app.include_router(api)
    app.include_router(pages)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.middleware("http")(_guard)
    app.exception_handler(FederationError)(_federation_error)
    app.exception_handler(HTTPException)(_http_error)
    return app


async def _install_layers(app: FastAPI) -> None:
    """Start the map's standing queries."""


async def _guard(request: Request, call_next: RequestResponseEndpoint) -> Response:
    """Refuse large bodies, and changes asked for by pages of other origins."""
    if request.method not in ("GET", "HEAD", "OPTIONS"):
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
            return _problem(403, "forbidden", f"requests from {origin:.200} are not accepted")
        length = request.headers.get("content-length", "0")
        if not length.isdigit() or int(length) > MAX_BODY:
            return _problem(413, "too_large", f"at most {MAX_BODY} bytes are accepted")
    response = await call_next(request)
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    response.headers.setdefault("Referrer-Policy", "same-origin")
    return response


async def _federation_error(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, FederationError):
        raise error
    status = 400 if isinstance(error, QueryError) else 409
    status = 500 if isinstance(error, InternalError) else status
    return JSONResponse(error_object(error), status)


async def _http_error(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        raise error
    code = "not_found" if error.status_code == 404 else "refused"
    return _problem(error.status_code, code, str(error.detail))


def _problem(status: int, code: str, message: str) -> JSONResponse:
    return JSONResponse({"error": {"code": code, "message": message, "hint": ""}}, status)
