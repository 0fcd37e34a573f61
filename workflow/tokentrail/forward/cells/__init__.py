"""The cells: pure functions from a tensor, weights and a state to a tensor and a state."""
