"""Holds networks: pure functions of their parameters.

mlp              the multilayer perceptron, and what every network has
dense            its arithmetic, fast for many networks at once
residual         convolutional networks for images, by `convolutions`
encodings        inputs as places between knots or as logarithms
adapters         Flax and Equinox models
wrappers         networks made of a network
linearized       a network made linear in its weights
variable_depth   an MLP some of whose layers may be absent
"""
