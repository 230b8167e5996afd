"""The page of the explorer, a marimo notebook: widgets on the left, `predcp.explore.scene` on the right."""

import marimo

app = marimo.App(width="full", app_title="predcp explore")


@app.cell
def _():
    import marimo as mo

    from predcp import explore

    return explore, mo


@app.cell
def _(explore, mo):
    model = mo.ui.dropdown(list(explore.MODELS), value="linear regression", label="Model")
    source = mo.ui.radio(["standard normal", "a CSV of mine"], value="standard normal", label="Design")
    rows = mo.ui.slider(steps=explore.ROWS, value=32, label="rows", show_value=True)
    columns = mo.ui.slider(steps=explore.COLUMNS, value=10, label="columns", show_value=True)
    noise = mo.ui.slider(steps=explore.NOISES, value=1.0, label="noise sd", show_value=True)
    depth = mo.ui.slider(1, explore.MOST_LAYERS, value=3, label="layers", show_value=True)
    upload = mo.ui.file(
        filetypes=[".csv"],
        kind="area",
        max_size=explore.MOST_BYTES,
        label=f"A CSV with a header, at most {explore.MOST_BYTES // 1_000_000} MB",
    )
    standardise = mo.ui.switch(value=True, label="standardise columns")
    family = mo.ui.dropdown(list(explore.FAMILIES), value="log-Cauchy", label="π")
    stated = mo.ui.radio(["parameters", "a tail statement"], value="parameters", label="given by")
    log_axes = mo.ui.switch(value=True, label="logarithmic axes for κ and τ")
    return (
        columns,
        depth,
        family,
        log_axes,
        model,
        noise,
        rows,
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
    divergence = mo.ui.dropdown(_known, value="KL", label="Divergence")
    return (divergence,)


@app.cell
def _(explore, family, mo, stated):
    _family = explore.FAMILIES[family.value]
    _tail = stated.value == "a tail statement"
    _free = explore.FREE_WITH_TAIL[_family]
    parameters = mo.ui.dictionary(
        {
            each.name: mo.ui.slider(
                steps=each.steps, value=each.start, label=each.name, show_value=True
            )
            for each in explore.PARAMETERS[_family]
            if not _tail or each.name in _free
        }
    )
    tail = mo.ui.dictionary(
        {
            "upper": mo.ui.slider(steps=explore.UPPERS, value=0.1, label="u", show_value=True),
            "probability": mo.ui.slider(
                steps=explore.PROBABILITIES, value=0.05, label="p", show_value=True
            ),
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
    def _group(title, *items):
        return mo.vstack([mo.md(f"**{title}**"), *items], gap=0.5)

    _kind = explore.MODELS[model.value]
    if _kind == "network":
        _model = [model, depth]
    else:
        _own = source.value == "a CSV of mine"
        _design = [upload, *([used, standardise] if table else [])] if _own else [rows, columns]
        _model = [model, source, *_design, *([noise] if _kind == "linear" else [])]
    _says = [mo.md("P(κ > u) = p")] if tail.elements else []
    mo.sidebar(
        mo.vstack(
            [
                mo.md("# predcp explore\nSay what a model may predict; see the prior that says it."),
                _group("1. The model", *_model),
                _group("2. How far from the reference", divergence),
                _group(
                    "3. How likely is how far",
                    family,
                    stated,
                    *_says,
                    *tail.elements.values(),
                    *parameters.elements.values(),
                ),
                _group("View", log_axes),
            ],
            gap=1.5,
        ),
        footer=mo.md("Runs on this machine; nothing is sent anywhere."),
        width="320px",
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
    mo.Html(explore.page(scene)) if scene else mo.callout(mo.md(explore.escaped(problem)), kind="warn")
    return


@app.cell
def _(mo, scene):
    (
        mo.vstack(
            [
                mo.md("### The same in NumPyro"),
                mo.md(f"```python\n{scene.code}```"),
                mo.download(scene.code.encode(), filename="prior.py", label="Download prior.py"),
            ]
        )
        if scene
        else None
    )
    return


if __name__ == "__main__":
    app.run()
