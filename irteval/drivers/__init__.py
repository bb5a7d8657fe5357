"""Drivers: thin adapters that run chosen items for real."""
