// The figures of the run that is chosen: their choices, their charts, and what is said of a point.

import {scales} from './axis.js';
import {Chart} from './chart.js';
import {element, select, swatch} from './dom.js';
import {show} from './format.js';
import {columnOf, filters, isHidden, onChange, points, reason, runs, series, setHidden, state}
  from './store.js';

const THEORY_DASHES = ['solid', [6, 3], [2, 3], [7, 3, 2, 3]];

function label(place) {
  return series[place].label;
}

// A value of a point with its interval, in the words of the table.
function measured(point, axis) {
  const kind = columnOf[axis.field].kind;
  const value = point[axis.field];
  if (value === null) return `\u2013 (${reason(point, axis.field)})`;
  const ends = [axis.low, axis.high].map((key) => (key ? point[key] : null));
  const unit = kind === 'ns' ? ' ns' : '';
  const range = ends.every((end) => end !== null)
    ? ` [${ends.map((end) => show(end, kind)).join(', ')}]` : '';
  return show(value, kind) + unit + range;
}

function tipOf(item, axes) {
  const rows = [];
  const add = (name, value) => rows.push(element('dt', {}, name), element('dd', {}, value));
  const head = element('p', {class: 'tip-head'}, swatch(item.look, series[item.look].filter),
                       label(item.look));
  if (item.point) {
    const {point} = item;
    if (point.params_label) add('parameters', point.params_label);
    if (point.asked_bits_per_key !== null) {
      add('bits asked', show(point.asked_bits_per_key, 'number'));
    }
    add('keys', show(point.keys, 'count'));
    add('mode', `${point.mode}, ${point.target}` + (point.negative_share === null ? ''
      : `, ${show(point.negative_share, 'share')} absent`));
    for (const axis of [axes.x, axes.y]) {
      if (axis.field !== 'keys' && axis.field !== 'negative_share') {
        add(columnOf[axis.field].label, measured(point, axis));
      }
    }
    if (item.limit) add('upper limit', `${show(item.limit, 'fpr')} (3/queries)`);
    if (axes.y.field !== 'fpr_measured' && point.fpr_measured !== null) {
      add('FPR', show(point.fpr_measured, 'fpr'));
    }
    if (axes.y.field.startsWith('fpr') && point.fpr_expected !== null) {
      add('FPR expected', show(point.fpr_expected, 'fpr'));
    }
    if (axes.y.field === 'ns_per_op' && point.floor_ratio !== null) {
      add('\u00d7 floor', show(point.floor_ratio, 'ratio'));
    }
    if (axes.y.field === 'ns_per_op' && point.confidence !== null) {
      add('confidence', show(point.confidence, 'share'));
    }
    if (point.stable === false) add('stability', 'unstable');
    if (point.clusters_explained_by !== null) add('two modes', `by ${point.clusters_explained_by}`);
    add('point', point.point_id);
  } else {
    add(axes.x.label, show(item.values[0], columnOf[axes.x.field].kind));
    const [, value, low, high] = item.values;
    add(axes.y.label, show(value, 'ns') + (low !== null && high !== null
      ? ` [${show(low, 'ns')}, ${show(high, 'ns')}]` : ''));
    add('how', item.note);
    add(item.from.length > 1 ? 'points' : 'point',
        item.from.map((i) => points[i].point_id).join(' '));
  }
  return [head, element('dl', {}, rows)];
}

// A series of a view as the chart takes it; null if it is not shown.
function drawn(entry, axes, index) {
  if (entry.look !== null && entry.look !== undefined && isHidden(series[entry.look].filter)) {
    return null;
  }
  const [sx, sy] = [scales[axes.x.scale], scales[axes.y.scale]];
  if (entry.kind === 'theory' || entry.kind === 'front') {
    return {...entry, path: entry.points.map(([x, y]) => [sx.to(x), sy.to(y)]),
            dashes: entry.look === null ? [2, 3] : THEORY_DASHES[index % THEORY_DASHES.length]};
  }
  const to = (scale, value) => (value === null || value === undefined ? NaN : scale.to(value));
  let items;
  if (entry.points) {
    items = entry.points.map((values) => ({
      look: entry.look, values, note: entry.note, from: entry.from, point: null,
      at: [to(sx, values[0]), to(sy, values[1])], low: to(sy, values[2]),
      high: to(sy, values[3])}));
  } else {
    items = entry.rows.map((row) => {
      const point = points[row];
      const limit = entry.kind === 'limits' ? 3 / point.queries : null;
      return {look: entry.look, point, limit, at: [to(sx, point[axes.x.field]),
                                                   to(sy, limit ?? point[axes.y.field])],
              low: limit ? NaN : to(sy, point[axes.y.low]),
              high: limit ? NaN : to(sy, point[axes.y.high])};
    });
  }
  const made = {...entry, items};
  // A baseline without a table has no size: its time is one level, whatever the filters' sizes.
  if (entry.kind === 'floor') {
    const known = items.filter((item) => item.at.every(Number.isFinite));
    const alone = known.length === 1 || items[0].point.filter === 'hash_only' &&
      axes.x.scale === 'bytes';
    if (alone && known.length) {
      const ys = known.map((item) => item.at[1]).sort((a, b) => a - b);
      made.path = [[-1e3, ys[ys.length >> 1]], [1e3, ys[ys.length >> 1]]];
      if (known.length > 1) made.items = [];
    }
  }
  return made;
}

class Figure {
  constructor(run, figure, onPoint) {
    this.run = run;
    this.figure = figure;
    this.chart = new Chart(figure.title, {
      onPoint: (item) => item.point ? onPoint(item.point) : item.from.length && onPoint(
        points[item.from[0]]),
      tipOf: (item) => tipOf(item, this.axes()),
    });
    this.chosen = figure.first.slice();
    this.boxes = figure.choices.map((choice, place) => {
      const made = select(choice.label, choice.name, choice.options, (value) => {
        this.chosen[place] = value;
        this.show(place);
      });
      made.label.hidden = choice.options.length < 2;
      return made;
    });
    this.legend = element('ul', {class: 'series'});
    const tool = (text, name, act) => element('button', {
      type: 'button', class: 'tool', 'aria-label': `${name}: ${figure.title}`, title: name,
      onclick: act}, text);
    this.node = element('figure', {id: `figure-${figure.id}`, 'data-figure': figure.id},
      element('figcaption', {}, element('h3', {}, figure.title)),
      element('div', {class: 'choices'}, this.boxes.map((box) => box.label),
        element('span', {class: 'tools'},
          tool('+', 'zoom in', () => this.chart.zoom(1.5)),
          tool('\u2212', 'zoom out', () => this.chart.zoom(1 / 1.5)),
          tool('reset', 'reset the zoom', () => this.chart.reset()))),
      this.chart.frame, this.legend, element('p', {class: 'note'}, figure.how));
    this.show();
  }

  axes() {
    const {x, y, y_of: other} = this.figure;
    return {x, y: (other && other[this.chosen[0]]) || y};
  }

  // The view of what is chosen; where there is none the one that agrees with the last choice and
  // most others.
  view(fixed) {
    const fits = (view) => view.choice.filter((value, i) => value === this.chosen[i]).length +
      (fixed !== undefined && view.choice[fixed] === this.chosen[fixed] ? 100 : 0);
    return this.figure.views.reduce((best, view) => (fits(view) > fits(best) ? view : best));
  }

  show(fixed) {
    const view = this.view(fixed);
    this.chosen = view.choice.slice();
    this.boxes.forEach(({box}, i) => {
      box.value = this.chosen[i];
      for (const option of box.options) {
        option.disabled = !this.figure.views.some((v) => v.choice[i] === option.value);
      }
    });
    this.current = view;
    this.refresh();
  }

  entries() {
    return this.current.series.flatMap((entry) => (
      entry.kind === 'shared' ? this.figure.shared[entry.of] : [entry]));
  }

  refresh(keep = false) {
    const axes = this.axes();
    const entries = this.entries();
    const turns = new Map();
    const made = entries.map((entry) => {
      const turn = turns.get(entry.look) || 0;
      if (entry.kind === 'theory') turns.set(entry.look, turn + 1);
      return drawn(entry, axes, turn);
    }).filter(Boolean);
    const marks = axes.x.scale === 'bytes' ? this.run.caches.map(
      (cache) => ({at: scales.bytes.to(cache.bytes), label: cache.label})) : [];
    this.chart.draw({x: {...axes.x, leastSpan: axes.x.scale === 'linear' ? 1 : 0.5}, y: axes.y,
                     drawn: made, marks}, keep);
    this.#explain(entries);
  }

  #explain(entries) {
    const seen = new Map();
    for (const entry of entries) {
      if (entry.look !== null && entry.look !== undefined && entry.kind !== 'theory') {
        seen.set(entry.look, entry.kind);
      }
    }
    const buttons = [...seen.keys()].sort((a, b) => a - b).map((place) => {
      const {filter} = series[place];
      return element('li', {}, element('button', {
        type: 'button', 'aria-pressed': String(!isHidden(filter)),
        title: `show or hide ${filters[filter].name} everywhere`, 'data-filter': filter,
        onclick: () => setHidden([filter], !isHidden(filter))},
        swatch(place, filter), label(place)));
    });
    const others = [];
    const theory = entries.filter((entry) => entry.kind === 'theory');
    if (theory.length) others.push(element('li', {class: 'plain'}, 'lines: theory'));
    for (const bound of theory.filter((entry) => entry.look === null)) {
      others.push(element('li', {class: 'plain'}, `dotted grey: bound, ${bound.label}`));
    }
    const focused = this.legend.contains(document.activeElement)
      ? document.activeElement.dataset.filter : null;
    this.legend.replaceChildren(...buttons, ...others);
    if (focused) this.legend.querySelector(`[data-filter="${focused}"]`)?.focus();
  }
}

export function showFigures(place, onPoint) {
  let shown = [];
  let run = null;
  const rebuild = () => {
    if (run === state.run) {
      for (const figure of shown) figure.refresh(true);
      return;
    }
    run = state.run;
    shown = runs[run].figures.map((figure) => new Figure(runs[run], figure, onPoint));
    place.replaceChildren(...(shown.length ? shown.map((figure) => figure.node)
      : [element('p', {}, 'The run has nothing that the figures show.')]));
  };
  onChange(rebuild);
  rebuild();
}
