"""Scenarios of data-assisted control: what the equations lack is learned from motions."""
