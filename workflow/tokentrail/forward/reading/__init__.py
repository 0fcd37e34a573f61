"""What a family is written with: its description, a strict reader of config.json, and recipes for its tensors."""
