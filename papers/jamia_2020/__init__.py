"""Paper A: what the obfuscation of notes costs on word similarity and classification."""
