"""A page (Starlette on uvicorn) that shows the next numbers to each request."""

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from benchmarks._device_faults.peers.peer import Served, peer_arguments

POLLS_A_SECOND = 10


def main() -> None:
    """Serve until killed."""
    arguments = peer_arguments()
    served = Served(arguments)
    a_page = max(1, round(arguments.rate / POLLS_A_SECOND))

    async def page(_request: Request) -> JSONResponse:
        return JSONResponse({"rows": [{"n": number} for number in served.take(a_page)]})

    app = Starlette(routes=[Route("/numbers", page)])
    uvicorn.run(app, host="127.0.0.1", port=arguments.port, log_level="warning")


if __name__ == "__main__":
    main()
