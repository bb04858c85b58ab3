"""What an error costs: one level against several.

study            all programs of a problem, in their order
settings_tried   methods with their widths and particles, and how much is run
width_problems   posteriors at every hidden width
programs         one program: a reference, a pilot, or replicates
cost_envelope    the cheapest cost of every error, its slope, a ratio of costs
results          what the programs of a problem say together
page, charts     one HTML page
"""
