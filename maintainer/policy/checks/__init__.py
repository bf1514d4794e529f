"""Check what settings mean together: within one file, across files, and after merging.

May import everything in ``policy`` but ``project``. A rule about settings goes into `setting_rules`, one about files
that name the same table, profile or priority into `policy_checks`.
"""
