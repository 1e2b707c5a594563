"""Fast matching of many patterns: tables of distinct words, and offsets at which a pattern can
match.
"""
