import numpy as np
import pandas
import pytest

from predcp.data import DataError, Encoder, FileOptions, load, load_file, load_split, read_frame


def write(tmp_path, text, name="table.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_categories_become_indicators_and_constants_go(tmp_path):
    path = write(
        tmp_path, "size,colour,flag,same,y\n1,red,a,7,1.5\n2,blue,b,7,2.5\n3,green,a,7,4\n"
    )
    with pytest.warns(UserWarning, match=r"dropped constant columns: same"):
        loaded = load_file(path, "y")
    assert loaded.table.feature_names == (
        "size",
        "colour=blue",
        "colour=green",
        "colour=red",
        "flag=b",
    )
    assert loaded.table.features.tolist() == [[1, 0, 0, 1, 0], [2, 1, 0, 0, 1], [3, 0, 1, 0, 0]]
    assert loaded.table.target.tolist() == [1.5, 2.5, 4.0]
    assert loaded.table.task == "regression"


@pytest.mark.parametrize(
    ("values", "task", "classes"),
    [
        (["no", "yes", "no", "yes"], "binary", ("no", "yes")),
        ([1, 2, 2, 1], "binary", ("1", "2")),
        (["a", "b", "c", "a"], "multiclass", ("a", "b", "c")),
        ([True, False, True, False], "binary", ("False", "True")),
    ],
)
def test_classes_are_numbered_in_order(tmp_path, values, task, classes):
    path = tmp_path / "table.parquet"
    pandas.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": values}).to_parquet(path)
    table = load(str(path), target="y")
    assert (table.task, table.class_names) == (task, classes)
    assert [table.class_names[number] for number in table.target] == [str(v) for v in values]


def test_missing_values_are_refused_imputed_or_dropped(tmp_path):
    path = write(tmp_path, "a,b,y\n1,u,1\n,v,2\n3,,3\n8,u,9\n2,v,5\n")
    with pytest.raises(DataError, match=r"column 'a' has 1 missing values.*impute"):
        load_file(path, "y")
    imputed = load_file(path, "y", FileOptions(missing="impute"))
    assert imputed.table.features[:, 0].tolist() == [1, 2.5, 3, 8, 2]
    assert imputed.table.feature_names == ("a", "b=u", "b=v", "b=missing")
    assert imputed.table.features[2].tolist() == [3, 0, 0, 1]
    dropped = load_file(path, "y", FileOptions(missing="drop"))
    assert dropped.table.target.tolist() == [1.0, 9.0, 5.0]
    with pytest.raises(ValueError, match="missing must be one of refuse, impute, drop"):
        FileOptions(missing="guess")  # type: ignore[arg-type]


def test_medians_come_from_the_training_rows(tmp_path):
    values = np.arange(20.0)
    values[19] = np.nan
    frame = pandas.DataFrame({"a": values, "b": values[::-1] ** 2, "y": np.arange(20.0)})
    frame["b"] = frame["b"].fillna(0.0)
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    for number in range(5):
        split = load_split(str(path), number, target="y", options=FileOptions(missing="impute"))
        where = next(part for part in (split.train, split.test) if 19.0 in part.target)
        filled = where.features[where.target == 19.0, 0][0]
        known = split.train.features[split.train.target != 19.0, 0]
        assert filled == np.median(known)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "lacks the column y; it has: a, b"),
        ("a,y\n1,2\n2,\n3,4\n", "the target 'y' has 1 missing values"),
        ("a,y\n1,2\n2,2\n", "the target 'y' is constant"),
        ("a,y,a\n1,2,3\n", "has the column a more than once"),
        ("a,y\n", "holds no rows"),
        ("", "table.csv is empty"),
        ("a,y\n1,1\n1,2\n1,3\n", "no column that varies"),
        ("a,y\n1,1\ninf,2\n3,5\n", "column 'a' holds an infinite value"),
        ("a,y\n1,1\n2,inf\n3,5\n", "the target 'y' holds an infinite value"),
        ("a,y\n1,2,3,4\n5,6\n7,8,9,1,2,3\n", "line 4 has 6 fields, the lines before it 4"),
    ],
)
def test_mistakes_in_a_file_are_named(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(DataError, match=message), pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *_, **__: None)
        load_file(path, "y")


def test_identifiers_and_dates_are_refused_by_name(tmp_path):
    rows = [f"name{n},{n}" for n in range(60)]
    path = write(tmp_path, "id,y\n" + "\n".join(rows) + "\n")
    with pytest.raises(DataError, match="column 'id' has 60 distinct text values"):
        load_file(path, "y")
    dated = tmp_path / "dated.parquet"
    days = pandas.date_range("2020-01-01", periods=3)
    pandas.DataFrame({"when": days, "y": [1.0, 2.0, 3.0]}).to_parquet(dated)
    with pytest.raises(DataError, match="column 'when' holds dates"):
        load_file(dated, "y")


def test_wrong_files_are_named(tmp_path):
    with pytest.raises(DataError, match=r"must end in \.csv, \.tsv or \.parquet"):
        read_frame(tmp_path / "table.xlsx")
    with pytest.raises(DataError, match="there is no file"):
        read_frame(tmp_path / "absent.csv")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 but not really")
    with pytest.raises(DataError, match="cannot read"):
        read_frame(tmp_path / "bad.parquet")
    with pytest.raises(DataError, match="name its target column"):
        load(str(tmp_path / "table.csv"))


def test_encoding_survives_json_and_refuses_what_it_does_not_know(tmp_path):
    path = write(tmp_path, "n,c,y\n1,u,1\n2,v,2\n3,w,4\n")
    encoder = Encoder.from_config(load_file(path, "y").encoder.to_config())
    known = pandas.DataFrame({"c": ["w"], "n": [5]})
    assert encoder.transform(known, "new").tolist() == [[5, 0, 0, 1]]
    with pytest.raises(DataError, match=r"new: column 'c' has the value z.*it knew u, v, w"):
        encoder.transform(pandas.DataFrame({"n": [1], "c": ["z"]}), "new")
    with pytest.raises(DataError, match="new lacks the column c"):
        encoder.transform(pandas.DataFrame({"n": [1]}), "new")
    with pytest.raises(DataError, match="column 'n' must hold numbers"):
        encoder.transform(pandas.DataFrame({"n": ["one"], "c": ["u"]}), "new")
    with pytest.raises(DataError, match="column 'n' has 1 missing values"):
        encoder.transform(pandas.DataFrame({"n": [None], "c": ["u"]}, dtype=object), "new")


def test_rows_without_a_target_are_dropped_on_request(tmp_path):
    path = write(tmp_path, "a,y\n1,2\n2,\n3,4\n,6\n5,7\n")
    with pytest.raises(DataError, match="'y' has 1 missing values; leave those rows out"):
        load_file(path, "y")
    with pytest.warns(UserWarning, match="rows with missing values are left out, 2 of 5"):
        table = load_file(path, "y", FileOptions(missing="drop")).table
    assert table.target.tolist() == [2.0, 4.0, 7.0]
    # Gaps of columns are filled; a target is not made up.
    with pytest.warns(UserWarning, match="rows with no target are left out, 1 of 5"):
        table = load_file(path, "y", FileOptions(missing="impute")).table
    assert table.target.tolist() == [2.0, 4.0, 6.0, 7.0]
    assert table.features[:, 0].tolist() == [1.0, 3.0, 3.0, 5.0]
    nothing = write(tmp_path, "a,y\n1,\n2,\n")
    with pytest.raises(DataError, match="every row has a missing value$"):
        load_file(nothing, "y", FileOptions(missing="impute"))


def test_text_dates_are_called_dates(tmp_path):
    for text in ("2020-01-{n:02d}", "{n}/3/2020", "2020-01-{n:02d}T10:00", "{n} Mar 2024",
                 "{n}-sept-24", "March {n}, 2024", "{n}. Dec. 2024 10:00"):  # fmt: skip
        rows = [f'"{text.format(n=n)}",{n}' for n in range(1, 9)]
        path = write(tmp_path, "when,y\n" + "\n".join(rows) + "\n")
        with pytest.raises(DataError, match=r"column 'when' holds dates.*drop=\['when'\]"):
            load_file(path, "y")


@pytest.mark.parametrize(
    ("separator", "words"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")]
)
def test_the_separator_is_guessed_and_said(tmp_path, separator, words):
    rows = ["a,b,y", "1.5,u,1", "2.5,v,2", "3.5,u,4"]
    path = write(tmp_path, "\n".join(rows).replace(",", separator) + "\n")
    with pytest.warns(UserWarning, match=f"columns are separated by {words}"):
        guessed = load_file(path, "y").table
    told = load_file(path, "y", FileOptions(separator=separator)).table
    np.testing.assert_array_equal(guessed.features, told.features)
    assert guessed.feature_names == ("a", "b=v")


def test_a_separator_that_splits_nothing_is_refused_with_the_right_one(tmp_path):
    path = write(tmp_path, "a,b,y\n1,2,3\n2,3,5\n")
    with pytest.raises(DataError, match="separated by commas: separator=','"):
        load_file(path, "y", FileOptions(separator=";"))


def test_text_among_numbers_is_pointed_out(tmp_path):
    rows = [f"{'?' if n % 5 == 0 else n},{n % 3},{n * 1.5}" for n in range(20)]
    path = write(tmp_path, "a,b,y\n" + "\n".join(rows) + "\n")
    with pytest.warns(UserWarning, match=r"4 of its 20 values are no numbers, such as '\?'"):
        load_file(path, "y")
    rows = [f"{'?' if n % 5 == 0 else n},{n % 3},{n * 1.5}" for n in range(80)]
    path = write(tmp_path, "a,b,y\n" + "\n".join(rows) + "\n")
    with pytest.raises(DataError, match=r"16 of its 80 values are no numbers, such as '\?'"):
        load_file(path, "y")


def test_text_that_names_every_row_is_pointed_out_and_empty_columns_are_called_empty(tmp_path):
    rows = [f"Person {n},{n % 7},,{n * 1.5}" for n in range(20)]
    path = write(tmp_path, "name,b,c,y\n" + "\n".join(rows) + "\n")
    with pytest.warns(UserWarning) as seen:
        load_file(path, "y", FileOptions(missing="impute"))
    words = [str(each.message) for each in seen]
    assert any("column 'name' looks like an identifier (text, all different)" in w for w in words)
    assert any(w.endswith("dropped empty columns: c") for w in words)


def test_decimal_commas_are_read(tmp_path):
    path = write(tmp_path, "a;y\n1,5;1\n2,5;2\n4,25;4\n")
    with pytest.warns(UserWarning, match="with decimal commas"):
        assert load_file(path, "y").table.features[:, 0].tolist() == [1.5, 2.5, 4.25]


def test_encodings(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes("größe,y\n1,2\n2,3\n3,5\n".encode("latin-1"))
    with pytest.raises(DataError, match="encoding='latin-1'"):
        load_file(path, "y")
    assert load_file(path, "y", FileOptions(encoding="latin-1")).table.feature_names == ("größe",)
    wide = tmp_path / "wide.csv"
    wide.write_text("a,y\n1,2\n2,3\n", encoding="utf-16")
    with pytest.raises(DataError, match="encoding='utf-16'"):
        load_file(wide, "y")
    with pytest.raises(ValueError, match="encoding must be one that Python knows"):
        FileOptions(encoding="martian")
    with pytest.raises(ValueError, match="separator must be one character"):
        FileOptions(separator="::")


def test_few_whole_values_can_be_classes(tmp_path):
    rows = [f"{n * n},{n % 3}" for n in range(20)]
    path = write(tmp_path, "a,y\n" + "\n".join(rows) + "\n")
    with pytest.warns(UserWarning, match="3 distinct whole values.*give classes=True"):
        assert load_file(path, "y").table.task == "regression"
    table = load_file(path, "y", FileOptions(classes=True)).table
    assert (table.task, table.class_names) == ("multiclass", ("0", "1", "2"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("row", lambda n: n + 100),
        ("row", lambda n: n + n // 4),
        ("patient_id", lambda n: 7 * n * n),
    ],
)
def test_numbers_that_look_like_identifiers_are_pointed_out(tmp_path, name, value):
    rows = [f"{value(n)},{n % 7},{n * 1.5}" for n in range(20)]
    path = write(tmp_path, f"{name},b,y\n" + "\n".join(rows) + "\n")
    with pytest.warns(UserWarning, match=f"column '{name}' looks like an identifier"):
        load_file(path, "y")
    table = load_file(path, "y", FileOptions(drop=(name,))).table
    assert table.feature_names == ("b",)
    with pytest.raises(DataError, match="lacks the column absent"):
        load_file(path, "y", FileOptions(drop=("absent",)))
