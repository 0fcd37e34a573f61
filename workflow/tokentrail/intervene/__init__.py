"""Interventions: what to change, in which order to run the changed passes, and running them in one batch."""
