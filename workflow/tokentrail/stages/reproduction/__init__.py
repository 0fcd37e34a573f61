"""Published figures held against what a run measured.

ledger.py    the published figures as they are written down, and the mistakes that a ledger may have
run.py       the tables of a run, and how one number is picked from them
verdict.py   when a measured value is the published one
figures/     which table and rows a published quantity is, by subject
judge.py     the table `reproduction`
"""
