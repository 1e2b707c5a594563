"""Study of paper A (JAMIA 2020): cost of obfuscation for word similarity and classification."""
