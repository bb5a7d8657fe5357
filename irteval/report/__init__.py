"""Estimates as people read them: tables for a terminal, plots for a page."""
