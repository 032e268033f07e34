"""Flaws of enrolment tokens: why one is not good, for the log only."""

import hmac

from federated_optimizer.coordinator.contract.fleet_model import Enrolment
from streamsql.wire.enrolment import EnrolmentToken, hash_of


def token_flaw(token: EnrolmentToken, enrolment: Enrolment | None, now: int) -> str:
    """Return what is wrong with a token, or nothing.

    Args:
        token: As a stranger brings it.
        enrolment: Of the gateway that it names; None: there is none.
        now: Microseconds since 1970.
    """
    kept = enrolment.token_hash if enrolment is not None else ""
    is_it = hmac.compare_digest(kept or hash_of(""), hash_of(token.secret))
    if enrolment is None or not kept:
        return "nobody is awaited under this name"
    if not is_it:
        return "the secret is wrong"
    return "it has expired" if enrolment.token_until < now else ""
