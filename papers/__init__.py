"""Scripts that repeat three papers on your notes with clinveil; run them from a source checkout."""
