"""What is said of a plan, a run or a table as a small document, and the writers that print it."""
