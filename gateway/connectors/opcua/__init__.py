"""Sources from OPC UA servers: nodes whose changes are subscribed to."""
