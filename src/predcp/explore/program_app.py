"""The explorer of a program as a marimo notebook: sentences on the left, priors on the right."""

import marimo  # pyright: ignore[reportMissingImports]

app = marimo.App(width="full", app_title="predcp explore")


@app.cell
def _():
    import marimo as mo  # pyright: ignore[reportMissingImports]

    from predcp import explore

    study = explore.shown_study()
    return explore, mo, study


@app.cell
def _(explore, mo, study):
    def _slider(label, steps, value):
        # Names have one width, so that the sliders line up.
        name = f'<span style="display:inline-block;width:5rem">{label}</span>'
        return mo.ui.slider(steps=steps, value=value, label=name, show_value=True)

    units = {site: study.units(site) for site in study.sites}
    # A menu of units for each scale, and a slider for each unit, so that none is ever reset.
    menus = mo.ui.dictionary(
        {
            site: mo.ui.dropdown(
                {unit.label: unit.name for unit in found.values()},
                value=next(iter(found.values())).label,
                full_width=True,
            )
            for site, found in units.items()
        }
    )
    families = mo.ui.dictionary(
        {
            site: mo.ui.dropdown(
                explore.SENTENCE_FAMILIES, value=next(iter(explore.SENTENCE_FAMILIES))
            )
            for site in units
        }
    )
    uppers = mo.ui.dictionary(
        {
            f"{site} {unit.name}": _slider("exceeds", unit.steps, unit.start)
            for site, found in units.items()
            for unit in found.values()
        }
    )
    befores = mo.ui.dictionary({site: _slider("from", explore.STARTS, 0.5) for site in units})
    chances = mo.ui.dictionary({site: _slider("chance", explore.CHANCES, 0.05) for site in units})
    # What each scale showed last: a refused sentence leaves it as it was.
    last_scenes = {}
    return befores, chances, families, last_scenes, menus, units, uppers


@app.cell
def _(befores, chances, explore, families, menus, mo, study, units, uppers):
    def _note(words):
        return mo.Html(explore.note(words))

    def _controls(site):
        yield mo.Html(explore.group(f"{site}: what is rarely exceeded?"))
        yield menus.elements[site]
        if menus.value[site] == "probability_change":
            yield befores.elements[site]
        yield uppers.elements[f"{site} {menus.value[site]}"]
        yield chances.elements[site]
        yield _note("Family of π, the prior on the distance from the reference:")
        yield families.elements[site]

    mo.sidebar(
        mo.vstack(
            [
                mo.Html(explore.title("predcp explore")),
                _note(f"The program {study.name}. State how far a scale may move its predictions."),
                *(control for site in units for control in _controls(site)),
            ],
            gap=0.6,
        ),
        footer=_note("Runs on this machine; nothing is sent anywhere."),
        width="330px",
    )
    return


@app.cell
def _(befores, chances, explore, families, last_scenes, menus, study, uppers):
    problems = {}
    for _label, _table in study.tables.items():
        _site = _table.site
        _unit = menus.value[_site]
        try:
            _sentence = explore.Sentence(
                _unit,
                uppers.value[f"{_site} {_unit}"],
                chances.value[_site],
                families.value[_site],
                befores.value[_site],
            )
            last_scenes[_label] = explore.scale_scene(study, _label, _sentence)
        except (ValueError, FloatingPointError) as error:
            problems[_label] = str(error)
    scenes = dict(last_scenes)
    return problems, scenes


@app.cell
def _(explore, mo, problems, scenes, study):
    mo.Html(explore.program_page(study, scenes, problems))
    return


@app.cell
def _(explore, mo, scenes, study):
    (
        mo.vstack(
            [
                mo.Html(explore.group("The same prior in your program")),
                mo.md(f"```python\n{explore.program_code(study, scenes.values())}```"),
            ]
        )
        if scenes
        else None
    )
    return


if __name__ == "__main__":
    app.run()
