"""Textbook motions with closed forms: a top, a double pendulum, linkages, a body alone."""
