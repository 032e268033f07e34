"""A page with a number, for the conformance kit."""

import contextlib
from collections.abc import Mapping

from tests.gateway.connectors.http.pages import Pages, answer, pages
from tests.gateway.connectors.steady_peer import PortPeer


class PagePeer(PortPeer):
    """Serves one page."""

    statement = """
    CREATE SOURCE counted (number INTEGER)
    WITH (connector = 'http', endpoint = 'trial', path = '/now', interval = '0.1 s')
    """

    def __init__(self) -> None:
        super().__init__()
        self._pages = Pages()

    @property
    def endpoint(self) -> Mapping[str, object]:
        return {"url": f"http://127.0.0.1:{self.port}", "timeout": 2}

    async def serve(self, running: contextlib.AsyncExitStack) -> None:
        self._pages = await running.enter_async_context(pages(self.port))
        await self.send(0)

    async def send(self, number: int) -> None:
        self._pages.put("/now", answer(f'{{"number": {number}}}'))

    async def send_bad(self) -> None:
        self._pages.put("/now", answer('{"number": '))

    async def send_huge(self, number: int) -> None:
        self._pages.put("/now", answer(f'{{"number": {number}, "padding": "{"x" * 1_500_000}"}}'))
