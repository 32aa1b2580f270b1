"""A run as it happens, on a page of this machine."""
