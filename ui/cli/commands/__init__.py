"""Commands by what they act on; `http_commands` puts them together."""
