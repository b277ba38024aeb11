"""The exit contract of every subcommand. Wrappers should read verdict.json too: `make` rewrites codes."""

PASS = 0
FAIL = 1  # regression, parity failure, broken proof, failed scenario or self-test
TOOL_ERROR = 2  # usage, unreadable or invalid file
INCONCLUSIVE = 3  # undecided, missing, or nothing measured
LIMIT = 4  # of an engine only: a limit of time or memory was reached
