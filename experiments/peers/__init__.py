"""Other libraries, doing the same work where they are installed (the extra `peers`)."""
