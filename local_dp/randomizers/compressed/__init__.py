"""Any finite channel in fewer bits: a client names one of a few public samples."""
