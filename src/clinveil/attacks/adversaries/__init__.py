"""Adversaries that recover source words from released words, one per file; see
`attacks/adversary.py`.
"""
