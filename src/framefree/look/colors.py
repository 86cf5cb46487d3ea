"""Colours of curves that colour-blind people can tell apart [Wong2011]; yellow is left out."""

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d", "#772200")
