"""Lets `python -m twinbench_reports` stand for `twinbench-report`."""

import sys

from twinbench_reports.cli import main

sys.exit(main())
