"""One number whose noise follows the data: smooth and noisy local sensitivity,
propose-test-release, the ladder; the median and the triangles of a graph."""
