"""The figures of the report: each module draws one, in the colours of any theme."""
