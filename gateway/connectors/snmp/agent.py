"""One SNMP agent: values of objects, and columns of tables."""

from collections.abc import Callable, Sequence

from pyasn1.type.univ import Integer, ObjectIdentifier, OctetString
from pysnmp.error import PySnmpError
from pysnmp.hlapi.v3arch import asyncio as snmp
from pysnmp.proto.rfc1902 import IpAddress
from pysnmp.proto.rfc1905 import EndOfMibView, NoSuchInstance, NoSuchObject

from gateway.connectors.lost_cancellation import raise_if_cancelled
from gateway.connectors.snmp.snmp_options import SnmpEndpoint

Oid = tuple[int, ...]

GET_SIZE = 20
"""Objects in one request."""
BULK_SIZE = 25
"""Rows of a table's column in one answer."""
MAX_ROWS = 5_000
"""Of a table."""
_MAX_OCTETS = 4_000

_AUTHENTICATIONS = {
    "MD5": snmp.USM_AUTH_HMAC96_MD5,
    "SHA": snmp.USM_AUTH_HMAC96_SHA,
    "SHA224": snmp.USM_AUTH_HMAC128_SHA224,
    "SHA256": snmp.USM_AUTH_HMAC192_SHA256,
    "SHA384": snmp.USM_AUTH_HMAC256_SHA384,
    "SHA512": snmp.USM_AUTH_HMAC384_SHA512,
}
_PRIVACIES = {
    "DES": snmp.USM_PRIV_CBC56_DES,
    "AES": snmp.USM_PRIV_CFB128_AES,
    "AES192": snmp.USM_PRIV_CFB192_AES,
    "AES256": snmp.USM_PRIV_CFB256_AES,
}


class Agent:
    """An agent; when it does not answer, requests raise ConnectionError."""

    def __init__(self, endpoint: SnmpEndpoint) -> None:
        self._endpoint = endpoint
        self._name = f"snmp {endpoint.host}:{endpoint.port}"
        self._engine = snmp.SnmpEngine()
        self._credentials = _credentials(endpoint)
        self._context = snmp.ContextData(contextName=endpoint.context.encode())
        self._target: snmp.UdpTransportTarget | None = None

    async def open(self) -> None:
        """Look up its address.

        Raises:
            ConnectionError: The name is unknown.
        """
        given = self._endpoint
        try:
            self._target = await snmp.UdpTransportTarget.create(
                (given.host, given.port), timeout=float(given.timeout), retries=given.retries
            )
        except PySnmpError:
            raise ConnectionError(f"{self._name}: the host is unknown") from None

    def close(self) -> None:
        """Close the socket."""
        self._engine.close_dispatcher()

    async def get(self, oids: Sequence[Oid], complain: Callable[[str], None]) -> dict[Oid, object]:
        """Return the values of objects; those that are not there are complained of.

        Raises:
            ConnectionError: The agent does not answer, or refuses us.
        """
        found: dict[Oid, object] = {}
        for start in range(0, len(oids), GET_SIZE):
            part = oids[start : start + GET_SIZE]
            answer = await self._ask(snmp.get_cmd, part, complain)
            for asked, (oid, value) in zip(part, answer, strict=False):
                if oid != asked or isinstance(value, NoSuchObject | NoSuchInstance | EndOfMibView):
                    complain(f"{text_of_oid(asked)}: the agent has no such object")
                else:
                    found[oid] = plain_value(value)
        return found

    async def column(
        self, column: Oid, complain: Callable[[str], None], limit: int = MAX_ROWS
    ) -> dict[Oid, object]:
        """Return the values of a table's column by the index of their row, so many at most.

        Raises:
            ConnectionError: The agent does not answer, or refuses us.
        """
        found: dict[Oid, object] = {}
        last = column
        while True:
            answer = await self._ask(snmp.bulk_cmd, [last], complain, 0, BULK_SIZE)
            for oid, value in answer:
                if oid[: len(column)] != column or isinstance(value, EndOfMibView):
                    return found
                if oid <= last:
                    complain(f"{text_of_oid(column)}: the agent does not count on; read in part")
                    return found
                if len(found) >= limit:
                    complain(f"{text_of_oid(column)}: more than {limit:,} rows; read in part")
                    return found
                last = oid
                found[oid[len(column) :]] = plain_value(value)
            if not answer:
                return found

    async def _ask(
        self,
        command: Callable[..., object],
        oids: Sequence[Oid],
        complain: Callable[[str], None],
        *options: int,
    ) -> list[tuple[Oid, object]]:
        objects = [snmp.ObjectType(snmp.ObjectIdentity(oid)) for oid in oids]
        asked = command(
            self._engine,
            self._credentials,
            self._target,
            self._context,
            *options,
            *objects,
            lookupMib=False,
        )
        try:
            failure, status, place, answer = await asked  # type: ignore[misc]  # pysnmp is not typed
        except PySnmpError as error:
            raise ConnectionError(f"{self._name}: {error!s:.200}") from None
        raise_if_cancelled()
        if failure:
            raise ConnectionError(f"{self._name}: {failure!s:.200}")
        if status:
            at = int(place)
            which = text_of_oid(oids[at - 1]) if 0 < at <= len(oids) else "the request"
            complain(f"{which}: the agent refuses ({status.prettyPrint():.60})")
            return []
        return [(tuple(name), value) for name, value in answer]


def text_of_oid(oid: Oid) -> str:
    """Return an OID as it is written."""
    return ".".join(map(str, oid))


def plain_value(value: object) -> object:
    """Return a value of SNMP as the mapping of columns takes it; octets that are no text as hex."""
    if isinstance(value, IpAddress):
        return value.prettyPrint()
    if isinstance(value, Integer):
        return int(value)
    if isinstance(value, ObjectIdentifier):
        return text_of_oid(tuple(value))
    if isinstance(value, OctetString):
        octets = value.asOctets()[:_MAX_OCTETS]
        try:
            text = str(octets.decode())
        except UnicodeDecodeError:
            return str(octets.hex())
        stripped = text.rstrip("\0")
        return stripped if stripped.isprintable() else str(octets.hex())
    return None


def _credentials(endpoint: SnmpEndpoint) -> object:
    if endpoint.version == "2c":
        return snmp.CommunityData(endpoint.community, mpModel=1)  # noqa: S508  (many devices know no other)
    return snmp.UsmUserData(
        endpoint.username,
        endpoint.auth_key or None,
        endpoint.priv_key or None,
        authProtocol=_AUTHENTICATIONS[endpoint.auth] if endpoint.auth_key else snmp.USM_AUTH_NONE,
        privProtocol=_PRIVACIES[endpoint.priv] if endpoint.priv_key else snmp.USM_PRIV_NONE,
    )
