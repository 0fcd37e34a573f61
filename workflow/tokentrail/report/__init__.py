"""The run on one page, from its tables and charts."""
