"""People who were sent to a provider and are to come back, each with the browser that left."""

import hmac
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from federated_optimizer.coordinator.people.random_secrets import digest, session_secret

SECONDS = 600.0
MAX_PENDING = 2_000


@dataclass(frozen=True, slots=True)
class Pending:
    """A sign-in that is under way.

    Attributes:
        browser: Digest of a secret that only the browser has that left.
        nonce: That the token has to repeat.
        verifier: Whose hash the provider was told (PKCE, RFC 7636).
        next_page: To show afterwards.
        until: When it is too late, in seconds of the clock.
    """

    browser: str
    nonce: str
    verifier: str
    next_page: str
    until: float


class PendingSignIns:
    """Those under way, by the state that goes to the provider and back; bounded, oldest first."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._by_state: OrderedDict[str, Pending] = OrderedDict()

    def begin(self, next_page: str) -> tuple[str, str, Pending]:
        """Return state, the browser's secret, and what is remembered."""
        browser = session_secret()
        pending = Pending(
            digest(browser),
            session_secret(),
            session_secret() + session_secret(),
            next_page,
            self._clock() + SECONDS,
        )
        state = session_secret()
        self._by_state[state] = pending
        while len(self._by_state) > MAX_PENDING:
            self._by_state.popitem(last=False)
        return state, browser, pending

    def finish(self, state: str, browser: str) -> Pending | None:
        """Return what was remembered, once; None for another browser or when it is too late."""
        pending = self._by_state.get(state)
        if pending is None or not hmac.compare_digest(pending.browser, digest(browser)):
            return None
        del self._by_state[state]
        return pending if self._clock() < pending.until else None
