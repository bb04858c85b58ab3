"""The named data sets that are arrays rather than tables: images, and decisions of a controller."""

from credence.datasets.catalogue.specs import RESEARCH, DataFile, DatasetSpec, OpenML

SELL_SINGH = "Sell & Singh (2023), Journal of the Royal Statistical Society B 85; arXiv:2012.10943"

IMAGES = (
    DatasetSpec(
        name="mnist",
        task="classification",
        target=None,
        rows=70000,
        columns=784,
        image_shape=(28, 28),
        layout="images",
        description="handwritten digits, 28x28 grey levels 0..255",
        source="LeCun, Bottou, Bengio & Haffner (1998)",
        licence="CC BY-SA 3.0 as commonly stated",
        split="original: 60000 train, 10000 test",
        files=(
            DataFile(
                "mnist.npz",
                "ee068f36682cba7f38bafdedc77b0f873ebbcf877036f7ebde566966146ac146",
            ),
        ),
        openml=OpenML("mnist_784", 1, id=554, train_rows=60000, train_mean=(33.3184,)),
    ),
    DatasetSpec(
        name="cifar10",
        task="classification",
        target=None,
        rows=60000,
        columns=3072,
        image_shape=(32, 32, 3),
        layout="images",
        description="photographs in 10 classes, 32x32 RGB 0..255",
        source="Krizhevsky (2009), Learning multiple layers of features from tiny images",
        licence=RESEARCH,
        split="original: 50000 train, 10000 test",
        files=(
            DataFile(
                "cifar10_train.parquet",
                "65e20422f39eef4566a9739819614a4bb4b3fcb290df7d296117324eef9deae2",
            ),
            DataFile(
                "cifar10_test.parquet",
                "36880d189f33b36d7b90804d06bee68427cbc9dc6950a1af32865ddba95e87b2",
            ),
        ),
        openml=OpenML(
            "CIFAR_10",
            1,
            id=40927,
            train_rows=50000,
            channels_first=True,
            train_mean=(125.306918, 122.950394, 113.865383),
        ),
    ),
    DatasetSpec(
        name="svhn",
        task="classification",
        target=None,
        rows=99289,
        columns=3072,
        image_shape=(32, 32, 3),
        layout="images",
        description="house numbers on photographs, 32x32 RGB 0..255, train and test together; "
        "labels as OpenML gives them",
        source="Netzer et al. (2011), Street View House Numbers, cropped digits",
        licence="non-commercial use only",
        openml=OpenML("SVHN", 1, id=41081),
    ),
)

ARRAYS = (
    DatasetSpec(
        name="halfcheetah_v2_expert",
        task="regression",
        target=None,
        rows=10000,
        columns=17,
        layout="arrays",
        description="actions (6) of an expert in states (17) of MuJoCo HalfCheetah-v2, "
        "10 rollouts of 1000 steps; split by rollout",
        source=SELL_SINGH,
        licence="none stated",
        files=(
            DataFile(
                "halfcheetah_v2_expert.npz",
                "ca1b7d7a8f7407a999002b9887f67835a68d96a04f0969f30757237860bbf3dc",
            ),
        ),
    ),
    DatasetSpec(
        name="halfcheetah_v4_expert",
        task="regression",
        target=None,
        rows=4000,
        columns=17,
        layout="arrays",
        description="4 expert trajectories of 1000 steps of MuJoCo HalfCheetah-v4; "
        "split by trajectory",
        source="Berkeley CS 285, homework 1 (2022, 2023)",
        licence="MIT (2023), none stated (2022)",
        files=(
            DataFile(
                "halfcheetah_v4_expert.npz",
                "05e67acf59ef6473628c98d7c822b7b3a29e6e50af8a9ddb6b80a906f8c168fd",
            ),
        ),
    ),
    DatasetSpec(
        name="halfcheetah_discrete_actions",
        task="classification",
        target=None,
        rows=500,
        columns=17,
        layout="arrays",
        description="inverse decision problem: which of 8 actions an expert took in 500 states, "
        "with 1 + 100 test decisions",
        source=SELL_SINGH,
        licence="none stated",
        files=(
            DataFile(
                "halfcheetah_discrete_actions.npz",
                "b54d109dcd1c86847e7d5c0aa37470a92f408833e82f21eac805a6a2136d61d1",
            ),
        ),
    ),
)
