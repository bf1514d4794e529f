"""The only package that meets Spark, Delta and py4j."""
