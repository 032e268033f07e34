SELECT mid, rid FROM FreeMachines
