"""State of gateways, bases and the static engine: presence, links, quiescence."""
