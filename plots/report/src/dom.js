// Elements from their parts. All text goes in as text: names from files are never read as HTML.

const SVG = 'http://www.w3.org/2000/svg';

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? '' : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

// The marker of a series in its filter's colour.
export function swatch(place, filter) {
  const picture = document.createElementNS(SVG, 'svg');
  picture.setAttribute('class', `swatch f${filter}`);
  picture.setAttribute('viewBox', '-1 -1 2 2');
  picture.setAttribute('aria-hidden', 'true');
  const use = document.createElementNS(SVG, 'use');
  const attributes = {href: `#look${place}`, x: -1, y: -1, width: 2, height: 2};
  for (const [name, value] of Object.entries(attributes)) use.setAttribute(name, value);
  picture.append(use);
  return picture;
}

export function select(label, name, options, onchange) {
  const box = element('select', {name, onchange: () => onchange(box.value)},
    options.map(({value, label: text}) => element('option', {value}, text)));
  return {label: element('label', {}, element('span', {}, label), box), box};
}
