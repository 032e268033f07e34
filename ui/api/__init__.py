"""The REST and server-sent-event interface."""
