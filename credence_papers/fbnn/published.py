"""The numbers printed in the FBNN paper and in its first version."""

from credence.compare.specs import Published

Ratios = tuple[float, float, float]
Line = tuple[str, float, float | None, float, Ratios | None, float | None, float | None]
"""Label; MSE or accuracy in %; coverage in % or ECE; seconds; draws per effective draw, which the
paper calls ESS (the public code divides the number of draws by ArviZ's ESS), smallest, median and
largest; the smallest per second; speed-up."""

BOSTON: tuple[Line, ...] = (
    ("DNN", 3.21, None, 14, None, None, None),
    ("Ensemble-DNN", 3.17, 72.1, 74, None, None, None),
    ("BNN-VI", 7.60, 83.7, 85, None, None, None),
    ("BNN-Lasso", 6.20, 79.2, 68, None, None, None),
    ("BNN-MC-Dropout", 10.12, 81.2, 91, None, None, None),
    ("BNN-SGHMC", 3.83, 75.3, 888, (76, 649, 1536), 0.085, 1.00),
    ("BNN-SGHMC (first 200)", 7.40, 66.9, 86, (9, 87, 150), 0.104, 1.22),
    ("SWAG", 5.81, 71.9, 104, (68, 724, 1532), 0.653, 7.22),
    ("BNN-RNS-HMC", 9.42, 73.4, 76, (73, 1032, 1504), 0.960, 10.6),
    ("BNN-pCN", 3.25, 79.3, 901, (76, 649, 1536), 0.084, 0.88),
    ("FBNN (pCN-SGHMC)", 4.16, 41.7, 186, (71, 965, 1543), 0.381, 4.22),
    ("FBNN (pCN-pCN)", 3.81, 47.1, 186, (80, 966, 1541), 0.430, 4.78),
    ("FBNN (SGHMC-SGHMC)", 4.15, 48.9, 94, (69, 979, 1542), 0.734, 8.22),
    ("FBNN (SGHMC-pCN)", 3.82, 81.1, 91, (93, 938, 1543), 1.021, 11.94),
)
WINE: tuple[Line, ...] = (
    ("DNN", 0.43, None, 26, None, None, None),
    ("Ensemble-DNN", 0.41, 47.4, 137, None, None, None),
    ("BNN-VI", 0.66, 39.5, 28, None, None, None),
    ("BNN-Lasso", 0.63, 40.9, 42, None, None, None),
    ("BNN-MC-Dropout", 0.67, 32.3, 12, None, None, None),
    ("BNN-SGHMC", 0.53, 51.3, 505, (111, 837, 1538), 0.219, 1.00),
    ("BNN-SGHMC (first 200)", 2.75, 54.6, 61, (13, 111, 150), 0.213, 0.91),
    ("SWAG", 0.53, 48.2, 97, (98, 1021, 1489), 1.010, 4.39),
    ("BNN-RNS-HMC", 0.62, 44.7, 38, (107, 925, 1520), 2.815, 12.24),
    ("BNN-pCN", 0.65, 51.1, 620, (99, 1003, 1532), 0.159, 0.69),
    ("FBNN (pCN-SGHMC)", 0.52, 32.2, 68, (91, 912, 1533), 1.338, 5.95),
    ("FBNN (pCN-pCN)", 0.65, 24.5, 67, (105, 1087, 1540), 1.567, 6.86),
    ("FBNN (SGHMC-SGHMC)", 0.50, 40.0, 70, (77, 806, 1536), 1.100, 4.78),
    ("FBNN (SGHMC-pCN)", 0.52, 48.1, 57, (92, 897, 1536), 1.614, 7.33),
)
ADULT: tuple[Line, ...] = (
    ("DNN", 85, None, 426, None, None, None),
    ("Ensemble-DNN", 84, 0.556, 2153, None, None, None),
    ("BNN-VI", 80, 0.642, 562, None, None, None),
    ("BNN-Lasso", 83, 0.631, 256, None, None, None),
    ("BNN-MC-Dropout", 82, 0.540, 187, None, None, None),
    ("BNN-SGHMC", 83, 0.574, 5979, (16, 202, 1520), 0.002, 1.00),
    ("BNN-SGHMC (first 200)", 78, 0.594, 581, (1, 41, 148), 0.002, 0.95),
    ("SWAG", 79, 0.668, 1641, (47, 912, 1532), 0.028, 10.70),
    ("BNN-RNS-HMC", 72, 0.658, 6110, (89, 960, 1530), 0.014, 5.44),
    ("BNN-pCN", 83, 0.616, 6227, (9, 117, 1518), 0.001, 0.54),
    ("FBNN (pCN-SGHMC)", 82, 0.580, 642, (87, 892, 1539), 0.135, 50.63),
    ("FBNN (pCN-pCN)", 82, 0.592, 639, (88, 890, 1540), 0.137, 51.46),
    ("FBNN (SGHMC-SGHMC)", 83, 0.583, 612, (68, 941, 1541), 0.111, 41.52),
    ("FBNN (SGHMC-pCN)", 84, 0.576, 609, (89, 875, 1539), 0.146, 54.91),
)
MNIST: tuple[Line, ...] = (
    ("DNN", 92, None, 231, None, None, None),
    ("Ensemble-DNN", 94, 0.312, 1129, None, None, None),
    ("BNN-VI", 86, 0.417, 273, None, None, None),
    ("BNN-Lasso", 87, 0.445, 184, None, None, None),
    ("BNN-MC-Dropout", 89, 0.328, 212, None, None, None),
    ("BNN-SGHMC", 90, 0.280, 8641, (15, 364, 1456), 0.001, 1.00),
    ("BNN-SGHMC (first 200)", 78, 0.271, 916, (1, 34, 149), 0.001, 0.62),
    ("SWAG", 83, 0.327, 1294, (15, 431, 1376), 0.011, 7.72),
    ("BNN-RNS-HMC", 69, 0.349, 4541, (14, 372, 1394), 0.003, 2.05),
    ("BNN-pCN", 88, 0.321, 8912, (17, 398, 1471), 0.001, 1.26),
    ("FBNN (pCN-SGHMC)", 88, 0.352, 927, (15, 412, 1383), 0.016, 10.78),
    ("FBNN (pCN-pCN)", 90, 0.312, 931, (16, 393, 1421), 0.017, 11.45),
    ("FBNN (SGHMC-SGHMC)", 91, 0.283, 923, (18, 409, 1461), 0.019, 13.01),
    ("FBNN (SGHMC-pCN)", 94, 0.241, 914, (23, 474, 1521), 0.025, 16.77),
)
CELEBA: tuple[Line, ...] = (
    ("DNN", 80, None, 3689, None, None, None),
    ("Ensemble-DNN", 82, 0.569, 15445, None, None, None),
    ("BNN-VI", 80, 0.622, 1132, None, None, None),
    ("BNN-Lasso", 79, 0.561, 2159, None, None, None),
    ("BNN-MC-Dropout", 78, 0.512, 1641, None, None, None),
    ("BNN-SGHMC", 81, 0.567, 17234, (19, 383, 1537), 0.001, 1.00),
    ("BNN-SGHMC (first 200)", 69, 0.642, 1849, (1, 85, 149), 0.001, 0.63),
    ("SWAG", 70, 0.534, 8913, (85, 1014, 1467), 0.009, 8.65),
    ("BNN-RNS-HMC", 72, 0.612, 1835, (72, 951, 1494), 0.039, 35.59),
    ("BNN-pCN", 76, 0.529, 19676, (19, 331, 1538), 0.001, 0.95),
    ("FBNN (pCN-SGHMC)", 80, 0.565, 1972, (99, 1155, 1542), 0.050, 45.53),
    ("FBNN (pCN-pCN)", 79, 0.542, 1951, (116, 1155, 1542), 0.059, 53.93),
    ("FBNN (SGHMC-SGHMC)", 81, 0.568, 1904, (93, 978, 1544), 0.048, 44.30),
    ("FBNN (SGHMC-pCN)", 85, 0.493, 1892, (129, 785, 1517), 0.068, 61.84),
)
SIMULATED_REGRESSION: tuple[Line, ...] = (
    ("DNN", 0.29, None, 39, None, None, None),
    ("BNN-SGHMC", 0.31, 84.2, 566, (106.5, 831.9, 1522.6), 0.19, 1),
    ("BNN-pCN", 0.39, 80.0, 541, (107.8, 844.9, 1533.7), 0.20, 1.05),
    ("FBNN (pCN-SGHMC)", 0.48, 77.3, 113, (139.1, 1173.9, 1527.9), 1.23, 6.47),
    ("FBNN (pCN-pCN)", 0.38, 71.2, 115, (106.1, 955.9, 1533.7), 0.92, 4.84),
    ("FBNN (SGHMC-SGHMC)", 0.43, 75.6, 62, (139.1, 1173.9, 1527.9), 2.35, 12.36),
    ("FBNN (SGHMC-pCN)", 0.32, 82.5, 60, (175.5, 821.6, 1536.8), 2.93, 15.55),
)
SIMULATED_CLASSIFICATION: tuple[Line, ...] = (
    ("DNN", 96, None, 18, None, None, None),
    ("BNN-SGHMC", 96, None, 889, (23.0, 189.5, 1468.6), 0.03, 1),
    ("BNN-pCN", 96, None, 1015, (38.5, 176.5, 1351.6), 0.04, 1.46),
    ("FBNN (pCN-SGHMC)", 92, None, 105, (132.9, 947.1, 1539.1), 1.26, 48.92),
    ("FBNN (pCN-pCN)", 90, None, 105, (147.9, 861.6, 1535.1), 1.41, 54.44),
    ("FBNN (SGHMC-SGHMC)", 95, None, 97, (153.2, 871.7, 1520.8), 1.57, 61.04),
    ("FBNN (SGHMC-pCN)", 96, None, 92, (153.1, 871.7, 1520.7), 1.67, 64.32),
)


def regression(lines: tuple[Line, ...]) -> tuple[Published, ...]:
    """A table under the names of our columns."""
    return tuple(
        _published(line, mse=line[1], coverage_95=None if line[2] is None else line[2] / 100)
        for line in lines
    )


def classification(lines: tuple[Line, ...]) -> tuple[Published, ...]:
    """A table under the names of our columns."""
    return tuple(_published(line, accuracy=line[1] / 100, ece=line[2]) for line in lines)


def _published(line: Line, **scores: float | None) -> Published:
    label, _, _, seconds, ratios, ratio_per_second, speed_up = line
    values = {
        **scores,
        "total_seconds": seconds,
        "draws_per_effective_draw": None if ratios is None else list(ratios),
        "draws_per_effective_draw_per_second": ratio_per_second,
        "speed_up": speed_up,
    }
    return Published(label=label, values={k: v for k, v in values.items() if v is not None})
