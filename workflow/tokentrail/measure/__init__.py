"""One module an experiment: a loaded model and its settings in, one polars frame out."""
