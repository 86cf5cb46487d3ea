"""The exceptions and the warning of framefree."""


class FramefreeError(Exception):
    """Root of every exception that framefree raises on purpose."""


class FramefreeWarning(UserWarning):
    """Something doubtful that does not forbid to go on."""
