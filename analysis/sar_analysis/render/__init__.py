"""Words, tables, figures and pages."""
