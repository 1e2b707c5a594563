"""Attacks of those who hold the released text only."""
