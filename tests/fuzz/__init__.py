"""Damaged and hostile folders and tables: each is refused in a sentence, or read as it was.

    PYTHONPATH=tests python -m fuzz --mutations 100000

makes that many, from a seed. `mutations` spoils bytes, JSON, arrays and tables; `subjects` has what
is spoiled and what is done with it; `trial` spoils one and judges what happens.
"""
