"""Messages of sites, system tables, settings and removal of gateways."""
