// The page's data, unpacked, and what the reader has chosen to see.

const content = JSON.parse(document.getElementById('data').textContent);

export const {runs, filters, series, columns, pairs} = content;
export const columnOf = Object.fromEntries(columns.map((column) => [column.key, column]));

function unpack(packed) {
  return Array.isArray(packed) ? packed : packed.indices.map((place) => packed.values[place]);
}

// One object per point, with the keys of the columns; `index` is its place.
const unpacked = Object.entries(content.points.columns)
  .map(([key, packed]) => [key, unpack(packed)]);
const total = unpacked[0][1].length;
export const points = Array.from({length: total}, (_, index) => {
  const point = {index};
  for (const [key, values] of unpacked) point[key] = values[index];
  return point;
});

// Why a value of a point is unknown.
export function reason(point, key) {
  const packed = content.points.reasons[key];
  return (packed && packed.values[packed.indices[point.index]]) || 'unknown';
}

export const filterOf = new Map(filters.map((filter, place) => [filter.name, place]));
const lookOf = new Map(series.map((entry, place) => [`${entry.filter}\n${entry.variant}`, place]));
export function lookOfPoint(point) {
  return lookOf.get(`${filterOf.get(point.filter)}\n${point.variant}`);
}

// --- What is shown: filters by their place, one run ---

const hidden = new Set();
const listeners = new Set();
export const state = {run: 0};

export const isHidden = (filter) => hidden.has(filter);

export function setHidden(places, hide) {
  for (const place of places) {
    if (hide) hidden.add(place);
    else hidden.delete(place);
  }
  announce();
}

export function setRun(run) {
  state.run = run;
  announce();
}

export function onChange(listener) {
  listeners.add(listener);
}

// Also after a change of theme: charts have colours of their own.
export function announce() {
  for (const listener of listeners) listener();
}
