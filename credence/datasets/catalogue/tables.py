"""The named tables that are read from the folder CREDENCE_DATA or from OpenML."""

from credence.datasets.catalogue.specs import CC_BY, RESEARCH, DataFile, DatasetSpec, OpenML

UCI_SPLITS = "20 random 90/10 splits of Hernández-Lobato & Adams (2015)"

TABLES = (
    DatasetSpec(
        name="boston",
        task="regression",
        target="MEDV",
        rows=506,
        columns=14,
        description="median value of homes in 1000 USD; column B encodes race and is ethically "
        "contested: for tests of methods only",
        source="Harrison & Rubinfeld (1978), StatLib",
        licence="none stated; public domain by common statement",
        split=UCI_SPLITS,
        files=(
            DataFile(
                "boston_housing.csv",
                "59f7ce87c12ec1b5171d45cf591ff1111ecb9b3bf127bacf1a7e46be883ed2dd",
            ),
        ),
        openml=OpenML("boston", 1, id=531),
        has_uci_splits=True,
        target_sha256="a7a4a2bed7266f5e88acd2854ae97af5206bed564ab217810535d4cd14d76edb",
    ),
    DatasetSpec(
        name="wine_quality_red",
        task="regression",
        target="quality",
        rows=1599,
        columns=12,
        description="quality of red wine (3..8), from 11 physico-chemical measurements",
        source="Cortez, Cerdeira, Almeida, Matos & Reis (2009), UCI 186",
        licence=CC_BY,
        split=UCI_SPLITS,
        files=(
            DataFile(
                "winequality-red.csv",
                "7d246d4b4b648f536ad563e90c936b3ce80b874fb8d6d2a24586f91f0daf7176",
            ),
        ),
        openml=OpenML("wine-quality-red", 1, id=40691),
        has_uci_splits=True,
        target_sha256="857552cf21124c681133662195ef3c2115025105d510d53a2929ca0c4907f097",
    ),
    DatasetSpec(
        name="adult",
        task="classification",
        target="income",
        rows=48842,
        columns=15,
        description="income above 50,000 USD a year or not, from 14 answers to a census; "
        "unknown answers are missing values",
        source="Kohavi (1996), UCI 2, Adult / Census Income",
        licence=CC_BY,
        split="original: 32561 train, 16281 test (not from OpenML)",
        files=(
            DataFile(
                "adult.parquet",
                "28aa35b812a76e6c26700a83bd0582dd629c3e437280124c818ebaa5b596bd13",
            ),
        ),
        openml=OpenML("adult", 2, id=1590),
        split_column="split",
        split_values=("train", "test"),
    ),
    DatasetSpec(
        name="optdigits",
        task="classification",
        target="digit",
        rows=5620,
        columns=65,
        description="handwritten digits as 8x8 counts of 0..16 on-pixels",
        source="Alpaydin & Kaynak (1998), UCI 80",
        licence=CC_BY,
        split="original: 3823 train (30 writers), 1797 test (13 others; not from OpenML)",
        files=(
            DataFile(
                "optdigits.npz",
                "6a65778bf63523a8119e8babb4afefb3473686ce4ea06d2cbd9fc84ea911cc03",
            ),
        ),
        openml=OpenML("optdigits", 1, id=28),
    ),
    DatasetSpec(
        name="celeba_attributes",
        task="classification",
        target="Blond_Hair",
        rows=202599,
        columns=40,
        description="40 attributes (-1, 1) of photographs of celebrities, without the images",
        source="Liu, Luo, Wang & Tang (2015), CelebA",
        licence="non-commercial research only; may not be redistributed",
        split="original: 162770 train, 19962 test; 19867 validation rows are in neither",
        files=(
            DataFile(
                "celeba_attributes.parquet",
                "fae13c2a68b055b6090ad2cae79f2d23b76a51ee49dfc17f19b2a66cf84bfa48",
            ),
        ),
        split_column="partition",
        split_values=(0, 2),
        left_out=("image_id",),
    ),
    DatasetSpec(
        name="imdb",
        task="classification",
        target="label",
        rows=50000,
        columns=2,
        description="film reviews (raw text), negative (0) or positive (1); sorted, so shuffle",
        source="Maas et al. (2011), Large Movie Review Dataset v1.0",
        licence=RESEARCH,
        split="original: 25000 train, 25000 test",
        files=(
            DataFile(
                "imdb_reviews.parquet",
                "192f87df5f7e8a703e3be2ec92e1ed7e88e237531835e7654e1fab68ff93e554",
            ),
        ),
        split_column="split",
        split_values=("train", "test"),
        left_out=("id", "rating"),
    ),
    DatasetSpec(
        name="year_prediction_msd",
        task="regression",
        target="year",
        rows=515345,
        columns=91,
        description="year of release of a song, from 90 features of its timbre",
        source="Bertin-Mahieux, Ellis, Whitman & Lamere (2011), UCI 203",
        licence=CC_BY,
        openml=OpenML("YearPredictionMSD", 1),
    ),
)
