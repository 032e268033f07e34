"""From readings to source events, observations and links."""
