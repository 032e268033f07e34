"""Sources from SNMP agents, versions 2c and 3: objects that are polled, tables row by row."""
