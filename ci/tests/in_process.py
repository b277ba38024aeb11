"""What a script's main function says when it is called in the tests' own process, as if it had been started."""
import contextlib
import io
import signal
from collections.abc import Callable


def caught(work: Callable[[], int]) -> tuple[int, str, str]:
    """(exit code, standard output, standard error) of what would end a process, its signals as they were."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = work()
            except SystemExit as stop:  # argparse
                code = stop.code
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return code, out.getvalue(), err.getvalue()
