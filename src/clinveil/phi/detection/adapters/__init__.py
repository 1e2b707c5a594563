"""Adapters of identifier detectors from other libraries, one per file. Each needs an optional extra
and works
offline.
"""
