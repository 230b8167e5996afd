import predcp


def test_version_is_a_release_number():
    assert [part.isdigit() for part in predcp.__version__.split(".")] == [True, True, True]
