"""Loads, merges, judges and renders Twinbench result records."""

__version__ = "1.0.0"
