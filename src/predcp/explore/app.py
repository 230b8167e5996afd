"""The explorer as a marimo notebook: controls on the left, `predcp.explore.scene` on the right."""

import marimo  # pyright: ignore[reportMissingImports]

app = marimo.App(width="full", app_title="predcp explore")


@app.cell
def _():
    import marimo as mo  # pyright: ignore[reportMissingImports]

    from predcp import explore

    return explore, mo


@app.cell
def _(explore, mo):
    def slider(label, steps, value):
        # Names have one width, so that the sliders line up.
        name = f'<span style="display:inline-block;width:5rem">{label}</span>'
        return mo.ui.slider(steps=steps, value=value, label=name, show_value=True)

    model = mo.ui.dropdown(list(explore.MODELS), value="linear regression")
    source = mo.ui.radio(
        ["standard normal features", "a CSV file"], value="standard normal features"
    )
    rows = slider("rows", explore.ROWS, 32)
    columns = slider("columns", explore.COLUMNS, 10)
    noise = slider("noise sd", explore.NOISES, 1.0)
    depth = slider("layers", range(1, explore.MOST_LAYERS + 1), 3)
    upload = mo.ui.file(
        filetypes=[".csv"],
        kind="area",
        max_size=explore.MOST_BYTES,
        label=f"A CSV with a header, at most {explore.MOST_BYTES // 1_000_000} MB",
    )
    standardise = mo.ui.switch(value=True, label="standardise columns")
    family = mo.ui.dropdown(list(explore.FAMILIES), value="log-Cauchy")
    stated = mo.ui.radio(["by its parameters", "by a tail statement"], value="by its parameters")
    log_axes = mo.ui.switch(value=True, label="logarithmic axes for κ and τ")
    return (
        columns,
        depth,
        family,
        log_axes,
        model,
        noise,
        rows,
        slider,
        source,
        standardise,
        stated,
        upload,
    )


@app.cell
def _(explore, mo, model):
    _known = [
        name
        for name, value in explore.DIVERGENCES.items()
        if explore.MODELS[model.value] != "network" or value != "jensen_shannon"
    ]
    divergence = mo.ui.dropdown(_known, value="KL")
    return (divergence,)


@app.cell
def _(explore, family, mo, slider, stated):
    _family = explore.FAMILIES[family.value]
    _tail = stated.value == "by a tail statement"
    _free = explore.FREE_WITH_TAIL[_family]
    parameters = mo.ui.dictionary(
        {
            each.name: slider(each.name, each.steps, each.start)
            for each in explore.PARAMETERS[_family]
            if not _tail or each.name in _free
        }
    )
    tail = mo.ui.dictionary(
        {
            "upper": slider("u", explore.UPPERS, 0.1),
            "probability": slider("p", explore.PROBABILITIES, 0.05),
        }
        if _tail
        else {}
    )
    return parameters, tail


@app.cell
def _(mo):
    # The last file that could be read and the last scene: a refused choice leaves both as they were.
    get_table, set_table = mo.state(None)
    last_scene = {"scene": None}
    return get_table, last_scene, set_table


@app.cell
def _(explore, set_table, upload):
    refused = ""
    if upload.value:
        try:
            _table = explore.parse(upload.value[0].name, upload.value[0].contents)
            explore.features(_table, explore.guess_outcome(_table))
            set_table(_table)
        except explore.UploadError as error:
            refused = str(error)
    return (refused,)


@app.cell
def _(explore, get_table, mo):
    table = get_table()
    _names = explore.labels(table.columns) if table else {}
    _guess = explore.guess_outcome(table) if table else None
    _none = "none: all columns are features"
    outcome = mo.ui.dropdown(
        {_none: None, **_names},
        value=next((label for label, name in _names.items() if name == _guess), _none),
        full_width=True,
    )
    return outcome, table


@app.cell
def _(explore, mo, outcome, table):
    left_out, _chosen, _names = {}, [], {}
    if table:
        _chosen, left_out = explore.features(table, outcome.value)
        _names = explore.labels([name for name in table.columns if name != outcome.value])
    used = mo.ui.multiselect(
        _names,
        value=[label for label, name in _names.items() if name in _chosen],
        full_width=True,
    )
    return left_out, used


@app.cell
def _(
    columns,
    depth,
    divergence,
    explore,
    family,
    left_out,
    log_axes,
    mo,
    model,
    noise,
    outcome,
    parameters,
    refused,
    rows,
    source,
    standardise,
    stated,
    table,
    tail,
    upload,
    used,
):
    def _note(words):
        return mo.Html(explore.note(words))

    def _file():
        yield upload
        if refused:
            yield mo.Html(explore.refusal(refused))
        if table:
            yield _note(f"{table.name}: {len(table.frame):,} rows. Outcome (not in the design):")
            yield outcome
            yield _note("Columns used:")
            yield used
            if left_out:
                _first = [f"'{name}' {reason}" for name, reason in list(left_out.items())[:3]]
                _more = f"; and {len(left_out) - 3} more" if len(left_out) > 3 else ""
                yield _note(f"Left out: {'; '.join(_first)}{_more}.")
            yield standardise

    _kind = explore.MODELS[model.value]
    if _kind == "network":
        _model = [model, depth]
    else:
        _own = source.value == "a CSV file"
        _model = [model, source, *(_file() if _own else [rows, columns])]
        _model += [noise] if _kind == "linear" else []
    mo.sidebar(
        mo.vstack(
            [
                mo.Html(explore.title("predcp explore")),
                _note("State how far predictions may move, and see the prior that follows."),
                mo.Html(explore.group("1. The model")),
                *_model,
                mo.Html(explore.group("2. Distance κ from the reference")),
                divergence,
                mo.Html(explore.group("3. Prior π on the distance")),
                family,
                stated,
                *([_note("P(κ > u) = p, with")] if tail.elements else []),
                *tail.elements.values(),
                *parameters.elements.values(),
                mo.Html(explore.group("View")),
                log_axes,
            ],
            gap=0.6,
        ),
        footer=_note("Runs on this machine; nothing is sent anywhere."),
        width="330px",
    )
    return


@app.cell
def _(
    columns,
    depth,
    divergence,
    explore,
    family,
    last_scene,
    log_axes,
    model,
    noise,
    parameters,
    refused,
    rows,
    source,
    standardise,
    table,
    tail,
    used,
):
    _kind = explore.MODELS[model.value]
    _own = _kind != "network" and source.value == "a CSV file"
    problem = refused if _own else ""
    waiting = _own and table is None
    try:
        if not waiting:
            _choices = explore.Choices(
                model=_kind,
                rows=rows.value,
                columns=columns.value,
                noise=noise.value,
                depth=depth.value,
                design=explore.design(table, used.value, standardise.value) if _own else None,
                family=explore.FAMILIES[family.value],
                parameters=parameters.value,
                tail=explore.Tail(**tail.value) if tail.value else None,
                divergence=explore.DIVERGENCES[divergence.value],
                log_axes=log_axes.value,
            )
            last_scene["scene"] = explore.scene(_choices)
    except (ValueError, FloatingPointError) as error:
        problem = str(error)
    scene = last_scene["scene"]
    return problem, scene, waiting


@app.cell
def _(explore, mo, problem, scene, waiting):
    _hint = "Choose a CSV file: its columns become the design." if waiting and not problem else ""
    mo.Html(explore.page(scene, problem, _hint))
    return


@app.cell
def _(explore, mo, scene):
    (
        mo.vstack(
            [
                mo.Html(explore.group("The same prior in NumPyro")),
                mo.md(f"```python\n{scene.code}```"),
                mo.hstack(
                    [mo.download(scene.code.encode(), "prior.py", label="Download prior.py")],
                    justify="start",
                ),
            ]
        )
        if scene
        else None
    )
    return


if __name__ == "__main__":
    app.run()
