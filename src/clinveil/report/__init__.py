"""The report: arrange findings, decide verdicts, render one HTML page and the release card."""
