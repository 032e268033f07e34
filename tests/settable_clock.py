"""A clock that stands still until a test moves it."""


class SettableClock:
    """Seconds, of whatever epoch the test likes; `now` is what the clock says next."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
