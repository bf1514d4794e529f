"""Effective policies and the help for policy keys."""
