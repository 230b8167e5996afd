"""Helpers that every room may use: arrays, checks, progress, files, processes."""
