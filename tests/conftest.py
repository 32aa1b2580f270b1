"""What holds for every test."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported: two workers with two threads each would wait for one another
