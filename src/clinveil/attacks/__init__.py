"""Attacks, by what the attacker holds: the channel, the vectors, the released text, the model."""
