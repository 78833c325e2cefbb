"""Ask providers: queues, limits, retries, budget, prices, cache."""
