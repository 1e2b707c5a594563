"""Notes in and out, one format a file; the demo corpus."""
