"""The documentation as a site: the documents, a page for each protocol, the figures of the experiments, and the reference, made from what the code says."""
