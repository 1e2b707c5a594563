# Nightly: kill commands, limit files, read damaged input; see benchmarks/robustness.md.
torture minutes="60":
    python benchmarks/torture.py --minutes {{minutes}}
