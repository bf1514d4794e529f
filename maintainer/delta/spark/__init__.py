"""Starts and configures Spark: session, settings, JARs, Java, logs."""
