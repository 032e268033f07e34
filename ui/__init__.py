"""The web console, the live map, the REST API and the command line over it."""
