// Numbers as text, in one way wherever they stand.

const MINUS = '\u2212';
const THIN = '\u202f';
const SUPERSCRIPTS = '\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079';

// Three significant digits unless told otherwise, without an exponent while that is short.
export function significant(value, digits = 3) {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size < 1e-6 || size >= 1e9) return value.toExponential(digits - 1).replace('-', MINUS);
  const places = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  return value.toFixed(places).replace('-', MINUS);
}

export function count(value) {
  if (!Number.isInteger(value)) return significant(value);
  return String(value).replace(/\B(?=(\d{3})+$)/g, THIN);
}

export function bytes(value) {
  for (const [power, unit] of [[40, 'TiB'], [30, 'GiB'], [20, 'MiB'], [10, 'KiB']]) {
    if (value >= 2 ** power) return `${Number((value / 2 ** power).toPrecision(3))} ${unit}`;
  }
  return `${Number(value.toPrecision(3))} B`;
}

export function powerOfTen(exponent) {
  const digits = String(Math.abs(exponent)).replace(/\d/g, (d) => SUPERSCRIPTS[d]);
  return `10${exponent < 0 ? '\u207b' : ''}${digits}`;
}

// A value of a column of the kinds in data.py.
export function show(value, kind) {
  switch (kind) {
    case 'count': return count(value);
    case 'bytes': return bytes(value);
    case 'bits': return significant(value, 4);
    case 'share': return `${Number((100 * value).toPrecision(3))} %`;
    case 'fpr': return `${significant(100 * value)} %`;
    case 'ns': case 'ratio': case 'number': return significant(value);
    case 'flag': return value ? 'yes' : 'no';
    default: return String(value);
  }
}
