"""Attacks of those who hold the channel."""
