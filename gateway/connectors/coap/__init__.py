"""Sources from CoAP: resources of constrained devices that are observed."""
