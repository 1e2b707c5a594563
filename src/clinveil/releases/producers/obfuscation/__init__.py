"""Obfuscation: every word replaced by a random near neighbour (paper A), after PHI was treated."""
