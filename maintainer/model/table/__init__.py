"""What is known of a Delta table at one version, as frozen values.

Schema, files, deletion vectors, features, storage, and the commits of its log. Readers in ``delta`` fill these
values; planning reads them. Add a fact here when planning needs to know something new about a table.
"""
