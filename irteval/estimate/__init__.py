"""Full-benchmark scores and intervals from answers to some items."""
