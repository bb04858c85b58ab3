"""How large should a network be? Reversible jump over the width and the depth.

Berezowski, "Trans-dimensional inference over Bayesian neural networks" (2021), chapters 5 and 6.
Ours are exact reversible jumps; what they find stands beside what is published, with the reasons
why it differs.

tables       transdimensional_xor (D1), transdimensional_digits (D2), transdimensional_boston (D3),
             transdimensional_uci, architecture_three_ways, transdimensional_depth_ways
boston_models, digit_models, model_study, models
             transdimensional_models, transdimensional_digit_models: noise and prior fixed or
             learnt, beside trained networks and the published chain
study, page  what runs found beside what is published
runs         one posterior over architectures
depth_ways, crossings
             p(depth) in four ways, two of which share nothing
published_chain
             the published acceptance ratio, which is biased
label_ranks  how often the truth is among the likeliest labels
three_ways   jumps, evidences and cross-validation on one question
draw_by_draw how good and how probable every network of a chain is
data         the data, split so that no test row is seen in training

    credence experiment run transdimensional_xor --size laptop --out xor
    credence experiment run transdimensional_uci --seeds 20 --out uci
"""
