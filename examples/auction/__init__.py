"""Sealed bids for one thing in each round, with private values: an example with phases, passing and private talk."""
