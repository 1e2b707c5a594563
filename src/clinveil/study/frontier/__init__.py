"""The frontier: what releases keep against what they give away, setting by setting; from it the default is chosen."""
