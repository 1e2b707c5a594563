"""Every command: a file is a command and a folder is a group, each under its own name."""
