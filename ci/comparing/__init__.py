"""What ci/compare_revisions does, one purpose a module."""
