"""Builds pages: markup that escapes by default, charts as SVG, and whole documents.

markup      elements, escaped
wording     numbers as people read them
svg         Matplotlib figures as inline SVG in the page's colours
parts       sections, figures, tables, key numbers
document    one HTML file that needs nothing else
"""
