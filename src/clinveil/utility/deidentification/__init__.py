"""How much of the identifiers a de-identifier finds: on a grid of invented notes, and on notes with gold spans."""
