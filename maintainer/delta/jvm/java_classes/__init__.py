"""Java classes of ours: two log stores that never replace a version, and transactions that leave a checkpoint to us.

They are compiled in the JVM that runs, beside whatever Delta it has, so no JAR of ours has to be given to Spark.
"""
