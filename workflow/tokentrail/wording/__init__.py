"""What the tables allow to be said, and how: rules, counts and tokens in words."""
