"""The proxy in front of devices: wrappers, broker session, disk buffer, hosted engine site."""
