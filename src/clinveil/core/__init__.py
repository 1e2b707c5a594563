"""The lowest layer: basic types, files, keys, settings and errors."""
