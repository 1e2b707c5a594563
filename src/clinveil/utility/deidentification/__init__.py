"""Recall of de-identification on a grid of invented notes, and on notes with gold spans."""
