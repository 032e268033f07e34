"""The CoAP connector: notifications of observed resources to readings."""

import asyncio
import contextlib

from aiocoap import GET, Context, Message
from aiocoap.error import Error as CoapError

from gateway.connectors.coap.coap_options import CoapEndpoint, CoapSource
from gateway.connectors.connector import ConnectorContext
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.lost_cancellation import raise_if_cancelled

CLOSE_SECONDS = 0.4
_LOST = (OSError, TimeoutError, CoapError)


class CoapConnector:
    """Serves one device: each resource of each source is observed."""

    kind = "coap"
    endpoint_options = CoapEndpoint
    source_options = CoapSource

    async def run(self, context: ConnectorContext) -> None:
        """Observe the resources until the device is lost.

        Raises:
            ConnectionError: It gives no answer.
        """
        endpoint = context.endpoint_as(CoapEndpoint)
        client = await Context.create_client_context()
        reason = ""
        try:
            async with asyncio.TaskGroup() as group:
                for source in context.sources:
                    options = source.options_as(CoapSource)
                    for path in options.paths():
                        resource = _Resource(context, client, endpoint, source, path)
                        group.create_task(resource.observe(options.interval))
        except* _LOST as errors:
            reason = f"coap {endpoint.url}: {_reason(errors)}"
        finally:
            with contextlib.suppress(*_LOST):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await client.shutdown()
        if reason:
            raise ConnectionError(reason)


class _Resource:
    """One resource of a source."""

    def __init__(
        self,
        context: ConnectorContext,
        client: Context,
        endpoint: CoapEndpoint,
        source: DeclaredSource,
        path: str,
    ) -> None:
        self._context = context
        self._client = client
        self._timeout = endpoint.timeout
        self._source = source
        self._path = path
        self._uri = f"{endpoint.url.rstrip('/')}/{path}"

    async def observe(self, interval: float) -> None:
        """Ask for the resource and its changes, and once an interval again.

        Raises:
            TimeoutError: No answer came.
        """
        loop = asyncio.get_running_loop()
        while True:
            again = loop.time() + interval
            request = self._client.request(Message(code=GET, uri=self._uri, observe=0))
            try:
                async with asyncio.timeout(self._timeout):
                    answer = await request.response
                raise_if_cancelled()
                await self._take(answer)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(again):
                        async for notification in request.observation:
                            await self._take(notification)
                        # It ends where the resource cannot be observed, or no longer.
                        await asyncio.sleep(interval)
            finally:
                if not request.observation.cancelled:
                    request.observation.cancel()

    async def _take(self, answer: Message) -> None:
        """Emit the readings of an answer; of those that come meanwhile the newest counts."""
        if not answer.code.is_successful():
            self._source.problem(f"resource {self._path}: {answer.code!s:.60}")
            return
        readings = await self._source.read_aside(answer.payload, path=self._path)
        if readings:
            self._context.emit(readings)
            await self._context.kept()


def _reason(errors: BaseExceptionGroup[BaseException]) -> str:
    """Return why the device is lost, from the first error of a group."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    return f"no connection ({str(error) or type(error).__name__:.200})"
