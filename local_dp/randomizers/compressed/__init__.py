"""Any finite channel told in fewer bits: which of some public samples a client picks."""
