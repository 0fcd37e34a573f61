"""Published figures held against what a run measured.

ledger.py    the published figures as they are written down, and the mistakes that a ledger may have
query.py     the query of a figure, as text
views.py     what queries can read beside the stages' tables
choice.py    what write-ups on quantization leave open
run.py       the tables of a run, and what a query finds in them
verdict.py   when a measured value is the published one
judge.py     the table `reproduction`
"""
