"""Review the findings of a `clinveil deidentify` run in a local browser.

`past_runs` reads a run and orders its notes, `desk` holds the state of a review session,
`decisions` stores each decision on disk before it is confirmed, `server` serves the page on the
local machine only. The page is in `page`.
"""
