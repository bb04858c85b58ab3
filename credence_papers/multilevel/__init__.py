"""Multilevel sequential Monte Carlo over networks under a trace-class prior.

Chada, Jasra, Law & Singh, "Bayesian Deep Learning with Multilevel Trace-class Neural Networks".

tables           imdb, imdb_two_models (table 2), mnist_ood, mnist_ood_12000 (table 3)
leading_inputs   their methods, from a model of some of the inputs to one of all
studies          multilevel_published, _published_256, _sensitivity, _deep: error against cost
                 (sections 5.1 to 5.5); multilevel_steps; prior_rates (figures 1 and 2)
steps            how many nats a step from one width to the next costs, and its page
prior_rates      how fast networks stop changing as they widen; its page in `prior_rates_page`
error_cost       one level against several: programs, envelopes, page

    credence experiment run imdb --size smoke --out imdb
    credence experiment run multilevel_published --size laptop --out published
"""
