"""Bins on executors.

``executor_bins`` puts the bins of all tables of a run into Spark jobs and judges the answers, ``executor_tasks`` is
what runs on an executor.
"""
