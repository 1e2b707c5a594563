"""The study of paper A (JAMIA 2020): what obfuscation costs on word similarity and on classification."""
