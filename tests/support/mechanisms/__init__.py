"""The mechanisms of the curator with the small databases and the wrong twins by which the
conformance tests judge them.

`tests/curator/test_conformance.py` runs every test on every case. To add a mechanism:

1. Append a `Case` to `CASES` in the file of its room here; a new room is a new file with a tuple
   `CASES`, found by itself.
2. Give it wrong twins: `Twin(mechanism)` is a mechanism that loses more than the case's loss;
   `wrong` makes one by changing a property. A mechanism with a field `epsilon` has one already: the
   same at twice the epsilon (`factor` changes that; 0 leaves it out).
3. Its sampler is compared with its law by all paths (`paths.py`), without more. Too many paths:
   give the case a `steep` epsilon.
4. A mechanism whose law cannot be listed stands in `EXACT` or `DIFFERENT` of
   `tests/curator/test_conformance.py`, with what it draws.

A second case of one mechanism, at other parameters, is one more entry.
"""
