"""The Z-order curve: addresses, cubes, revisions with their boundaries, and figures of data skipping."""
