"""Studies, the runner, published reference data, reports and performance benchmarks."""
