"""Asking providers: queue, limits, retries, budget, prices, cache."""
