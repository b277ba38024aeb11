"""The history: runs kept one file each in a folder that only grows, an index over them, and their trends."""
