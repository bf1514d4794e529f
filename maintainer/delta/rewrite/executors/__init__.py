"""Bins on executors.

``executor_bins`` asks for a batch's bins, puts those of all tables of a run into Spark jobs and judges the answers,
``executor_tasks`` is what runs on an executor.
"""
