"""The kinds of release: one file each."""
