"""What everything else stands on: nouns of one file each, files, settings, failures."""
