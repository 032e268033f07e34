"""Accounts and tokens as the REST interface shows them: without anything secret."""

from typing import Any

from federated_optimizer.coordinator.contract.people_model import Account, ApiToken, NewToken
from streamsql.data.types import timestamp_text


def account_object(account: Account) -> dict[str, Any]:
    """Return an account."""
    return {
        "name": account.name,
        "role": account.role,
        "disabled": account.disabled,
        "created": timestamp_text(account.created),
        "last_sign_in": _time(account.last_sign_in),
        "provider": account.provider or None,
    }


def token_object(token: ApiToken) -> dict[str, Any]:
    """Return a token."""
    return {
        "id": token.id,
        "account": token.account,
        "label": token.label,
        "role": token.role,
        "created": timestamp_text(token.created),
        "expires": _time(token.expires),
        "last_used": _time(token.last_used),
        "sources": None if token.sources is None else list(token.sources),
    }


def new_token_object(made: NewToken) -> dict[str, Any]:
    """Return a token that was just made, with its secret."""
    return {**token_object(made.token), "secret": made.secret}


def _time(at: int | None) -> str | None:
    return None if at is None else timestamp_text(at)
