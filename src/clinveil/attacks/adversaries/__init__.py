"""Attackers who read released words back, one a file: what each knows, and how they read. `attacks/adversary.py`."""
