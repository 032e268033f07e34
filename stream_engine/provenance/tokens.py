"""Tokens: the Boolean variables of provenance, one per base row that enters a recursion.

A token is an unsigned 64-bit integer, so it travels as it is: 24 bits epoch of the site, 8 bits
index of the site in the query's list of sites, 32 bits sequence number. A token is never used
twice; a row that comes back gets a fresh one.
"""

from dataclasses import dataclass

from streamsql.errors import InternalError, WireError

SEQUENCE_BITS = 32
SITE_BITS = 8
EPOCH_BITS = 24
MAX_SITES = 1 << SITE_BITS
MAX_TOKEN = (1 << (SEQUENCE_BITS + SITE_BITS + EPOCH_BITS)) - 1
_SEQUENCE_MASK = (1 << SEQUENCE_BITS) - 1
_EPOCH_MASK = (1 << EPOCH_BITS) - 1


def origin_of(token: int) -> int:
    """Return epoch and site of a token as one number: epoch * 256 + site index."""
    return token >> SEQUENCE_BITS


def sequence_of(token: int) -> int:
    """Return a token's sequence number at its origin."""
    return token & _SEQUENCE_MASK


def site_index_of(token: int) -> int:
    """Return the index of the site a token comes from.

    Examples:
        >>> site_index_of(TokenSource(site_index=3, epoch=1).fresh())
        3
    """
    return (token >> SEQUENCE_BITS) & (MAX_SITES - 1)


def epoch_of(token: int) -> int:
    """Return the epoch of a token's site, modulo 2**24."""
    return token >> (SEQUENCE_BITS + SITE_BITS)


def is_epoch_at_most(epoch: int, bound: int) -> bool:
    """Whether an epoch is no later than a bound, in the circular order of 24 bits.

    Epochs grow by one with every restart, so two that are compared are always closer than half of
    the circle (serial number arithmetic, RFC 1982).

    Examples:
        >>> is_epoch_at_most(7, 7), is_epoch_at_most(8, 7), is_epoch_at_most(2**24 - 1, 0)
        (True, False, True)
    """
    return (bound - epoch) & _EPOCH_MASK < 1 << (EPOCH_BITS - 1)


def checked_token(token: int) -> int:
    """Return a token received from another site.

    Raises:
        WireError: It is no unsigned 64-bit number.
    """
    if not 0 <= token <= MAX_TOKEN:
        raise WireError(f"token {token} is not an unsigned 64-bit number")
    return token


@dataclass(slots=True)
class TokenSource:
    """Gives out the tokens of one site and epoch.

    Attributes:
        site_index: Of this site in the query's list of sites.
        epoch: Of this site.
        used: How many tokens were given out.
    """

    site_index: int
    epoch: int
    used: int = 0

    @property
    def origin(self) -> int:
        """Epoch and site of its tokens, as `origin_of` has it."""
        return (self.epoch & _EPOCH_MASK) << SITE_BITS | self.site_index

    def fresh(self) -> int:
        """Return a token that was never given out before.

        Raises:
            InternalError: All 2**32 tokens of this epoch are used up.
        """
        if self.used > _SEQUENCE_MASK:
            raise InternalError("no recursion tokens left in this epoch", hint="restart the site")
        token = self.origin << SEQUENCE_BITS | self.used
        self.used += 1
        return token
