"""The static site: pages of every machine, component and scenario of a history, and of the change between two runs."""
