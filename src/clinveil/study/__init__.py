"""Studies: one folder a paper; each prints that paper's own tables from notes that the user gives."""
