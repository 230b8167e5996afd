import numpy as np
import pytest

from predcp.data import load_split, medical_split, random_split, split_rule, standard_split


def test_standard_splits_follow_the_published_recipe():
    np.random.seed(1)
    for split in range(20):
        permutation = np.random.choice(range(308), 308, replace=False)
        rows = standard_split(308, split)
        assert rows.train.tolist() == permutation[:277].tolist()
        assert rows.test.tolist() == permutation[277:].tolist()


def test_standard_splits_leave_the_global_stream_alone():
    np.random.seed(7)
    expected = np.random.rand()
    np.random.seed(7)
    standard_split(100, 3)
    assert np.random.rand() == expected


@pytest.mark.parametrize(("rows", "train", "test"), [(72, 51, 15), (62, 44, 13), (116, 82, 24)])
def test_medical_splits_have_the_papers_sizes(rows, train, test):
    split = medical_split(rows, 4)
    assert (len(split.train), len(split.test)) == (train, test)
    permutation = np.random.default_rng(1004).permutation(rows)
    assert split.train.tolist() == permutation[:train].tolist()
    assert split.test.tolist() == permutation[-test:].tolist()


@pytest.mark.parametrize("rule", [standard_split, medical_split, random_split])
def test_every_rule_divides_the_rows(rule):
    parts = rule(97, 2)
    joined = np.concatenate([parts.train, parts.validation, parts.test])
    assert sorted(joined.tolist()) == list(range(97))
    assert rule(97, 2).train.tolist() == parts.train.tolist()
    assert rule(97, 3).train.tolist() != parts.train.tolist()


def test_rules_by_name():
    assert split_rule("boston") is standard_split
    assert split_rule("colon") is medical_split
    assert split_rule("diabetes") is random_split
    assert split_rule("mine.csv") is random_split


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="split counts from 0, got -1"):
        random_split(10, -1)
    with pytest.raises(ValueError, match="rows must be at least 4"):
        standard_split(3, 0)


def test_split_of_a_bundled_table():
    split = load_split("diabetes", 0)
    assert (len(split.train), len(split.validation), len(split.test)) == (353, 0, 89)
    assert split.train.task == "regression"
