"""Tests of policies: given a table with these files and this history, expect these steps. Runs without Spark."""
