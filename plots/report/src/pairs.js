// The points of a run beside those of the first one.

import {element, swatch} from './dom.js';
import {show} from './format.js';
import {filterOf, filters, isHidden, onChange, pairs, series} from './store.js';
import {Table, unknown} from './table.js';

const KINDS = {'ns/key': 'ns', FPR: 'fpr', 'bits/key': 'bits', '\u00d7 floor': 'ratio'};
const COLUMNS = [
  ['verdict', 'verdict', 'the judgement of filterbench compare'], ['filter', 'filter', ''],
  ['params', 'parameters', ''], ['keys', 'keys', ''], ['mode', 'mode', ''],
  ['target', 'target', ''], ['absent', 'absent', 'absent keys among those asked'],
  ['quantity', 'what', 'what is compared'], ['a', 'first', 'in the first run'],
  ['b', 'this', 'in this run'], ['ratio', 'ratio', 'this run over the first'],
  ['low', 'from', 'low end of the interval of the ratio'],
  ['high', 'to', 'high end of the interval of the ratio'],
  ['raw', 'raw ratio', 'of times, before correction for how fast the machine was'],
];
const NUMERIC = new Set(['keys', 'absent', 'a', 'b', 'ratio', 'low', 'high', 'raw']);
const BADGES = {worse: 'fail', better: 'pass', 'not worse': 'pass', same: 'pass'};

function cell(row, key) {
  const value = row[key];
  if (value === null || value === '') {
    return unknown({raw: 'times only', verdict: 'nothing is judged', params: 'no other parameter',
                    absent: 'nothing is looked up', low: 'no interval: too few repetitions',
                    high: 'no interval: too few repetitions'}[key] || 'of several points');
  }
  if (key === 'a' || key === 'b') return show(value, KINDS[row.quantity]);
  if (key === 'keys') return show(value, 'count');
  if (key === 'absent') return show(value, 'share');
  if (NUMERIC.has(key)) return show(value, 'ratio');
  if (key === 'verdict') {
    return element('span', {class: `badge ${BADGES[value] || 'unknown'}`}, value);
  }
  if (key === 'filter' && filterOf.has(row.filter)) {
    const place = filterOf.get(row.filter);
    return element('span', {}, swatch(series.findIndex((entry) => entry.filter === place), place),
                   filters[place].name);
  }
  return String(value);
}

export function showPairs() {
  for (const place of document.querySelectorAll('.pair-table')) {
    const all = pairs[Number(place.dataset.pair)];
    let text = '';
    const table = new Table('comparison');
    table.setColumns(COLUMNS.map(([key, label, help]) => ({
      key, label, help, numeric: NUMERIC.has(key), cell: (row) => cell(row, key)})));
    const says = (row, word) => [row.verdict, row.filter, row.params, row.mode, row.target,
                                 row.quantity].join('\n').toLowerCase().includes(word);
    const refresh = () => table.setRows(all.filter((row) => (
      !(filterOf.has(row.filter) && isHidden(filterOf.get(row.filter))) &&
      text.split(/\s+/).every((word) => says(row, word)))), all.length);
    const input = element('input', {type: 'search', 'aria-label': 'search the comparison',
                                    placeholder: 'verdict, filter, mode \u2026', oninput: () => {
                                      text = input.value.toLowerCase().trim();
                                      refresh();
                                    }});
    place.append(element('div', {class: 'toolbar', role: 'search'},
      element('label', {class: 'search'}, element('span', {}, 'text'), input)), table.node);
    onChange(refresh);
    refresh();
  }
}
