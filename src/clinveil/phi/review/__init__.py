"""Review the findings of a `clinveil deidentify` run in a local browser.

`queue` selects and orders the notes, `desk` holds the state of a review session, `decisions` stores each decision on
disk before it is confirmed, `server` serves the page on the local machine only. The page is in `page`.
"""
