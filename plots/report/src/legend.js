// Families and filters to be shown or hidden, for all figures and the table.

import {element, swatch} from './dom.js';
import {filters, isHidden, onChange, series, setHidden} from './store.js';

export function showLegend(place) {
  const families = new Map();
  filters.forEach((filter, i) => {
    families.set(filter.family, [...(families.get(filter.family) || []), i]);
  });
  const lookOf = (filter) => series.findIndex((entry) => entry.filter === filter);
  const update = [];
  const box = (members, ...text) => {
    const input = element('input', {
      type: 'checkbox', onchange: () => setHidden(members, !input.checked)});
    update.push(() => {
      const seen = members.filter((filter) => !isHidden(filter)).length;
      input.checked = seen > 0;
      input.indeterminate = seen > 0 && seen < members.length;
    });
    return element('label', {}, input, ...text);
  };
  const all = filters.map((_, i) => i);
  place.append(
    element('p', {class: 'legend-all'},
      element('button', {type: 'button', onclick: () => setHidden(all, false)}, 'all'),
      element('button', {type: 'button', onclick: () => setHidden(all, true)}, 'none')),
    ...[...families].map(([family, members]) => element('fieldset', {},
      element('legend', {}, box(members, element('span', {class: 'family'}, family))),
      members.map((filter) => box([filter], swatch(lookOf(filter), filter),
                                  element('span', {}, filters[filter].name))))));
  const refresh = () => update.forEach((one) => one());
  onChange(refresh);
  refresh();
}
