"""Attacks, by what the attacker holds: the channel, the vectors, the released text, the model."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
