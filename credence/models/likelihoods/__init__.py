"""Says what the outputs of a network mean for the data.

base          what every likelihood offers
numbers       numeric targets: normal and Student-t noise, of one size or of the inputs
labels        labels: Bernoulli and categorical
noisy_argmax  choices among actions by their noisy values
"""
