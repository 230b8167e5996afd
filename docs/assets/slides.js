// A slider under each <figure class="slides">: moving it changes which of the numbered pictures is shown.
// Without scripts the figure is its first picture.
function addSlider(figure) {
  const image = figure.querySelector("img");
  const values = figure.dataset.values.split(",");
  const source = image.getAttribute("src");
  const frame = (index) => source.replace(/\d+(?=\.png$)/, index);
  const label = document.createElement("label");
  const slider = document.createElement("input");
  const shown = document.createElement("output");
  slider.type = "range";
  slider.max = values.length - 1;
  slider.value = source.match(/(\d+)\.png$/)[1];
  const show = () => {
    image.src = frame(slider.value);
    shown.textContent = `${figure.dataset.name} = ${values[slider.value]}`;
  };
  slider.addEventListener("input", show);
  // Fetched beforehand, so that dragging does not flicker.
  values.forEach((_, index) => (new Image().src = frame(index)));
  label.append(slider, shown);
  figure.append(label);
  show();
}
document.querySelectorAll("figure.slides").forEach(addSlider);
