"""Property tests draw the same cases in every run, and take the time they need."""

from hypothesis import settings

settings.register_profile("framefree", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("framefree")
