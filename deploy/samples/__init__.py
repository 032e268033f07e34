"""Code to copy: functions of one's own."""
