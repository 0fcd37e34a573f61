"""The sections of the page: a template for each, and beside it, where it is needed, a module that says what the
template needs: `view(tables, settings)`, rows and sentences for each model."""
