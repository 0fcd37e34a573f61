"""What stages are declared with: the keys of their settings, the columns of their tables, and the room itself."""
