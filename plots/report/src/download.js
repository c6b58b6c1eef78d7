// The points as files, made in the page.

import {element} from './dom.js';
import {columns, runs} from './store.js';

// RFC 4180; what is unknown is an empty field.
export function csv(rows) {
  const field = (value) => {
    if (value === null) return '';
    const text = String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [columns.map((column) => column.key).join(',')];
  for (const row of rows) lines.push(columns.map((column) => field(row[column.key])).join(','));
  return `${lines.join('\r\n')}\r\n`;
}

export function json(rows) {
  return `${JSON.stringify({
    schema: 'filterbench/report-points/1',
    runs: runs.map(({name, machine, cpu, complete}) => ({name, machine, cpu, complete})),
    points: rows.map((row) => Object.fromEntries(columns.map(({key}) => [
      key, key === 'params' ? JSON.parse(row.params) : row[key]]))),
  }, null, 1)}\n`;
}

export function save(text, type, ending) {
  const name = runs.length === 1 ? runs[0].name : `${runs.length}-runs`;
  const url = URL.createObjectURL(new Blob([text], {type}));
  const link = element('a', {href: url, download: `filterbench-${name}-points.${ending}`});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
