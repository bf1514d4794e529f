"""Reads YAML 1.2 strictly, with the position of every key and value, and finds the files of a project."""
