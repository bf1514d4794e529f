"""A state on an object store: found by ``state_access``, copied to and from a cache by ``state_mirror``."""
