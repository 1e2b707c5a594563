"""Finders of identifiers from other libraries, one a file, behind extras; what they read comes from disk alone."""
