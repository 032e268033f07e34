"""Base sites and gateways agree on which packs of observations were published and received."""
