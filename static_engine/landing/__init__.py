"""Messages of the broker on disk: the lander, and the segments that it writes."""
