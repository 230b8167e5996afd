"""The page of the explorer, a marimo notebook: widgets on the left, `predcp.explore.scene` on the right."""

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
        # One width for all names: the sliders begin in one line.
        name = f'<span style="display:inline-block;width:5rem">{label}</span>'
        return mo.ui.slider(steps=steps, value=value, label=name, show_value=True)

    model = mo.ui.dropdown(list(explore.MODELS), value="linear regression")
    source = mo.ui.radio(
        ["standard normal features", "a CSV of mine"], value="standard normal features"
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
def _(explore, mo, upload):
    table, upload_error = None, ""
    if upload.value:
        try:
            table = explore.parse(upload.value[0].name, upload.value[0].contents)
        except explore.UploadError as error:
            upload_error = str(error)
    used = mo.ui.multiselect(
        table.columns if table else [], value=table.columns if table else [], label="columns used"
    )
    return table, upload_error, used


@app.cell
def _(
    columns,
    depth,
    divergence,
    explore,
    family,
    log_axes,
    mo,
    model,
    noise,
    parameters,
    rows,
    source,
    standardise,
    stated,
    table,
    tail,
    upload,
    used,
):
    _kind = explore.MODELS[model.value]
    if _kind == "network":
        _model = [model, depth]
    else:
        _own = source.value == "a CSV of mine"
        _design = [upload, *([used, standardise] if table else [])] if _own else [rows, columns]
        _model = [model, source, *_design, *([noise] if _kind == "linear" else [])]
    _says = [mo.Html(explore.note("P(κ > u) = p, with"))] if tail.elements else []
    mo.sidebar(
        mo.vstack(
            [
                mo.Html(explore.title("predcp explore")),
                mo.Html(
                    explore.note("Say how far predictions may move; see the prior that says it.")
                ),
                mo.Html(explore.group("1. The model")),
                *_model,
                mo.Html(explore.group("2. How far from the reference")),
                divergence,
                mo.Html(explore.group("3. How likely is how far: π")),
                family,
                stated,
                *_says,
                *tail.elements.values(),
                *parameters.elements.values(),
                mo.Html(explore.group("View")),
                log_axes,
            ],
            gap=0.6,
        ),
        footer=mo.Html(explore.note("Runs on this machine; nothing is sent anywhere.")),
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
    log_axes,
    model,
    noise,
    parameters,
    rows,
    source,
    standardise,
    table,
    tail,
    upload_error,
    used,
):
    def _chosen():
        kind = explore.MODELS[model.value]
        design = None
        if kind != "network" and source.value == "a CSV of mine":
            if upload_error:
                raise explore.UploadError(upload_error)
            if table is None:
                return None
            design = explore.design(table, used.value, standardise.value)
        return explore.Choices(
            model=kind,
            rows=rows.value,
            columns=columns.value,
            noise=noise.value,
            depth=depth.value,
            design=design,
            family=explore.FAMILIES[family.value],
            parameters=parameters.value,
            tail=explore.Tail(**tail.value) if tail.value else None,
            divergence=explore.DIVERGENCES[divergence.value],
            log_axes=log_axes.value,
        )

    scene, problem = None, ""
    try:
        _choices = _chosen()
        if _choices is None:
            problem = "Choose a CSV file on the left: its columns become the design."
        else:
            scene = explore.scene(_choices)
    except (ValueError, FloatingPointError) as error:
        problem = str(error)
    return problem, scene


@app.cell
def _(explore, mo, problem, scene):
    mo.Html(explore.page(scene) if scene else explore.error(problem))
    return


@app.cell
def _(explore, mo, scene):
    (
        mo.vstack(
            [
                mo.Html(explore.group("The same in NumPyro")),
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
