"""What several stages measure with: prompts as tensors, answers, intervals, medians, work, and the reference."""
