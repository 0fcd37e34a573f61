"""One module a chart: tables in, an Altair chart out.

A chart module declares `TABLES`, the tables that it draws, and `CAPTION`: a first paragraph that says what it shows
and a second, beginning `It does not show`, with its limits. Both are literals, because the workflow and the report
read them without importing the module. Charts select, join and reshape; they compute no science.
"""
