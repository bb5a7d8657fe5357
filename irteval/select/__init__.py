"""Which items to ask: criteria, and designs with known inclusion probabilities."""
