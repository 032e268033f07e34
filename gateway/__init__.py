"""The proxy in front of devices: connectors, broker session, disk buffer, hosted engine site."""
