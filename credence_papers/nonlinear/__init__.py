"""Nonlinear Markov chain Monte Carlo: particles that jump to partners.

Vuckovic, "Nonlinear MCMC for Bayesian Machine Learning" (2022).

density_study    densities (section 4.1, figure 1), its samplers in `densities`, its exact laws in
                 `plane_densities`, its page in `densities_page`; `published_mala` has the fault of
                 the public code
images           cifar10, cifar10_small, cifar10_resnet20 (table 1), with methods in
                 `image_contenders`
feature_study    cifar10_features (table 1, figure 2): photographs as features of patches, which
                 `patch_features` learns and `feature_rows` keeps; its methods in
                 `feature_contenders`, one run in `feature_runs`, what runs say of the test images
                 in `feature_said`, the page in `feature_page`
tables           nonlinear_networks: the same samplers on tables and digits

    credence experiment run densities --size laptop --out densities
"""
