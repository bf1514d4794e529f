"""Bins on executors.

``executor_bins`` asks for a batch's bins and judges the answers, ``shared_jobs`` puts the bins of all tables of a run
into Spark jobs, ``executor_tasks`` is what runs on an executor.
"""
