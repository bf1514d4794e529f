"""The second engine: DuckDB reads the files of both sides of a rewrite, to prove what another library wrote.

It shares no code with any writer: pyarrow and Spark are not imported here, and DuckDB nowhere else. How a type is made
comparable is in `column_values`; what is measured is in `duckdb_rows`, with the SQL of `figure_queries`; by what the
bounds in a footer are judged, in `hidden_rows`.
"""
