"""`clinveil compare`: every kind of release, and named settings, measured on the same notes and
shown in one table.
"""
