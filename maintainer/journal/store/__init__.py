"""A state on an object store: reached in ``object_storage``, copied to and from a cache in ``state_mirror``."""
