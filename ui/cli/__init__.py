"""The command line over HTTP: queries, gateways, sources of a running federation."""
