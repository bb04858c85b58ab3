"""What the outputs of a network say about the data.

base          what every likelihood offers
numbers       numeric targets: normal and Student-t noise, of one size or of the inputs
labels        labels: Bernoulli and categorical
noisy_argmax  choices among actions by their noisy values
"""
