# Nightly: kill commands, fill the disk, read damaged input; see benchmarks/robustness.md.
torture minutes="60":
    python benchmarks/torture.py --minutes {{minutes}}
