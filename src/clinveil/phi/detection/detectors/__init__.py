"""Rule-based detectors, one kind of identifier per file."""
