"""The interface of the coordinator as one principal may use it."""
