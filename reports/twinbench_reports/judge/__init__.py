"""Decides pass, fail or inconclusive for a record. One rule family a file; judge.py puts them together."""
