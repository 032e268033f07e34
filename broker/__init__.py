"""Brokers a federation can start by itself: our embedded one, or Mosquitto when it is installed."""
