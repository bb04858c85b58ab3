"""Shows a comparison to people.

page        one self-contained HTML page
charts      the charts of that page
terminal    tables for a terminal
"""
