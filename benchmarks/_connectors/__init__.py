"""One module for each connector: its `PAIR` is the connector and the bare library at one peer."""
