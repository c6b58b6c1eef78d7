// The table of all points: text and column filters, choice of columns, a point in full, downloads.

import {element, select, swatch} from './dom.js';
import {csv, json, save} from './download.js';
import {count, show} from './format.js';
import {columns, filterOf, isHidden, lookOfPoint, onChange, points, reason, runs, setHidden}
  from './store.js';
import {Table, unknown} from './table.js';

const FILTERED = ['run', 'filter', 'mode', 'target', 'keys', 'negative_share', 'status'];
const NUMERIC = new Set(['count', 'number', 'ns', 'bytes', 'bits', 'share', 'fpr', 'ratio']);
const ALL = '';

function cell(point, column) {
  const value = point[column.key];
  if (value === null) return unknown(reason(point, column.key));
  if (column.key === 'status') {
    return element('span', {class: `badge ${value === 'ok' ? 'pass' : 'fail'}`,
                            title: point.reason}, value);
  }
  return value === '' ? unknown('there is none') : show(value, column.kind);
}

function exact(value, column) {
  const shown = show(value, column.kind);
  return typeof value === 'number' && String(value) !== shown ? `${shown}  (${value})` : shown;
}

export class Points {
  constructor(place) {
    this.shownColumns = new Set(columns.filter((column) => column.shown).map(({key}) => key));
    this.text = '';
    this.chosen = {};
    this.extra = null;   // {column, value}: what a check has asked for
    this.table = new Table('all points', {rowOf: (line, point) => this.#line(line, point)});
    this.dialog = element('dialog', {class: 'point', 'aria-labelledby': 'point-title'});
    this.search = element('input', {
      type: 'search', placeholder: 'filter, parameter, reason, id \u2026', 'aria-label': 'search',
      oninput: () => {
        this.text = this.search.value.toLowerCase();
        this.refresh();
      }});
    this.selects = FILTERED.map((key) => this.#select(key)).filter(Boolean);
    this.extraNote = element('p', {class: 'extra', hidden: true});
    this.onlyShown = element('input', {type: 'checkbox'});
    const download = (label, act) => element('button', {type: 'button', onclick: () => act(
      this.onlyShown.checked ? this.table.rows : points)}, label);
    place.append(
      element('div', {class: 'toolbar', role: 'search'},
        element('label', {class: 'search'}, element('span', {}, 'text'), this.search),
        this.selects.map(({label}) => label),
        element('button', {type: 'button', onclick: () => this.clear()}, 'clear')),
      this.extraNote, this.#columnChoice(), this.table.node,
      element('div', {class: 'downloads'}, element('span', {}, 'Download:'),
        download('CSV', (rows) => save(csv(rows), 'text/csv;charset=utf-8', 'csv')),
        download('JSON', (rows) => save(json(rows), 'application/json', 'json')),
        element('label', {}, this.onlyShown, ' only the rows shown')),
      this.dialog);
    this.words = points.map((point) => [
      point.filter, point.params_label, point.params, point.mode, point.target, point.status,
      point.reason, point.point_id, point.key_set, point.hashing, point.variant, point.run,
    ].filter((value) => value !== null).join('\n').toLowerCase());
    this.#setColumns();
    onChange(() => this.refresh());
    this.refresh();
  }

  #select(key) {
    const column = columns.find((c) => c.key === key);
    const values = [...new Set(points.map((point) => point[key]).filter((v) => v !== null))];
    if (values.length < 2) return null;
    values.sort((a, b) => (typeof a === 'number' ? a - b
      : a.localeCompare(b, 'en', {numeric: true})));
    const made = select(column.label, `only-${key}`, [
      {value: ALL, label: 'any'},
      ...values.map((value) => ({value: String(value), label: show(value, column.kind)}))],
      (value) => {
        this.chosen[key] = value;
        this.refresh();
      });
    return {...made, key};
  }

  #columnChoice() {
    return element('details', {class: 'columns'}, element('summary', {}, 'Columns'),
      element('div', {}, columns.map((column) => {
        const input = element('input', {
          type: 'checkbox', checked: this.shownColumns.has(column.key), onchange: () => {
            if (input.checked) this.shownColumns.add(column.key);
            else this.shownColumns.delete(column.key);
            this.#setColumns();
          }});
        return element('label', {title: column.help}, input, ` ${column.label}`);
      })));
  }

  #setColumns() {
    this.table.setColumns(columns.filter(({key}) => this.shownColumns.has(key)).map((column) => ({
      key: column.key, label: column.label, help: column.help, numeric: NUMERIC.has(column.kind),
      cell: (point) => (column.key === 'filter' ? this.#name(point) : cell(point, column))})));
  }

  #name(point) {
    return element('button', {
      type: 'button', class: 'name', title: 'all that is known of the point',
      onclick: () => this.open(point)},
      swatch(lookOfPoint(point), filterOf.get(point.filter)), point.filter);
  }

  #line(line, point) {
    line.dataset.point = point.point_id;
    if (point.status !== 'ok') line.className = 'failed';
    if (point === this.marked) line.className = 'marked';
  }

  clear() {
    this.search.value = this.text = '';
    this.chosen = {};
    for (const {box} of this.selects) box.value = ALL;
    this.extra = null;
    this.refresh();
  }

  // Only points of a run with a value in a column: what a check has found.
  only(run, column, value) {
    this.clear();
    this.extra = {run: runs[run].name, column, value};
    setHidden([...filterOf.values()], false);
  }

  refresh() {
    const asked = Object.entries(this.chosen).filter(([, value]) => value !== ALL);
    const words = this.text.split(/\s+/).filter(Boolean);
    const rows = points.filter((point, i) => !isHidden(filterOf.get(point.filter)) &&
      asked.every(([key, value]) => point[key] !== null && String(point[key]) === value) &&
      words.every((word) => this.words[i].includes(word)) &&
      (!this.extra || point.run === this.extra.run &&
       point[this.extra.column] === this.extra.value));
    this.extraNote.hidden = !this.extra;
    if (this.extra) {
      const {label} = columns.find((column) => column.key === this.extra.column);
      const value = show(this.extra.value, typeof this.extra.value === 'boolean' ? 'flag' : 'text');
      this.extraNote.textContent = `Only points with ${label}: ${value}. "clear" shows all.`;
    }
    this.table.setRows(rows, points.length);
  }

  // Brings a point into sight, whatever hides it, and opens it.
  reveal(point) {
    if (!this.table.rows.includes(point)) this.clear();
    this.marked = point;
    this.open(point);
    const line = this.table.find(point);
    this.dialog.addEventListener('close', () => line?.scrollIntoView({block: 'nearest'}),
                                 {once: true});
  }

  open(point) {
    const entries = columns.flatMap((column) => {
      const value = point[column.key];
      return [element('dt', {title: column.help}, column.label),
              element('dd', {'data-key': column.key}, value === null
                ? element('span', {}, unknown(''), ` ${reason(point, column.key)}`)
                : exact(value, column))];
    });
    this.dialog.replaceChildren(
      element('header', {}, element('h3', {id: 'point-title'},
        swatch(lookOfPoint(point), filterOf.get(point.filter)),
        `${point.filter}, ${count(point.keys)} keys, ${point.mode}`),
      element('button', {type: 'button', autofocus: true, onclick: () => this.dialog.close()},
        'close')),
      element('dl', {}, entries));
    this.dialog.showModal();
  }
}
