"""A gateway's session with the broker: epochs, birth, state, sequence numbers."""
