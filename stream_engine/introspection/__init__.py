"""What a site can tell about its own parts: rows of `sys_stream` and `sys_operators`."""
