"""The report: summarise (findings to typed tables), draw (to SVG), render (to one HTML page)."""
