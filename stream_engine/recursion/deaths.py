"""Which tokens died, here and at other sites."""

from collections.abc import Callable, Iterable, Sequence

from stream_engine.provenance.tokens import (
    checked_token,
    epoch_of,
    is_epoch_at_most,
    site_index_of,
)
from stream_engine.provenance.tombstones import Tombstones


class Deaths:
    """Collects deaths until they are worked on, and remembers all of them.

    State: tombstones, and what was noted since the last `take`.
    """

    def __init__(self) -> None:
        self.tombstones = Tombstones()
        self._kills: list[int] = []
        self._lost: list[tuple[int, int]] = []

    @property
    def has_news(self) -> bool:
        """Whether something was noted since the last `take`."""
        return bool(self._kills or self._lost)

    def note(self, kills: Sequence[int]) -> None:
        """Note tokens another site announced dead.

        Raises:
            WireError: One is no unsigned 64-bit number; then none is noted.
        """
        self._kills.extend([checked_token(token) for token in kills])

    def note_lost_site(self, site_index: int, epoch: int) -> None:
        """Note that all tokens of a site up to an epoch are dead."""
        self._lost.append((site_index, epoch))

    def take(self, own: Iterable[int], known: Callable[[], Iterable[int]]) -> set[int]:
        """Return all tokens that died, and remember them.

        Args:
            own: Tokens of this site that died.
            known: All tokens in use here; asked only when a site was lost.
        """
        dead = set(own).union(self._kills)
        for site_index, epoch in self._lost:
            dead.update(
                token
                for token in known()
                if site_index_of(token) == site_index and is_epoch_at_most(epoch_of(token), epoch)
            )
            self.tombstones.add_epochs(site_index, epoch)
        self.tombstones.add_all(dead)
        self._kills, self._lost = [], []
        return dead
