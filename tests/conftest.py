"""Before all tests."""

import signal

# Started in the background of a shell without job control, a process ignores Ctrl-C, and so do its
# children: tests that interrupt a run need the usual behaviour.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
