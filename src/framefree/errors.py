"""The exceptions that framefree raises. All descend from `FramefreeError`."""


class FramefreeError(Exception):
    """Root of every exception that framefree raises on purpose."""
