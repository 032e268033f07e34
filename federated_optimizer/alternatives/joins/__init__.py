"""Ways to join at gateways, one a file; `meeting` has what they share."""
