"""One room a stage: its settings, its table, how it measures, how it draws, what it says.

A room is a folder with a `room.py`, which declares it. Of the rest it has what it needs: `settings.py`, `table.py`,
`measure.py` (in a room of several stages, a module named for each), `chart.py` and `chart_<name>.py`, `section.py` and
`section.html`. Nothing lists the rooms: `tokentrail.rooms` finds them. A room knows no other room, only tables.
"""
