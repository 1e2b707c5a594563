"""Earlier releases: the ledger of all, the vault of one, and the run whose key and models a new
release reuses.
"""
