"""The fleet: gateways provisioned, joined, revoked, renewed, renamed and retired.

Each change is made at the broker first and then written to the catalog: what fails half-way is
asked for again and finds the first half done.
"""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Sequence

from msgspec.structs import replace
from typing_extensions import override

from broker.access.rights import SiteKind, rights_of
from broker.access.security_commands import (
    CLIENT_EXISTS,
    CLIENT_NOT_FOUND,
    ROLE_EXISTS,
    ROLE_NOT_FOUND,
    Command,
    change_rights,
    create_site,
    delete_site,
    disable,
    enable,
    set_password,
)
from federated_optimizer.coordinator.contract.audit_model import Outcome
from federated_optimizer.coordinator.contract.fleet_model import (
    Enrolment,
    EnrolmentState,
    FleetApi,
    JoinRefusedError,
    ProvisionedGateway,
)
from federated_optimizer.coordinator.contract.principal import Principal
from federated_optimizer.coordinator.fleet.broker_accounts import BrokerAccounts
from federated_optimizer.coordinator.fleet.gateway_credentials import (
    GatewayCredentials,
    IssuedCertificate,
    new_password,
)
from federated_optimizer.coordinator.fleet.gateway_dialogue import GatewayDialogue
from federated_optimizer.coordinator.fleet.join_limits import JoinLimits
from federated_optimizer.coordinator.fleet.token_flaws import token_flaw
from federated_optimizer.coordinator.people.sign_in_attempts import network_of
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.store.enrolment_store import (
    remove_enrolment,
    store_enrolment,
)
from host.clocks import monotonic_clock
from streamsql.data.types import Value
from streamsql.errors import DeploymentError, FederationError
from streamsql.wire.codec import encode_json
from streamsql.wire.enrolment import (
    EnrolmentToken,
    JoinAnswer,
    JoinRequest,
    decode_token,
    hash_of,
)
from streamsql.wire.topics import check_id

log = logging.getLogger(__name__)

MAX_ENROLMENTS = 10_000
MAX_TOKEN_HOURS = 24.0 * 30
LIVE_SECONDS = 30.0
"""Within which a gateway that was renamed has to be there under its new name."""
OFFLINE_SECONDS = 5.0
_LOOK_SECONDS = 0.05
_BAD_TOKEN = JoinRefusedError(
    "this token is not good: it was used, has expired, was withdrawn, or is of another federation",
    hint="ask an administrator for a new one: pando gateway provision NAME",
)


class Fleet(FleetApi):
    """The fleet of one coordinator.

    Args:
        shared: Catalog, sites and broker.
        found: Enrolments in the catalog.
    """

    def __init__(self, shared: SharedParts, found: Sequence[Enrolment]) -> None:
        self._shared = shared
        self._enrolments = {each.name: each for each in found}
        self._accounts = BrokerAccounts(shared.client)
        self._gateways = GatewayDialogue(shared)
        self._credentials = GatewayCredentials(shared.settings.fleet, shared.clock)
        self._limits = JoinLimits()
        self._lock = asyncio.Lock()

    @property
    @override
    def authority(self) -> str:
        return self._credentials.authority

    @override
    def enrolments(self) -> tuple[Enrolment, ...]:
        return tuple(self._enrolments[name] for name in sorted(self._enrolments))

    @override
    async def provision(
        self, name: str, asker: Principal, *, hours: float = 24.0
    ) -> ProvisionedGateway:
        if not 0 < hours <= MAX_TOKEN_HOURS:
            raise DeploymentError(f"a token is good for up to {MAX_TOKEN_HOURS:g} hours")
        async with self._lock, self._noted(asker, "provision gateway", name):
            known = self._check_free(name)
            # Whoever is to join has to be told where: better to find out now.
            _ = self._credentials.broker
            fingerprint = await asyncio.to_thread(lambda: self._credentials.fingerprint)
            await self._make_account(name, new_password(), again=known is not None)
            secret = secrets.token_urlsafe(32)
            now = self._shared.clock()
            until = now + int(hours * 3_600_000_000)
            enrolment = known or Enrolment(name, EnrolmentState.PROVISIONED, now, asker.name)
            await self._keep(
                replace(
                    enrolment,
                    state=EnrolmentState.PROVISIONED,
                    token_hash=hash_of(secret),
                    token_until=until,
                )
            )
            log.info("gateway %s is provisioned by %s", name, asker.name)
            return ProvisionedGateway(
                name, EnrolmentToken(name, secret, fingerprint).encode(), until
            )

    @override
    async def join(self, request: JoinRequest, address: str) -> JoinAnswer:
        try:
            token = decode_token(request.token)
        except DeploymentError as error:
            self._count_attempt(address)
            raise JoinRefusedError(error.message, hint=error.hint) from error
        # Who has a token does not wait for those who guess.
        if self._flaw_of(token):
            self._count_attempt(address)
        async with self._lock, self._noted(None, "join gateway", token.gateway, address):
            enrolment = self._vouched_for(token, address)
            credentials = self._credentials
            issued = await asyncio.to_thread(credentials.issue, token.gateway, request.request)
            broker_ca = await asyncio.to_thread(lambda: credentials.broker_ca)
            password = new_password()
            await self._accounts.ask([set_password(token.gateway, password), enable(token.gateway)])
            await self._keep(
                replace(
                    _certified(enrolment, issued),
                    state=EnrolmentState.JOINED,
                    token_hash="",
                    token_until=0,
                    joined=self._shared.clock(),
                    address=address,
                    revoked=0,
                )
            )
            log.info("gateway %s has joined from %s", token.gateway, address)
            return JoinAnswer(
                site=self._shared.settings.site,
                gateway=token.gateway,
                broker=str(credentials.broker),
                broker_ca=broker_ca,
                certificate=issued.pem,
                password=password,
            )

    @override
    async def revoke(self, name: str, asker: Principal) -> Enrolment:
        async with self._noted(asker, "revoke gateway", name):
            self._find(name)
            if self._lock.locked():
                # Whoever holds it may wait for a gateway, for half a minute.
                await self._cut_off(name, "revoked")
            return await self._revoked(name, asker)

    async def _revoked(self, name: str, asker: Principal) -> Enrolment:
        async with self._lock:
            enrolment = self._find(name)
            await self._cut_off(name, "revoked")
            changed = replace(
                enrolment,
                state=EnrolmentState.REVOKED,
                token_hash="",
                token_until=0,
                revoked=self._shared.clock(),
            )
            log.info("gateway %s is revoked by %s", name, asker.name)
            return await self._keep(changed)

    @override
    async def rotate(self, name: str, asker: Principal) -> Enrolment:
        async with self._lock, self._noted(asker, "rotate gateway", name):
            enrolment = self._joined(name)
            issued = await self._sign_request(name, name)
            password = new_password()
            await self._hand_over(name, name, issued, password)
            # The gateway has both passwords until the broker takes the new one.
            await self._accounts.ask([set_password(name, password)])
            log.info("gateway %s has new credentials, by %s", name, asker.name)
            return await self._keep(
                replace(_certified(enrolment, issued), rotated=self._shared.clock())
            )

    @override
    async def rename(self, name: str, new: str, asker: Principal) -> Enrolment:
        async with self._lock, self._noted(asker, "rename gateway", f"{name} to {new:.64}"):
            enrolment = self._joined(name)
            if self._check_free(new) is not None:
                raise _taken(new)
            issued = await self._sign_request(name, new)
            password = new_password()
            await self._make_account(new, password, again=False)
            renamed = replace(_certified(enrolment, issued), name=new, rotated=self._shared.clock())
            # Before the gateway has the password: whatever becomes of it, the name can be revoked.
            await self._keep(renamed)
            await self._hand_over(name, new, issued, password)
            await self._until_live(name, new)
            await self._remove(name, "renamed")
            log.info("gateway %s is now %s, by %s", name, new, asker.name)
            return renamed

    @override
    async def retire(self, name: str, asker: Principal) -> None:
        async with self._lock, self._noted(asker, "retire gateway", name):
            self._find(name)
            await self._remove(name, "retired")
            log.info("gateway %s is retired by %s", name, asker.name)

    @contextlib.asynccontextmanager
    async def _noted(
        self, asker: Principal | None, action: str, target: str, address: str = ""
    ) -> AsyncIterator[None]:
        """Write into the audit what becomes of something."""
        audit = self._shared.audit
        try:
            yield
        except JoinRefusedError as error:
            audit.note(asker, action, target, Outcome.REFUSED, error.message, address=address)
            raise
        except FederationError as error:
            audit.note(asker, action, target, Outcome.FAILED, error.message, address=address)
            raise
        except KeyError:
            audit.note(asker, action, target, Outcome.FAILED, "no such gateway was provisioned")
            raise
        audit.note(asker, action, target, Outcome.DONE, address=address)

    # --- enrolments --------------------------------------------------------------------------

    def _find(self, name: str) -> Enrolment:
        self._shared.presence.check_in_charge()
        return self._enrolments[name]

    def _joined(self, name: str) -> Enrolment:
        enrolment = self._find(name)
        if enrolment.state is not EnrolmentState.JOINED:
            raise DeploymentError(
                f"gateway {name} has no credentials: it is {enrolment.state}",
                hint=f"pando gateway provision {name}",
            )
        return enrolment

    def _check_free(self, name: str) -> Enrolment | None:
        """Return the enrolment that a name may be provisioned again for, or None: it is new.

        Raises:
            DeploymentError: The name is no id, is taken, or there are too many enrolments.
        """
        self._shared.presence.check_in_charge()
        check_id(name, "gateway")
        known = self._enrolments.get(name)
        if known is not None and known.state is EnrolmentState.JOINED:
            raise DeploymentError(
                f"gateway {name} has joined already",
                hint=f"pando gateway rotate {name} gives it new credentials; for another machine "
                f"revoke it first: pando gateway revoke {name}",
            )
        own = {self._shared.settings.host, *self._shared.expected_sites}
        if known is None and (name in own or self._shared.membership.role(name) is not None):
            raise _taken(name)
        if known is None and len(self._enrolments) >= MAX_ENROLMENTS:
            raise DeploymentError(f"there are {MAX_ENROLMENTS} enrolments", hint="retire some")
        return known

    def _vouched_for(self, token: EnrolmentToken, address: str) -> Enrolment:
        """Return the enrolment that a token is good for.

        Raises:
            JoinRefusedError: There is none; the log says why, the stranger is not told.
        """
        self._shared.presence.check_in_charge()
        why = self._flaw_of(token)
        if not why:
            return self._enrolments[token.gateway]
        log.warning("a token for gateway %s from %s is refused: %s", token.gateway, address, why)
        raise _BAD_TOKEN

    def _flaw_of(self, token: EnrolmentToken) -> str:
        return token_flaw(token, self._enrolments.get(token.gateway), self._shared.clock())

    def _count_attempt(self, address: str) -> None:
        """Count an attempt that fails.

        Raises:
            JoinRefusedError: There were too many.
        """
        if not self._limits.admit(network_of(address), monotonic_clock() / 1_000_000):
            raise JoinRefusedError("too many attempts to join", hint="try again in a minute")

    async def _keep(self, enrolment: Enrolment) -> Enrolment:
        await asyncio.to_thread(store_enrolment, self._shared.store, enrolment)
        self._enrolments[enrolment.name] = enrolment
        return enrolment

    # --- broker and gateways -----------------------------------------------------------------

    async def _make_account(self, name: str, password: str, *, again: bool) -> None:
        rights = rights_of(SiteKind.GATEWAY, name, self._shared.settings.site)
        commands: list[Command] = [
            *create_site(name, password, rights, text="gateway"),
            change_rights(name, rights),
        ]
        accepted = [ROLE_EXISTS]
        if again:
            commands.append(set_password(name, password))
            accepted.append(CLIENT_EXISTS)
        await self._accounts.ask(commands, accepted=accepted)

    async def _sign_request(self, gateway: str, name: str) -> IssuedCertificate:
        """Let a gateway make a key, and sign it for a name."""
        asked = await self._gateways.ask(gateway, {"step": "request", "gateway": name})
        return await asyncio.to_thread(self._credentials.issue, name, str(asked.get("request", "")))

    async def _hand_over(
        self, gateway: str, name: str, issued: IssuedCertificate, password: str
    ) -> None:
        """Give a gateway the certificate and password for a name."""
        given: dict[str, Value] = {
            "step": "take",
            "gateway": name,
            "certificate": issued.pem,
            "password": password,
        }
        await self._gateways.ask(gateway, given)

    async def _cut_off(self, name: str, reason: str) -> None:
        """Let the broker refuse a gateway, and tell all sites that it is gone."""
        await self._accounts.ask([disable(name)], accepted=[CLIENT_NOT_FOUND])
        membership = self._shared.membership
        # A broker may drop the will of a client that it has just been told to refuse.
        state = membership.cut_off(name, reason, self._shared.clock())
        if state is None:
            return
        topic = self._shared.topics.state(name)
        self._shared.client.publish(topic, encode_json(state), retain=True)
        await _holds(lambda: not membership.is_online(name), OFFLINE_SECONDS)

    async def _remove(self, name: str, reason: str) -> None:
        await self._cut_off(name, reason)
        shared = self._shared
        if shared.membership.role(name) is not None:
            shared.deployment.remove_gateway(name, shared.links.owned_by(name))
        await self._accounts.ask(delete_site(name), accepted=[CLIENT_NOT_FOUND, ROLE_NOT_FOUND])
        await asyncio.to_thread(remove_enrolment, shared.store, name)
        self._enrolments.pop(name, None)

    async def _until_live(self, name: str, new: str) -> None:
        if not await _holds(lambda: self._shared.membership.is_online(new), LIVE_SECONDS):
            raise DeploymentError(
                f"gateway {name} has taken the name {new} but is not there after "
                f"{LIVE_SECONDS:g} s; both accounts are good",
                hint=f"look at its log; when it is there: pando gateway retire {name}",
            )


async def _holds(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait until a condition holds, for so long at most; return whether it does."""
    for _ in range(int(seconds / _LOOK_SECONDS)):
        if condition():
            break
        await asyncio.sleep(_LOOK_SECONDS)
    return condition()


def _taken(name: str) -> DeploymentError:
    return DeploymentError(
        f"the name {name} is taken", hint="choose another, or retire the gateway that has it"
    )


def _certified(enrolment: Enrolment, issued: IssuedCertificate) -> Enrolment:
    return replace(enrolment, serial=issued.serial, valid_until=issued.valid_until)
