// A table that sorts and turns pages, so that thousands of rows cost no more than one page of them.

import {element} from './dom.js';

const PAGE = 50;

function compare(a, b) {
  if (typeof a === 'string' || typeof b === 'string') {
    return String(a).localeCompare(String(b), 'en', {numeric: true});
  }
  return a - b;
}

export class Table {
  // Columns: {key, label, help, numeric, cell(row) -> node or text}; rows: objects with these keys.
  constructor(name, {rowOf = null} = {}) {
    this.columns = [];
    this.rows = [];
    this.sort = {key: null, down: false};
    this.page = 0;
    this.rowOf = rowOf;
    this.head = element('tr');
    this.body = element('tbody');
    this.count = element('p', {class: 'count', role: 'status'});
    const turn = (text, label, to) => element('button', {
      type: 'button', 'aria-label': label, title: label, onclick: () => this.#turn(to())}, text);
    this.first = turn('\u00ab', 'first page', () => 0);
    this.back = turn('\u2039', 'previous page', () => this.page - 1);
    this.next = turn('\u203a', 'next page', () => this.page + 1);
    this.last = turn('\u00bb', 'last page', () => this.pages - 1);
    this.where = element('span', {class: 'where'});
    this.pager = element('nav', {class: 'pager', 'aria-label': `pages of ${name}`},
      this.first, this.back, this.where, this.next, this.last);
    this.scroll = element('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': name},
      element('table', {class: 'points'}, element('thead', {}, this.head), this.body));
    this.node = element('div', {class: 'table'}, this.scroll,
      element('div', {class: 'below'}, this.count, this.pager));
  }

  get pages() {
    return Math.max(1, Math.ceil(this.rows.length / PAGE));
  }

  setColumns(columns) {
    this.columns = columns;
    this.#heads();
    this.#draw();
  }

  // `rows` in their own order, which counts until a column is chosen.
  setRows(rows, total) {
    this.own = rows;
    this.total = total;
    this.page = 0;
    this.#arrange();
  }

  sortBy(key, down = false) {
    this.sort = {key, down};
    this.page = 0;
    this.#arrange();
  }

  // Turns to the page of a row; its element.
  find(row) {
    const place = this.rows.indexOf(row);
    if (place < 0) return null;
    this.page = Math.floor(place / PAGE);
    this.#draw();
    return this.body.children[place % PAGE];
  }

  #turn(page) {
    this.page = Math.min(Math.max(page, 0), this.pages - 1);
    this.#draw();
    this.scroll.scrollTop = 0;
  }

  #arrange() {
    const {key, down} = this.sort;
    this.rows = this.own.slice();
    if (key) {
      const factor = down ? -1 : 1;
      // What is unknown stands at the end, whichever way.
      this.rows.sort((a, b) => {
        const [left, right] = [a[key], b[key]];
        if (left === null || right === null) return (left === null) - (right === null);
        return factor * compare(left, right);
      });
    }
    this.#heads();
    this.#draw();
  }

  #heads() {
    const focused = this.head.contains(document.activeElement)
      ? document.activeElement.dataset.key : null;
    this.head.replaceChildren(...this.columns.map((column) => {
      const mine = this.sort.key === column.key;
      const arrow = mine ? (this.sort.down ? '\u25be' : '\u25b4') : '';
      return element('th', {
        scope: 'col', class: column.numeric ? 'number' : null,
        'aria-sort': mine ? (this.sort.down ? 'descending' : 'ascending') : 'none'},
        element('button', {
          type: 'button', title: column.help, 'data-key': column.key,
          onclick: () => this.sortBy(column.key, mine && !this.sort.down)},
          column.label, element('span', {class: 'arrow', 'aria-hidden': 'true'}, arrow)));
    }));
    if (focused) this.head.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  #draw() {
    const from = this.page * PAGE;
    const seen = this.rows.slice(from, from + PAGE);
    this.body.replaceChildren(...seen.map((row) => {
      const line = element('tr', {}, this.columns.map((column) => element(
        'td', {class: column.numeric ? 'number' : null}, column.cell(row))));
      if (this.rowOf) this.rowOf(line, row);
      return line;
    }));
    this.count.textContent = this.rows.length === this.total ? `${this.total} rows`
      : `${this.rows.length} of ${this.total} rows`;
    this.where.textContent = `page ${this.page + 1} of ${this.pages}`;
    this.first.disabled = this.back.disabled = this.page === 0;
    this.next.disabled = this.last.disabled = this.page >= this.pages - 1;
    this.pager.hidden = this.pages === 1;
  }
}

export function unknown(why) {
  return element('span', {class: 'unknown', title: why}, '\u2013');
}
